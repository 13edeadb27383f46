"""ONNX models on this machine, each in a process of its own; they speak Chat Completions from here on.

`path` is a model folder or a folder of model folders. The listing says what is in them; nothing is loaded
before it is asked for.
"""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import structlog

from translators.errors import ProxyError, bad_request
from translators.ir import Json, Shape
from translators.profile import merge

from ..base import ModelInfo, Surface, Upstream
from ..http import HttpClient
from ..openai import OpenAIProvider, Settings
from ..quirks import Quirks
from . import embeddings
from .chat import Ask, read_ask
from .events import Feed, Status
from .exchange import Exchange
from .folder import ModelFolder, scan
from .options import OWN_KEYS, read_options
from .pool import Pool
from .protocol import Done
from .reply import Answer, Head, Reply, Told, chunks, end, finish_chunk, first_chunk, whole

if TYPE_CHECKING:
    from .process import Tell, Worker

_log = structlog.get_logger("dragoman")


class OnnxProvider(OpenAIProvider):
    """The models of one folder. `settings.base_url` is not read."""

    def __init__(
        self, settings: Settings, path: Path, client: HttpClient, quirks: Quirks | None = None
    ) -> None:
        own = {key: value for key, value in settings.overrides.items() if key in OWN_KEYS}
        sections = {key: value for key, value in settings.overrides.items() if key not in OWN_KEYS}
        super().__init__(replace(settings, overrides=sections), client, quirks)
        self._path, self._variant = path, own.get("variant")
        self._running, bounds = read_options(own)
        self.feed = Feed()
        self._pool = Pool(self._start, bounds, self.feed)
        self._folders: Mapping[str, ModelFolder] = {}
        self._exchanges: set[asyncio.Task[None]] = set()
        self._dimensions: dict[str, int] = {}
        """Of embedding models that have been asked, by name."""
        self._take(scan(path, self._variant))

    def statuses(self) -> Mapping[str, Status]:
        """Every usable model as it is now."""
        return {name: self._pool.status(name) for name, each in self._folders.items() if not each.reason}

    async def models(self) -> Sequence[ModelInfo]:
        await self._look()
        return self.known()

    def known(self) -> Sequence[ModelInfo]:
        """The models as of the last look; one was taken at the start, so that they can be listed at once."""
        return [self._info(each) for each in self._folders.values() if each.reason is None]

    async def open(self, surface: Surface, model: str, body: bytes, stream: bool) -> Upstream:
        folder, asked = await self._folder(model), orjson.loads(body)
        if surface == "embeddings":
            return await self._opened(self._embed(folder, asked), "application/json")
        if folder.kind != "chat":
            raise _not_for(f"{model} makes embeddings: it cannot chat; POST /v1/embeddings asks it")
        ask = await asyncio.to_thread(read_ask, asked, folder)
        if surface == "input_tokens":
            return await self._opened(_counted(folder, ask), "application/json")
        head = _head(model, asked, ask)
        if stream:
            return await self._opened(self._streamed(folder, ask, head), "text/event-stream")
        return await self._opened(self._whole(folder, ask, head), "application/json")

    async def aclose(self) -> None:
        for task in self._exchanges:
            task.cancel()
        if self._exchanges:
            await asyncio.wait(self._exchanges)
        await self._pool.aclose()
        await super().aclose()

    # --- models ------------------------------------------------------------------------

    def _build_order(self, model: str, client: Shape) -> tuple[Surface, ...]:
        return ("chat",)

    def _listed(self, model: str, overrides: Mapping[str, Any]) -> Mapping[str, Any]:
        folder = self._folders.get(model)
        layer = {} if folder is None else _layer(folder)
        return merge(layer, overrides) if layer else overrides

    def _info(self, folder: ModelFolder) -> ModelInfo:
        facts = {**folder.facts, "loaded": self._pool.status(folder.name).state in ("ready", "generating")}
        if folder.name in self._dimensions:
            facts["dimensions"] = self._dimensions[folder.name]
        window = self._running.context
        if folder.kind == "chat" and window and window < facts.get("context_window", 0):
            facts["context_window"] = window
        return ModelInfo(folder.name, self.name, facts)

    async def _look(self) -> None:
        """Read the folders anew."""
        self._take(await asyncio.to_thread(scan, self._path, self._variant))

    def _take(self, folders: Sequence[ModelFolder]) -> None:
        """Serve these from now on; one that is of no use is told once."""
        found = {each.name: each for each in folders}
        for name, each in found.items():
            known = self._folders.get(name)
            if each.reason and (known is None or known.reason != each.reason):
                _log.warning("model_not_usable", provider=self.name, model=name, reason=each.reason)
        if found != self._folders:
            self._folders = found
            self._door.cache_clear()

    async def _folder(self, model: str) -> ModelFolder:
        if model not in self._folders:
            await self._look()
        folder = self._folders.get(model)
        if folder is None:
            raise ProxyError(
                "not_found", f"{self.name} has no model {model!r}", param="model", code="model_not_found"
            )
        if folder.reason is not None:
            raise _not_for(f"{model} cannot be used: {folder.reason}")
        return folder

    async def _start(self, name: str, tell: Tell) -> Worker:
        from .process import Worker

        folder = self._folders[name]
        try:
            path = await asyncio.to_thread(folder.engine_path, _cache())
        except (OSError, ValueError) as error:
            raise ProxyError("unavailable", f"{name} cannot be laid out for its engine: {error}") from None
        return await Worker.start(path, self._running, kind=folder.kind, tell=tell)

    # --- answers -----------------------------------------------------------------------

    async def _opened(self, work: AsyncGenerator[bytes, None], form: str) -> Upstream:
        """With the first piece there: what goes wrong before it is an error with a status of its own."""
        exchange = Exchange(work)
        self._exchanges.add(exchange.task)
        exchange.task.add_done_callback(self._exchanges.discard)
        await exchange.begun()
        return Upstream(200, {"content-type": form}, exchange, exchange.close)

    async def _streamed(self, folder: ModelFolder, ask: Ask, head: Head) -> AsyncGenerator[bytes, None]:
        answers: list[Answer] = []
        async with self._pool.lease(folder.name) as worker:
            for index in range(ask.answers):
                reply = Reply(head, ask.parser(), index)
                before = first_chunk(reply)
                async with aclosing(worker.generate(ask.segments, ask.params_of(index))) as items:
                    async for item in items:
                        if isinstance(item, Done):
                            answers.append(Answer(reply, item))
                            yield before + chunks(reply, reply.close(item)) + finish_chunk(reply, item)
                        elif data := before + chunks(reply, reply.feed(item)):
                            yield data
                        before = b""
        yield end(head, answers)

    async def _whole(self, folder: ModelFolder, ask: Ask, head: Head) -> AsyncGenerator[bytes, None]:
        answers: list[Answer] = []
        async with self._pool.lease(folder.name) as worker:
            for index in range(ask.answers):
                reply = Reply(head, ask.parser(), index)
                told: list[Told] = []
                async with aclosing(worker.generate(ask.segments, ask.params_of(index))) as items:
                    async for item in items:
                        if isinstance(item, Done):
                            answers.append(Answer(reply, item, told + reply.close(item)))
                        else:
                            told += reply.feed(item)
        yield whole(head, answers)

    async def _embed(self, folder: ModelFolder, asked: Json) -> AsyncGenerator[bytes, None]:
        if folder.kind != "embedding":
            raise _not_for(f"{folder.name} chats: it makes no embeddings")
        inputs, dimensions = embeddings.read_inputs(asked), embeddings.read_dimensions(asked)
        as_base64 = embeddings.read_encoding(asked)
        async with self._pool.lease(folder.name) as worker:
            found = await worker.embed(inputs, dimensions)
        if dimensions is None:
            self._dimensions[folder.name] = len(found.vectors[0]) // embeddings.BYTES
        yield embeddings.reply(folder.name, found, as_base64)


