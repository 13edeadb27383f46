"""`dragoman check-stream`: a server's event stream, or a recorded one, against the rules of its wire.

The rules are `translators/conformance.py`, the same that the tests hold our own streams to.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson

from translators.chat.grammar import ChatCheck
from translators.conformance import Finding, StreamCheck
from translators.framing import FrameCutter, payload_of
from translators.ir import Json
from translators.responses.grammar import ResponsesCheck

VIOLATIONS = 1
NOT_CHECKED = 2
"""Exit statuses."""

CHECKS: Mapping[str, type[StreamCheck]] = {"/responses": ResponsesCheck, "/chat/completions": ChatCheck}
"""How a route ends -> its check."""

_TOOL: Json = {
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


class NotChecked(Exception):
    """There is no stream to check; the words say why."""


class NoRoute(NotChecked):
    """The server has no such route."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What to send; `body` is a file with the whole request, `key` is never shown."""

    model: str
    prompt: str
    tools: bool
    body: Path | None
    key: str | None = field(repr=False)
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Report:
    source: str
    frames: int
    findings: Sequence[Finding]


def check(source: str, ask: Ask) -> list[Report]:
    """One report for each stream; raises `NotChecked`."""
    if not source.startswith(("http://", "https://")):
        return [_check_recorded(source)]
    url = source.rstrip("/")
    routes = [route for route in CHECKS if url.endswith(route)]
    urls = [url] if routes else [url + route for route in CHECKS]
    reports = []
    for each in urls:
        try:
            reports.append(_check_url(each, ask))
        except NoRoute:
            if routes:
                raise
    if not reports:
        raise NotChecked("it has neither /responses nor /chat/completions there")
    return reports


def as_text(reports: Iterable[Report]) -> str:
    lines = []
    for report in reports:
        for each in report.findings:
            lines += [f"frame {each.frame}: {each.rule}: expected {each.expected}", f"    {each.why}"]
        word = f"{len(report.findings)} violations" if report.findings else "clean"
        lines.append(f"{report.source}: {report.frames} frames, {word}")
    return "\n".join(lines)


def as_json(reports: Iterable[Report]) -> str:
    told = [
        {
            "source": report.source,
            "frames": report.frames,
            "violations": [each._asdict() for each in report.findings],
        }
        for report in reports
    ]
    return orjson.dumps(told, option=orjson.OPT_INDENT_2).decode()


def request_body(route: str, ask: Ask) -> Json:
    """A small streaming request; raises `NotChecked` for a file that holds none."""
    if ask.body is not None:
        return {**_read_body(ask.body), "stream": True}
    asked: Json = {"model": ask.model, "stream": True}
    if route == "/responses":
        tools = [{"type": "function", "strict": True, **_TOOL}]
        asked |= {"input": ask.prompt, "store": False}
    else:
        tools = [{"type": "function", "function": _TOOL}]
        messages = [{"role": "user", "content": ask.prompt}]
        asked |= {"messages": messages, "stream_options": {"include_usage": True}}
    return {**asked, "tools": tools} if ask.tools else asked


def _read_body(path: Path) -> Json:
    try:
        body = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise NotChecked(f"{path}: {error}") from error
    if not isinstance(body, dict):
        raise NotChecked(f"{path}: the request must be a JSON object")
    return body


def _check_url(url: str, ask: Ask) -> Report:
    route = next(route for route in CHECKS if url.endswith(route))
    headers = {"authorization": f"Bearer {ask.key}"} if ask.key else {}
    checking, body = CHECKS[route](), request_body(route, ask)
    try:
        with httpx.stream("POST", url, json=body, headers=headers, timeout=ask.timeout_s) as reply:
            _must_stream(reply)
            for chunk in reply.iter_bytes():
                checking.feed(chunk)
    except httpx.HTTPError as error:
        if checking.frame:  # it broke off, or keeps its connection open: what came is judged
            findings = checking.close()
            return Report(url, checking.frame, findings)
        raise NotChecked(f"{url}: {type(error).__name__}: {error}") from error
    except httpx.InvalidURL as error:
        raise NotChecked(f"{url}: {error}") from error
    findings = checking.close()
    return Report(url, checking.frame, findings)


def _must_stream(reply: httpx.Response) -> None:
    kind = reply.headers.get("content-type", "nothing")
    if reply.status_code != 200:
        said = reply.read()[:500].decode("utf-8", "replace")
        problem = NoRoute if reply.status_code in (404, 405) else NotChecked
        raise problem(f"{reply.url}: status {reply.status_code}: {said}")
    if not kind.startswith("text/event-stream"):
        raise NotChecked(f"{reply.url}: content-type {kind} where text/event-stream was expected")


def _check_recorded(source: str) -> Report:
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise NotChecked(error.strerror or str(error)) from error
    checking = _wire_of(data)
    checking.feed(data)
    findings = checking.close()
    return Report(source, checking.frame, findings)


def _wire_of(data: bytes) -> StreamCheck:
    """By the first object: Chat's have `choices`, Responses' a `type`; raises `NotChecked`."""
    cutter = FrameCutter()
    for frame in [*cutter.feed(data), cutter.close()]:
        first = _object(payload_of(frame) or b"")
        if "choices" in first or first.get("object") == "chat.completion.chunk":
            return ChatCheck()
        if "type" in first:
            return ResponsesCheck()
    raise NotChecked("no event of a Chat or Responses stream in it")


def _object(payload: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
