"""A whole response object as the events its stream would have given."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import ProxyError, error_in
from ..ir import Event, Failed, Json
from ..profile import Profile
from .decoder import ResponsesDecoder

_STATUSES = ("completed", "incomplete", "failed", "cancelled")


def decode_reply(body: Json, profile: Profile) -> Iterator[Event]:
    """Events of a non-streamed reply; an error inside a 200 is `Failed`."""
    error = unfinished(body)
    if error is not None:
        yield Failed(error)
        return
    kind = f"response.{body.get('status') or 'completed'}"
    yield from ResponsesDecoder(profile).feed({"type": kind, "response": body})


def unfinished(body: Json) -> ProxyError | None:
    """Why a body of status 200 is no response at its end; None when it is one.

    One that is `queued` or `in_progress` is none: nobody asked for background work.
    """
    is_list = isinstance(body.get("output"), list)
    error = None if is_list else error_in(body)
    if error is None and not (is_list and body.get("status") in (None, *_STATUSES)):
        error = ProxyError("upstream", "The backend's answer is not a finished response object.")
    return error
