"""A whole Chat reply as the events its stream would have given: one chunk with everything."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import Event, Failed, Json
from ..profile import Profile
from .chunk import first_choice
from .decoder import ChatDecoder
from .finish import no_choices


def decode_reply(body: Json, profile: Profile) -> Iterator[Event]:
    """Events of a `chat.completion`; a body that is an error, or has no choice, gives `Failed`."""
    decoder = ChatDecoder(profile)
    choice = first_choice(body.get("choices"))
    if choice is not None:
        told = (choice.get("message"), choice.get("delta"))
        message = next((each for each in told if isinstance(each, dict) and each), {})
        # A body is whole by itself; without calls "tool_calls" reads as "stop".
        finish = choice.get("finish_reason") or "tool_calls"
        delta = {"delta": _as_delta(message), "message": None, "finish_reason": finish}
        body = {**body, "choices": [{**choice, **delta}]}
    failed = False
    for event in decoder.feed(body):
        failed = failed or isinstance(event, Failed)
        yield event
    if choice is None and not failed:
        yield Failed(no_choices())
    else:
        yield from decoder.done()


def _as_delta(message: Json) -> Json:
    """Each call at its place: where one has no id, nothing else tells two of them apart."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    placed = [{**call, "index": place} for place, call in enumerate(calls) if isinstance(call, dict)]
    return {**message, "tool_calls": placed}
