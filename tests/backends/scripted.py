"""A backend that answers what the test said, per model, and by the book where it said nothing.

    backend.play(json_reply({"error": ...}, 500), json_reply(chat_completion("ok")))
    backend.play(sse_reply([...]), model="m-one-case")

Replies are played in order, the last one again and again. A model's own replies win over the
ones for every model.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from . import replies
from .loopback import Loopback, OnLoopback, Reply, Request

Step = Reply | Callable[[Request], Reply | None]
"""A reply, or what makes one; None means that this step does not fit and the next is asked."""


@dataclass(slots=True)
class _Script:
    steps: list[Step]
    at: int = 0

    def next(self, request: Request) -> Reply | None:
        """Steps that are functions are asked first, in order; then the next plain reply."""
        for step in self.steps:
            if callable(step) and (reply := step(request)) is not None:
                return reply
        plain = [step for step in self.steps if isinstance(step, Reply)]
        if not plain:
            return None
        reply = plain[min(self.at, len(plain) - 1)]
        self.at += 1
        return reply


class ScriptedBackend(OnLoopback):
    """Chat, Responses, embeddings and the model list, under any prefix."""

    def __init__(self, models: tuple[str, ...] = ("m",)) -> None:
        self.models = models
        self._scripts: dict[str, _Script] = {}
        self._lock = threading.Lock()
        self.server = Loopback(self._answer)

    @property
    def requests(self) -> list[Request]:
        """All POST requests so far."""
        return [request for request in self.server.requests if request.method == "POST"]

    def bodies(self, model: str | None = None) -> list[dict[str, Any]]:
        """The JSON bodies it got, in order; only those for `model` if one is named."""
        bodies = [request.json for request in self.requests]
        return [body for body in bodies if model is None or body.get("model") == model]

    def play(self, *steps: Step, model: str = "") -> None:
        """Answer with `steps` from now on, to requests for `model` or to all of them."""
        with self._lock:
            self._scripts[model] = _Script(list(steps))

    def clear(self) -> None:
        with self._lock:
            self._scripts.clear()
        self.server.requests.clear()

    def _answer(self, request: Request) -> Reply:
        if request.method != "POST":
            return replies.json_reply(replies.model_list(self.models))
        try:
            body = request.json
        except orjson.JSONDecodeError:
            return replies.json_reply({"error": {"message": "the body is not JSON"}}, 400)
        with self._lock:
            for key in (str(body.get("model") or ""), ""):
                script = self._scripts.get(key)
                if script is not None and (reply := script.next(request)) is not None:
                    return reply
        return plain_reply(request.path, body)


def plain_reply(path: str, body: Mapping[str, Any], text: str = "Hello from the backend.") -> Reply:
    """What an ordinary backend says to a request on this path."""
    model, stream = str(body.get("model")), bool(body.get("stream"))
    if path.endswith("/embeddings"):
        given = body.get("input")
        return replies.json_reply(replies.embeddings(model, len(given) if isinstance(given, list) else 1))
    if path.endswith(("/chat/completions", "/invocations")):
        if not stream:
            return replies.json_reply(replies.chat_completion(text, model=model))
        usage = bool((body.get("stream_options") or {}).get("include_usage"))
        return replies.sse_reply(replies.chat_stream(text, usage=usage, model=model))
    if path.endswith("responses"):
        if not stream:
            return replies.json_reply(replies.response_object(replies.response_items(text), model))
        return replies.sse_reply(
            replies.response_stream(text, model=model), replies.Framing(event_lines=True)
        )
    return replies.json_reply({"error": {"message": f"no such route: {path}", "code": "not_found"}}, 404)
