"""Five backends with every fault that a second try can mend, and a client that asks them 2,000 things.

Every request carries its number, and a backend decides by the number and by how often it was asked: what
happens to a request depends on nothing else.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from tests.backends.loopback import Reply, Request
from tests.backends.replies import Framing, chat_stream, json_reply, response_stream, sse_reply
from tests.backends.scripted import ScriptedBackend

MODEL = "claude-sonnet-4"
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk"
    "+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
SAID = "Hello from the backend."
BOOM = {"error": {"message": "boom", "type": "server_error", "code": "server_error"}}
_NUMBER = re.compile(rb"ask-(\d+)-")
_HANG = Reply(200, {"content-type": "text/event-stream"}, [], "hang")
_EVENTS = Framing(event_lines=True)


class Fleet:
    """`killed`: the requests whose stream died after its first words, and by whom."""

    def __init__(self, limited: ScriptedBackend, shaky: ScriptedBackend, odd: ScriptedBackend) -> None:
        self.killed: set[int] = set()
        self._tries: Counter[tuple[str, int]] = Counter()
        self._lock = threading.Lock()
        for name, backend, answer in (
            ("limited", limited, self._limited),
            ("shaky", shaky, self._shaky),
            ("odd", odd, self._odd),
        ):
            backend.play(lambda request, name=name, answer=answer: self._count(name, request, answer))

    def _count(self, name: str, request: Request, answer: Any) -> Reply | None:
        found = _NUMBER.search(request.body)
        assert found is not None
        number = int(found[1])
        with self._lock:
            self._tries[name, number] += 1
            tries = self._tries[name, number]
        reply: Reply | None = answer(request, number, tries)
        return reply

    @staticmethod
    def _limited(request: Request, number: int, tries: int) -> Reply | None:
        """429 in all its forms; every other request is answered."""
        if number % 2 or tries > 1:
            return None
        delays = ({"retry-after": "0"}, {}, {"retry-after": "1"}, {"retry-after-ms": "100"})
        return json_reply(
            {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, 429, delays[number // 2 % 4]
        )

    @staticmethod
    def _shaky(request: Request, number: int, tries: int) -> Reply | None:
        """500, then fine: the last resort of all the others."""
        return json_reply(BOOM, 500) if tries == 1 and number % 3 else None

    def _odd(self, request: Request, number: int, tries: int) -> Reply | None:
        """Errors in a 200, whole and as first event; of the streams some die after their first words."""
        stream = request.json.get("stream")
        if number % 3 == 0:
            if not stream:
                return json_reply(BOOM)
            failed = BOOM if request.path.endswith("completions") else {"type": "error", **BOOM["error"]}
            return sse_reply([failed])
        if stream and number % 10 == 7:
            self.killed.add(number)
            if request.path.endswith("completions"):
                return sse_reply(chat_stream(SAID)[:3], end="cut", pause=0.01)
            return sse_reply(response_stream(SAID)[:6], _EVENTS, end="cut", pause=0.01)
        return None


@contextmanager
def running() -> Iterator[tuple[Fleet, list[dict[str, Any]]]]:
    """The fleet and the configuration of its providers."""
    with socket.socket() as closed, ScriptedBackend() as slow, ScriptedBackend() as limited:
        closed.bind(("127.0.0.1", 0))  # bound, never listening: refused at once, and nobody else gets it
        with ScriptedBackend() as shaky, ScriptedBackend() as odd:
            slow.play(_HANG)
            down = f"http://127.0.0.1:{closed.getsockname()[1]}"
            yield (
                Fleet(limited, shaky, odd),
                [
                    _provider("down", down, "chat"),
                    _provider("slow", slow.origin, "responses", first_token_timeout_s=0.3),
                    _provider("limited", limited.origin, "chat", max_concurrency=16),
                    _provider("odd", odd.origin, "responses"),
                    _provider("shaky", shaky.origin, "chat"),
                ],
            )


def _provider(name: str, origin: str, wire: str, **more: Any) -> dict[str, Any]:
    account = {"name": name, "kind": "openai", "base_url": f"{origin}/v1", "wire": wire}
    return {**account, "models": [MODEL, *(["lead"] if name == "down" else [])], **more}


@dataclass(slots=True)
class Answer:
    number: int
    path: str
    stream: bool
    status: int
    text: str
    target: str


def ask(number: int, model: str) -> tuple[str, dict[str, Any]]:
    """Path and body of request `number`: both shapes, streamed and not, some with tools or a picture."""
    chat, stream, kind = number % 2 == 0, number % 4 < 2, number % 5
    words = f"ask-{number}-please"
    if chat:
        body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": words}]}
        if kind == 1:
            body["tools"] = [
                {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
            ]
        if kind == 2:
            parts = [{"type": "text", "text": words}, {"type": "image_url", "image_url": {"url": PIXEL}}]
            body["messages"] = [{"role": "user", "content": parts}]
    else:
        body = {"model": model, "input": words, "store": False}
        if kind == 1:
            body["tools"] = [
                {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}
            ]
        if kind == 2:
            parts = [
                {"type": "input_text", "text": words},
                {"type": "input_image", "image_url": PIXEL, "detail": "auto"},
            ]
            body["input"] = [{"role": "user", "content": parts}]
    if number % 7 == 0:
        body["prompt_cache_key"] = f"conversation-{number % 70}"
    return ("/v1/chat/completions" if chat else "/v1/responses"), {**body, "stream": stream}


async def ask_all(base: str, models: Sequence[str], count: int, at_a_time: int) -> list[Answer]:
    """The requests 0 to `count`, each for the next one of `models`."""
    waiting = iter(range(count))
    answers: list[Answer] = []

    async def work(session: aiohttp.ClientSession) -> None:
        for number in waiting:
            path, body = ask(number, models[number % len(models)])
            async with session.post(base + path, data=orjson.dumps(body)) as reply:
                text = await reply.text()
                target = reply.headers.get("x-dragoman-model", "")
                answers.append(Answer(number, path, body["stream"], reply.status, text, target))

    connector = aiohttp.TCPConnector(limit=at_a_time)
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
        for _ in range(at_a_time):
            group.create_task(work(session))
    return answers
