"""A stand-in for an Ollama server: a contract double, made from facts of its source, not from a running one.

It knows `/api/tags`, `/api/show`, `/api/ps`, `/api/version`, `/api/chat` and `/api/embed`, and it is as
strict as the typed structs of the original (`ollama_strict.py`): what those refuse is a 400 in their words.
What is answered is a `Reply` of the test, or a turn told in one of the original's ways:

    each call in a line of its own                its built-in parsers
    all calls on the line that ends the reply     its llama-server path
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from .loopback import Loopback, OnLoopback, Reply, Request
from .ollama_strict import chat_fault, embed_fault

Json = dict[str, Any]
Calls = Sequence[tuple[Any, ...]]
"""Name and arguments of each call, and its id where the test wants one of its own."""


@dataclass(slots=True)
class Model:
    """One model as the server has it."""

    name: str = "qwen3:8b"
    capabilities: tuple[str, ...] = ("completion", "tools", "thinking", "vision")
    context: int = 40960
    family: str = "qwen3"
    digest: str = "sha256:0123456789abcdef"
    loaded: bool = False
    entry: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of its entry in the list."""
    embedding: int = 0
    """What `/api/show` tells of the width of its vectors; 0: nothing."""


@dataclass(slots=True)
class Said:
    """What the model says to one request."""

    text: str = ""
    calls: Calls = ()
    thought: str = ""
    reason: str = "stop"


def words(text: str, size: int = 7) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def line(message: Mapping[str, Any], model: str = "m", **more: Any) -> Json:
    told = {"role": "assistant", "content": "", **message}
    return {
        "model": model,
        "created_at": "2025-08-01T10:11:12.123456789Z",
        "message": told,
        "done": False,
        **more,
    }


def lines(said: Said, late: bool = False, ids: bool = True, model: str = "m") -> list[Json]:
    """The stream; `late`: calls come with the end."""
    calls = [_call(at, each, ids) for at, each in enumerate(said.calls)]
    found = [line({"thinking": piece}, model) for piece in words(said.thought)]
    found += [line({"content": piece}, model) for piece in words(said.text)]
    if not late:
        found += [line({"tool_calls": [call]}, model) for call in calls]
    last = {"tool_calls": calls} if late and calls else {}
    return [*found, end(last, said.reason, model)]


def end(message: Mapping[str, Any] | None = None, reason: str = "stop", model: str = "m") -> Json:
    counts = {"prompt_eval_count": 21, "eval_count": 7}
    spent = {"total_duration": 700, "load_duration": 100, "prompt_eval_duration": 200, "eval_duration": 400}
    nanoseconds = {key: value * 1_000_000 for key, value in spent.items()}
    return line(message or {}, model, done=True, done_reason=reason, **counts, **nanoseconds)


def whole(said: Said, ids: bool = True, model: str = "m") -> Json:
    message: Json = {"content": said.text}
    if said.thought:
        message["thinking"] = said.thought
    if said.calls:
        message["tool_calls"] = [_call(at, each, ids) for at, each in enumerate(said.calls)]
    return end(message, said.reason, model)


def _call(at: int, call: tuple[Any, ...], ids: bool) -> Json:
    name, arguments, *own = call
    function = {"index": 0, "name": name, "arguments": arguments}
    return (
        {"id": own[0] if own else f"call_{at}abcdefg", "function": function}
        if ids
        else {"function": function}
    )


def ndjson(objects: Iterable[Json], size: int = 0) -> Reply:
    """The lines as one write each, or cut into pieces of `size` bytes."""
    texts = [orjson.dumps(each) + b"\n" for each in objects]
    text = b"".join(texts)
    pieces = [text[i : i + size] for i in range(0, len(text), size)] if size else texts
    return Reply(200, {"content-type": "application/x-ndjson"}, pieces)


def json_reply(value: Any, status: int = 200, **headers: str) -> Reply:
    text = orjson.dumps(value)
    head = {"content-type": "application/json; charset=utf-8", "content-length": str(len(text)), **headers}
    return Reply(status, head, (text,))


Answer = Callable[[Json], Said | Reply]


class OllamaDouble(OnLoopback):
    """One server. `old`: one whose list tells neither capabilities nor context."""

    def __init__(
        self, models: Sequence[Model] = (Model(),), *, old: bool = False, late: bool = False, ids: bool = True
    ) -> None:
        self.models = list(models)
        self.old, self.late, self.ids = old, late, ids
        self.answer: Answer = lambda _: Said("Hello from the llama.")
        self.refused: list[str] = []
        """Faults of requests, in the original's words."""
        self._lock = threading.Lock()
        self.server = Loopback(self._serve)

    @property
    def chats(self) -> list[Json]:
        """The bodies of all chat requests so far."""
        return [each.json for each in self.server.requests if each.path == "/api/chat"]

    def asked(self, path: str) -> int:
        return sum(each.path == path for each in self.server.requests)

    def _serve(self, request: Request) -> Reply:
        gets: dict[str, Callable[[], Json]] = {
            "/api/tags": lambda: {"models": [self._entry(model) for model in self.models]},
            "/api/ps": lambda: {"models": [{"name": m.name} for m in self.models if m.loaded]},
            "/api/version": lambda: {"version": "0.12.6"},
        }
        if request.method == "GET":
            found = gets.get(request.path)
            return json_reply(found()) if found else json_reply({"error": "not found"}, 404)
        body = request.json
        model = next((each for each in self.models if each.name in _names(body)), None)
        if model is None:
            return self._refuse(f"model '{body.get('model')}' not found", 404)
        if request.path == "/api/show":
            return json_reply(_shown(model))
        return self._embed(model, body) if request.path == "/api/embed" else self._chat(model, body)

    def _chat(self, model: Model, body: Json) -> Reply:
        fault = chat_fault(body, model.name, model.capabilities, model.family)
        if fault is not None:
            return self._refuse(fault, 400)
        with self._lock:
            said = self.answer(body)
        if isinstance(said, Reply):
            return said
        if body.get("stream", True):
            return ndjson(lines(said, self.late, self.ids, model.name))
        return json_reply(whole(said, self.ids, model.name))

    def _embed(self, model: Model, body: Json) -> Reply:
        fault = embed_fault(body, model.name, model.capabilities)
        if fault is not None:
            return self._refuse(fault, 400)
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        size = body.get("dimensions") or 4
        vectors = [[float(len(text) + at) for at in range(size)] for text in texts]
        return json_reply({"model": model.name, "embeddings": vectors, "prompt_eval_count": 3 * len(texts)})

    def _refuse(self, fault: str, status: int) -> Reply:
        self.refused.append(fault)
        return json_reply({"error": fault}, status)

    def _entry(self, model: Model) -> Json:
        details: Json = {"format": "gguf", "family": model.family, "parameter_size": "8.2B"}
        entry: Json = {"name": model.name, "model": model.name, "size": 5, "digest": model.digest}
        if not self.old:
            entry["capabilities"] = list(model.capabilities)
            details["context_length"] = model.context
        return {**entry, "details": details, **model.entry}


def _names(body: Json) -> tuple[str, str]:
    """A name without a tag means the latest."""
    name = str(body.get("model"))
    return name, name if ":" in name else f"{name}:latest"


def _shown(model: Model) -> Json:
    info = {
        "general.architecture": model.family,
        "general.parameter_count": 8_190_735_360,
        f"{model.family}.context_length": model.context,
        "tokenizer.ggml.tokens": ["a"] * 100,
    }
    if model.embedding:
        info[f"{model.family}.embedding_length"] = model.embedding
    return {"capabilities": list(model.capabilities), "model_info": info, "details": {"family": model.family}}
