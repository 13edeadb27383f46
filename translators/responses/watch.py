"""Looking after a Responses stream that passes: its bytes go on as they came.

What is forwarded is whole frames, so that what has to be added (a keep-alive, a failure) never
stands inside one. A delta is told by its first bytes and costs a few byte searches; all other
frames, a handful for each item, are parsed.

Some things are not passed. A stream that does not begin with a numbered `response.created` and a whole
snapshot is not what clients can read: it is translated from its first byte. The last event of a good reply is
made whole (the items that were done, usage, the keys that typed clients require), and items that only it
tells get their events before it. An `error` event in the stream becomes `response.failed`, because Codex
ignores the former and the SDK's accumulator needs the latter, and so does an error object of any other shape.
Frames that no client could parse are left out, and so is what comes after the last event, `[DONE]` excepted.
A stream that stops early gets a `response.failed`, never silence. Backends marked exact keep their own
beginning, their own last event and their own error events.

What else is wrong in a stream that passes is counted. Items that clients cannot read, a delta that is no text
and numbers that are no JSON are written anew, and so are refusals for Codex. Gaps in the numbering and events
of items that were never added are left: to mend them every later frame would have to be renumbered, which is
what translating is for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson

from ..dialect import End, ReplyContext
from ..errors import ProxyError, conceal, responses_error
from ..framing import FrameCutter, payload_of, sse
from ..guard import Violations
from ..ir import Call, Json, Usage
from ..lenient import has_whole_characters, read_json
from ..profile import Profile
from ..stream import StreamTranslator
from ..usage import read_responses_usage
from .decoder import ResponsesDecoder, reply_error
from .encoder import ResponsesEncoder
from .flat import text_of
from .frames import DELTA_HEADS, END, frame
from .mend import ADDED, DONE, MENDED, ItemMender, error_of, say_refusals, told_end
from .reply import decode_reply
from .tidy import is_whole, tidy_reply, tidy_response, untold

__all__ = ["ResponsesWatcher", "tidy_reply"]

_END_TYPES = frozenset(f"response.{status}" for status in ("completed", "incomplete", "failed", "cancelled"))
_GOOD_ENDS = frozenset({"response.completed", "response.incomplete"})
_KEEP_ALIVE = b": keep-alive\n\n"


class ResponsesWatcher:
    """A `ReplyStream` for the pass lane; see the module's words."""

    def __init__(self, profile: Profile, context: ReplyContext) -> None:
        self._profile, self._context = profile, context
        self._exact = profile.answer.exact
        self._translator: StreamTranslator | None = None
        self._cutter = FrameCutter()
        self._lead: list[bytes] = []
        self._first: Json | None = None
        self._last = b""
        self._finished: dict[int, Json] = {}
        """Items by their output index, as their `output_item.done` told them."""
        self._saying = False
        """Whether deltas have told an item that no `output_item.done` has told since."""
        self._passing = self._mute = False
        self._told = self._ended = False
        self._error: ProxyError | None = None
        self._fault: Exception | None = None
        self._usage: Usage | None = None
        self._violations = Violations()
        self._items = ItemMender()
        self._added: set[int] = set()
        """Indices of the items under way; deltas pass unseen only while there are any."""
        self._closing: End | None = None
        self._number = -1
        """The number of the last event, deltas counted."""

    @property
    def told(self) -> bool:
        return self._told if self._translator is None else self._translator.told

    @property
    def fault(self) -> Exception | None:
        return self._fault if self._translator is None else self._translator.fault

    @property
    def violations(self) -> Violations:
        return self._violations if self._translator is None else self._translator.violations

    @property
    def begun(self) -> bool:
        return self._first is not None if self._translator is None else self._translator.begun

    @property
    def ended(self) -> bool:
        """Whether nothing more is to come: not yet with the last event, where `[DONE]` may follow it."""
        return self._ended if self._translator is None else self._translator.ended

    @property
    def error(self) -> ProxyError | None:
        return self._error if self._translator is None else self._translator.error

    @property
    def usage(self) -> Usage | None:
        return self._usage if self._translator is None else self._translator.usage

    @property
    def end(self) -> End | None:
        return self._closing if self._translator is None else self._translator.end

    def start(self) -> bytes:
        """A comment: the stream's own `created` is still to come."""
        return self.keepalive()

    def keepalive(self) -> bytes:
        if self._told or self.ended:
            return b""
        return _KEEP_ALIVE if self._translator is None else self._translator.keepalive()

    def feed(self, data: bytes) -> bytes:
        if (
            self._passing
            and _is_delta(data)
            and data.find(b"\n\n") == len(data) - 2
            and not self._cutter.holding
            and self._added
        ):
            self._last, self._saying = data, True
            self._number += 1
            return data
        if self._translator is not None:
            return self._translator.feed(data)
        try:
            return self._take(self._cutter.feed(data))
        except ProxyError as error:  # an event without an end
            return self.fail(error)

    def close(self) -> bytes:
        """The end of the bytes. A last frame without its blank line gets it (SDKs drop it otherwise)."""
        rest = self._cutter.close() if self._translator is None else b""
        out = self._take([_ended(rest)]) if _is_whole(rest) else b""
        if self._translator is not None:
            return out + self._translator.close()
        return out + self.fail(ProxyError("upstream", "The backend's stream ended before its reply did."))

    def fail(self, error: ProxyError) -> bytes:
        """End the reply as failed; without effect when it has ended already."""
        if self._told or self.ended:
            self._ended = True
            return b""
        if self._translator is None and self._first is None:
            self._translate()
        if self._translator is not None:
            return self._translator.fail(error)
        return self._failed(error)

    # --- passing -------------------------------------------------------------------

    def _take(self, frames: list[bytes]) -> bytes:
        if not frames or self._mute:
            return b""
        return self._begin(frames) if self._first is None else self._pass(frames)

    def _begin(self, frames: list[bytes]) -> bytes:
        """The first event decides; comments before it wait for it."""
        first = next((event for raw in frames for event in _read(raw)[0]), None)
        self._lead += frames
        if first is None:
            return b""
        lead, self._lead = self._lead, []
        if not self._exact and not _is_created(first):
            return self._translate().feed(b"".join([*lead, self._cutter.close()]))
        response = first.get("response")
        self._first, self._passing = response if isinstance(response, dict) else {}, True
        return self._pass(lead)

    def _translate(self) -> StreamTranslator:
        call = Call("responses", self._context.model, ())
        encoder = ResponsesEncoder(call, self._context)
        decoder = ResponsesDecoder(self._profile)
        self._translator = StreamTranslator(decoder, encoder, private=self._context.private)
        return self._translator

    def _pass(self, frames: Sequence[bytes]) -> bytes:
        out: list[bytes] = []
        try:
            for raw in frames:
                if self._told:
                    self._after_the_end(raw, out)
                elif self._added and _is_delta(raw):
                    self._last, self._saying = raw, True
                    self._number += 1
                    out.append(raw)
                else:
                    self._look(raw, out)
        except Exception as fault:
            out.append(self._break(fault))
        return b"".join(out)

    def _break(self, fault: Exception) -> bytes:
        """A bug of ours: what came before it has been told, and a failure follows."""
        self._violations.count("fault")
        self._fault = fault
        error = ProxyError("internal", "The gateway failed while it checked this reply.")
        return b"" if self._told else self._failed(error)

    def _after_the_end(self, raw: bytes, out: list[bytes]) -> None:
        """Nothing but the end marker belongs there, and that once."""
        if not self._mute and _is_done(raw):
            self._ended = self._mute = True
            out.append(raw)
        elif payload_of(raw) is not None:
            self._violations.count("after_end")

    def _look(self, raw: bytes, out: list[bytes]) -> None:
        """One frame: forwarded, unless it cannot be read or fails the reply."""
        if payload_of(raw) is None and self._profile.answer.sse.comments:
            out.append(raw)
        events, mend = _read(raw)
        if mend or not (events or payload_of(raw) is None or _is_done(raw)):
            self._violations.count("not_json")
        for event in events:
            mend = self._judge(event) or mend
            error = error_of(event)
            if error is not None and not self._exact:
                out.append(self._failed(error))
                return
            kind = text_of(event.get("type"))
            if kind in _GOOD_ENDS and not self._exact:
                out += self._whole_end(event, sse(orjson.dumps(event)) if mend else raw)
                return
            out.append(sse(orjson.dumps(event)) if mend else raw)
            self._note(event, out[-1])
            if error is not None:
                self._told, self._ended, self._error = True, True, error
            elif kind in _END_TYPES:
                self._end(event, out[-1])

    def _judge(self, event: Json) -> bool:
        """Count what is wrong with an event; whether it was mended."""
        number, kind, index = event.get("sequence_number"), event.get("type"), event.get("output_index")
        if number != self._number + 1:
            self._violations.count("number_gap")
        self._number = number if isinstance(number, int) else self._number
        place = index if isinstance(index, int) else -1
        if kind == ADDED:
            self._added.add(place)
        elif ("item_id" in event or "item" in event) and place not in self._added:
            self._violations.count("not_added")
        if kind == DONE:
            self._added.discard(place)
        mended = not self._exact and self._mend(event, text_of(kind), place)
        return (kind == DONE and self._context.refusal_as_text and say_refusals(event)) or mended

    def _mend(self, event: Json, kind: str | None, place: int) -> bool:
        """Write anew what clients cannot read; whether there was any such."""
        if kind == "response.done":
            return told_end(event)
        if kind in MENDED:
            if not self._items.mend(event, place):
                return False
            self._violations.count("bad_item")
            return True
        if not (kind or "").endswith(".delta") or isinstance(event.get("delta", ""), str):
            return False
        self._violations.count("bad_delta")
        told = event["delta"]
        event["delta"] = "" if told is None else orjson.dumps(told).decode()
        return True

    def _note(self, event: Json, raw: bytes) -> None:
        """What later frames need: the last number told, and the items that are done."""
        if isinstance(event.get("sequence_number"), int):
            self._last = raw
        self._saying = self._saying or str(event.get("type")).endswith(".delta")
        item, index = event.get("item"), event.get("output_index")
        if event.get("type") == DONE and isinstance(item, dict):
            self._finished[index if isinstance(index, int) else len(self._finished)] = item
            self._saying = False

    def _whole_end(self, event: Json, raw: bytes) -> Iterator[bytes]:
        """The last event of a good reply with all of it, after what only it tells."""
        told = event.get("response")
        response: Json = told if isinstance(told, dict) else {}
        status = str(event["type"]).removeprefix("response.")
        told_late = [*self._late(untold(response.get("output"), list(self._finished.values())), status)]
        for late in told_late:
            written = frame(late["type"], late["sequence_number"], late)
            self._note(late, written)
            yield written
        output = [self._finished[index] for index in sorted(self._finished)]
        whole = response if response.get("output") == output else {**response, "output": output}
        if whole.get("status") not in ("completed", "incomplete"):
            whole = {**whole, "status": status}
        whole = tidy_response(whole, self._first)
        if whole is not told or told_late:
            own = None if told_late else event.get("sequence_number")
            number = own if isinstance(own, int) else self._next_number()
            raw = frame(str(event["type"]), number, {"response": whole})
            event = {**event, "sequence_number": number}
        self._end({**event, "response": whole}, raw)
        yield raw

    def _late(self, items: list[Json], status: str) -> Iterator[Json]:
        """The events of items that none told, numbered on (some backends tell whole replies at the end)."""
        if not items or self._saying:
            return
        encoder = ResponsesEncoder(Call("responses", self._context.model, ()), self._context)
        translator = StreamTranslator(ResponsesDecoder(self._profile), encoder)
        body = {"output": items, "status": status}
        written = translator.take(decode_reply(body, self._profile))
        number, place = self._next_number(), len(self._finished)
        events = [event for raw in FrameCutter().feed(written) for event in _read(raw)[0]]
        for event in (event for event in events if "output_index" in event):
            event["sequence_number"] = number
            event["output_index"] += place
            yield event
            number += 1

    def _end(self, event: Json, raw: bytes) -> None:
        told: Json = response if isinstance(response := event.get("response"), dict) else {}
        number = event.get("sequence_number")
        id = told.get("id")
        number = number if isinstance(number, int) else self._number
        self._closing = End(told, number, raw, id if isinstance(id, str) else "")
        self._told, self._ended, self._usage = True, self._exact, read_responses_usage(told.get("usage"))
        status = str(event["type"]).removeprefix("response.")
        if status in ("failed", "cancelled"):
            self._error = reply_error(told, status)

    # --- failing -------------------------------------------------------------------

    def _failed(self, error: ProxyError) -> bytes:
        """`response.failed` with the snapshot the stream began with and the next number."""
        self._told = self._ended = self._mute = True
        self._passing = False
        self._error = conceal(error, self._context.private)
        failed = {**(self._first or {}), "status": "failed", "error": responses_error(error)}
        last = frame("response.failed", number := self._next_number(), {"response": failed})
        self._closing = End(failed, number, last)
        return last if self._exact else last + END

    def _next_number(self) -> int:
        numbers = [event.get("sequence_number") for event in _read(self._last)[0]]
        told = [number for number in numbers if isinstance(number, int)]
        return max(told, default=-1) + 1


