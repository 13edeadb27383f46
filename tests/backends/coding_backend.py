"""A backend that plays the coding task, for a real Codex to talk to: a strict Chat one, or Responses.

    python -m tests.backends.coding_backend --port 9911 [--reasoning databricks] [--fault 1:429:1] [--cut 2]

It speaks on every path that ends in `/chat/completions` or `/invocations`, so it is an OpenAI-like
server under `/v1` and a Databricks workspace under `/serving-endpoints` at once.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from . import replies
from .coding_responses import as_chat, items_of
from .coding_task import Turn, next_turn
from .loopback import Loopback, OnLoopback, Reply, Request
from .strict_chat import Fault, first_fault

MODEL = "coder"
THOUGHT = "The task is small; I go step by step."
Reasoning = Literal["none", "reasoning_content", "databricks"]
ErrorShape = Literal["openai", "databricks"]
Shape = Literal["chat", "responses"]
PATHS = {"chat": ("/chat/completions", "/invocations"), "responses": ("/responses",)}


@dataclass(slots=True)
class Plan:
    """How this backend behaves beyond the task itself; requests are counted from 1."""

    reasoning: Reasoning = "none"
    errors: ErrorShape = "databricks"
    shape: Shape = "chat"
    """What it speaks; the other one is not found here."""
    faults: Mapping[int, tuple[int, float | None]] = field(default_factory=dict)
    """Request number -> status and Retry-After in seconds."""
    cuts: frozenset[int] = frozenset()
    """Requests whose stream breaks off halfway."""


class CodingBackend(OnLoopback):
    """See the module's words; `steps` and `refused` tell what happened."""

    def __init__(self, plan: Plan | None = None, port: int = 0) -> None:
        self._plan = plan or Plan()
        self._lock = threading.Lock()
        self._count = 0
        self.steps: list[str] = []
        self.refused: list[Fault] = []
        self.server = Loopback(self._answer, port)

    def _answer(self, request: Request) -> Reply:
        if request.method == "GET":
            return self._listing(request.path)
        if not request.path.endswith(PATHS[self._plan.shape]):
            return self._error(404, f"{request.path} is not here", "ENDPOINT_NOT_FOUND")
        with self._lock:
            self._count += 1
            number = self._count
        if number in self._plan.faults:
            status, wait = self._plan.faults[number]
            code = "REQUEST_LIMIT_EXCEEDED" if status == 429 else "INTERNAL_ERROR"
            head = {} if wait is None else {"retry-after": f"{wait:g}"}
            return self._error(status, "planned fault", code, head)
        if self._plan.shape == "responses":
            return self._play_responses(request.json)
        return self._play(request.json, cut=number in self._plan.cuts)

    def _play_responses(self, body: Any) -> Reply:
        turn = next_turn(as_chat(body))
        self.steps.append(turn.step)
        return replies.sse_reply(
            replies.item_stream(items_of(turn, body), MODEL), replies.Framing(event_lines=True)
        )

    def _play(self, body: Any, cut: bool) -> Reply:
        fault = first_fault(body)
        if fault is not None:
            self.refused.append(fault)
            return self._error(400, str(fault), "BAD_REQUEST")
        turn = next_turn(body)
        self.steps.append(turn.step)
        if not body.get("stream"):
            return replies.json_reply(replies.chat_completion(turn.text, turn.calls, body["model"]))
        usage = bool((body.get("stream_options") or {}).get("include_usage"))
        frames = self._frames(turn, usage)
        if cut:
            return replies.sse_reply(frames[: len(frames) // 2], end="cut")
        return replies.sse_reply(frames)

    def _frames(self, turn: Turn, usage: bool) -> list[Any]:
        said = replies.chat_stream(turn.text, turn.calls, usage=usage, model=MODEL)
        if self._plan.reasoning == "none":
            return said
        as_parts = self._plan.reasoning == "databricks"
        thought = [_thought(piece, as_parts) for piece in replies.pieces_of(THOUGHT)]
        return [said[0], *thought, *(_as_list(frame) if as_parts else frame for frame in said[1:])]

    def _listing(self, path: str) -> Reply:
        if path.startswith("/api/2.0/serving-endpoints"):
            entry = {"name": MODEL, "task": "llm/v1/chat", "state": {"ready": "READY"}}
            return replies.json_reply({"endpoints": [entry]})
        if path.endswith("/models"):
            return replies.json_reply(replies.model_list([MODEL]))
        return self._error(404, f"{path} is not here", "ENDPOINT_NOT_FOUND")

    def _error(self, status: int, message: str, code: str, headers: Mapping[str, str] | None = None) -> Reply:
        if self._plan.errors == "openai":
            error = {"message": message, "type": "invalid_request_error", "param": None, "code": code.lower()}
            return replies.json_reply({"error": error}, status, headers)
        # Databricks wraps the model server's own JSON error into its message.
        inner = orjson.dumps({"message": message}).decode()
        return replies.json_reply({"error_code": code, "message": inner}, status, headers)


def _thought(piece: str, as_parts: bool) -> Any:
    if not as_parts:
        return replies.chat_chunk({"reasoning_content": piece}, model=MODEL)
    part = {"type": "reasoning", "summary": [{"type": "summary_text", "text": piece, "signature": ""}]}
    return replies.chat_chunk({"content": [part]}, model=MODEL)


def _as_list(frame: Any) -> Any:
    """A frame whose text is a list of parts, as Databricks sends it for models that reason."""
    choices = frame.get("choices") if isinstance(frame, dict) else None
    text = choices[0]["delta"].get("content") if choices else None
    if not text:
        return frame
    return replies.chat_chunk({"content": [{"type": "text", "text": text}]}, model=MODEL)


def _faults(given: list[str]) -> dict[int, tuple[int, float | None]]:
    found: dict[int, tuple[int, float | None]] = {}
    for entry in given:
        number, status, *wait = entry.split(":")
        found[int(number)] = (int(status), float(wait[0]) if wait else None)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--reasoning", choices=["none", "reasoning_content", "databricks"], default="none")
    parser.add_argument("--errors", choices=["openai", "databricks"], default="databricks")
    parser.add_argument("--shape", choices=["chat", "responses"], default="chat")
    parser.add_argument("--fault", action="append", default=[], metavar="N:STATUS[:RETRY_AFTER]")
    parser.add_argument("--cut", action="append", type=int, default=[], metavar="N")
    given = parser.parse_args()
    faults, cuts = _faults(given.fault), frozenset(given.cut)
    plan = Plan(given.reasoning, given.errors, given.shape, faults, cuts)
    with CodingBackend(plan, given.port) as backend:
        print(f"coding backend on {backend.origin}", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print("\n".join([*backend.steps, *map(str, backend.refused)]))


if __name__ == "__main__":
    main()
