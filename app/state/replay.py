"""A stored response that was not told in the background, as the stream that it might have been."""

from __future__ import annotations

from typing import Any

import orjson

from translators.dialect import ReplyContext
from translators.framing import SseFramer
from translators.ir import Call, Json
from translators.profile import Profile
from translators.responses.decoder import ResponsesDecoder
from translators.responses.encoder import ResponsesEncoder
from translators.responses.frames import END, frame
from translators.responses.reply import decode_reply
from translators.stream import StreamTranslator

from ..ids import new_id
from .run_log import last_event

_DONE = "response.output_item.done"


def replayed(response: bytes, after: int) -> bytes:
    """The events later than number `after`; the last of them holds the response as it is stored."""
    whole: Json = orjson.loads(response)
    begun = {**whole, "status": "in_progress", "output": [], "error": None, "incomplete_details": None}
    begun |= {"completed_at": None, "usage": None}
    events = [("response.created", {"response": begun}), ("response.in_progress", {"response": begun})]
    events += [*_items(whole), last_event(whole)]
    frames = [frame(kind, number, fields) for number, (kind, fields) in enumerate(events)]
    return b"".join(frames[after + 1 :]) + END


def _items(whole: Json) -> list[tuple[str, Json]]:
    """The events of the output's items, under the ids that these are stored under."""
    output = whole.get("output")
    items: list[Any] = output if isinstance(output, list) else []
    context = ReplyContext(int(whole.get("created_at") or 0), str(whole.get("model")), new_id)
    encoder = ResponsesEncoder(Call("responses", context.model, ()), context)
    translator = StreamTranslator(ResponsesDecoder(Profile()), encoder)
    told = translator.take(decode_reply({"output": items, "status": "completed"}, Profile()))
    events = [orjson.loads(payload) for payload in SseFramer().feed(told) if payload[:1] == b"{"]
    if sum(event["type"] == _DONE for event in events) != len(items):
        items = []  # one of them could not be read, so places tell nothing
    return [_named(event, items) for event in events if "output_index" in event]


def _named(event: Json, items: list[Any]) -> tuple[str, Json]:
    kind, place = event.pop("type"), event["output_index"]
    del event["sequence_number"]
    item = items[place] if place < len(items) and isinstance(items[place], dict) else {}
    if kind == _DONE and item:
        event["item"] = item
    elif "item" in event:
        event["item"]["id"] = item.get("id", event["item"]["id"])
    elif "item_id" in event:
        event["item_id"] = item.get("id", event["item_id"])
    return kind, event