async def _counted(folder: ModelFolder, ask: Ask) -> AsyncGenerator[bytes, None]:
    """The tokens of a prompt; the model itself need not be in memory for that."""
    from .counting import count

    yield orjson.dumps({"input_tokens": await asyncio.to_thread(count, folder.path, ask.segments)})


def _layer(folder: ModelFolder) -> Mapping[str, Any]:
    """The profile's sections that follow from a model's template."""
    able = folder.facts.get("capabilities", ())
    layer: dict[str, Any] = {}
    if folder.kind == "chat" and "tools" not in able:
        layer["tools"] = {"supported": False}
    if folder.kind == "chat" and "thinking" not in able:
        layer["reasoning"] = {"ask": "none"}
    return layer


def _head(model: str, asked: Json, ask: Ask) -> Head:
    options = asked.get("stream_options") or {}
    return Head(
        id=f"chatcmpl-{uuid.uuid4().hex}",
        created=int(time.time()),
        model=model,
        new_call_id=lambda: f"call_{uuid.uuid4().hex[:24]}",
        usage=options.get("include_usage") is True,
        logprobs=ask.params.logprobs,
        parallel=ask.parallel,
    )


def _not_for(message: str) -> ProxyError:
    return bad_request(message, "model", "unsupported_value")


def _cache() -> Path:
    """Where folders of the `onnx-community` layout are laid out for the engine, by links."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "dragoman" / "onnx"