def _read(raw: bytes) -> tuple[list[Json], bool]:
    """The objects of a frame, and whether they have to be written anew for clients to read them."""
    payload = payload_of(raw)
    if payload is None:
        return [], False
    value, plain = read_json(payload)
    if isinstance(value, list):
        return [each for each in value if isinstance(each, dict)], True
    return [value] if isinstance(value, dict) else [], not plain


def _is_delta(raw: bytes) -> bool:
    """Whether a frame is a delta of text that every client can read."""
    return (
        raw.startswith(DELTA_HEADS)
        and (b'"delta":"' in raw or b'"delta": "' in raw)
        and b"NaN" not in raw
        and has_whole_characters(raw)
    )


def _is_done(raw: bytes) -> bool:
    return (payload_of(raw) or b"").strip() == b"[DONE]"


def _is_created(event: Json) -> bool:
    """The beginning of a stream that SDKs can follow; MLflow agents send none.

    llama.cpp's has neither numbers nor places: the OpenAI SDK's accumulator raises on its second
    item (R, llama.cpp of October 2026).
    """
    numbered = isinstance(event.get("sequence_number"), int)
    return numbered and event.get("type") == "response.created" and is_whole(event.get("response"))


def _is_whole(raw: bytes) -> bool:
    """Whether a frame without its blank line has all of its data."""
    return bool(_read(raw)[0]) or _is_done(raw)


def _ended(raw: bytes) -> bytes:
    return raw if raw.endswith((b"\n\n", b"\r\r")) else raw.rstrip(b"\r\n") + b"\n\n"
