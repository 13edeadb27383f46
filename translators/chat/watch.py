"""The watcher of the pass lane: Chat bytes forwarded, only odd frames rewritten.

Frames are cut whole, so that nothing of ours ever lands inside one. The first ordinary text chunk teaches
what a chunk of this stream looks like around its text (`pattern.py`): later frames like it need no look.
All others are parsed and mended if they must be (`tidy.py`). Frames of a tool call that is not whole yet
are held, a frame or two, until it is known whether the client may have them as they are.

An exact backend is not mended: only the end is watched, and the usage chunk filtered.
"""

from __future__ import annotations

import orjson

from ..dialect import ReplyContext
from ..errors import ProxyError, conceal
from ..framing import FrameCutter, payload_of, sse
from ..guard import Violations
from ..ir import Json, Usage
from ..lenient import is_torn_object
from ..profile import Profile
from ..toolcalls import Piece, StreamedCall
from ..usage import read_chat_usage
from .choice import Choice
from .chunk import ChunkHead, first_choice, objects_in, says_something
from .finish import (
    chat_reason,
    cut_short,
    failure_in,
    lost_piece,
    nameless_call,
    read_finish,
    settle_finish,
    stopped_by_failure,
)
from .pattern import FramePattern, without_role
from .tidy import call_delta, tidy_choices, tidy_message, tidy_reply, tidy_usage

__all__ = ["ChatWatcher", "tidy_reply"]

_DONE = b"data: [DONE]\n\n"
_RUN = 4
"""Frames from which on it is cheaper to look at all of them at once."""


class ChatWatcher:
    """One stream; implements `dialect.ReplyStream`."""

    end = None

    def __init__(self, profile: Profile, context: ReplyContext) -> None:
        self.begun = self.told = self.ended = self._lost = False
        self.error: ProxyError | None = None
        self.fault: Exception | None = None
        self.violations = Violations()
        self.usage: Usage | None = None
        self._profile, self._context, self._rules = profile, context, profile.answer
        self._exact, self._hide_usage = profile.answer.exact, not context.include_usage
        self._cutter = FrameCutter()
        self._choices: dict[int, Choice] = {}
        self._calling: dict[int, Choice] = {}  # those with calls in frames that are held
        self._finished = 0  # how many have told their end
        self._held: list[tuple[bytes, Json, bool]] = []
        self._head = ChunkHead(context)
        self._pattern = FramePattern()
        self._call: tuple[Choice, StreamedCall] | None = None

    def start(self) -> bytes:
        return b""

    def keepalive(self) -> bytes:
        return b"" if self.ended else b": keep-alive\n\n"

    def feed(self, data: bytes) -> bytes:
        if self._is_ordinary(data):
            return data
        out: list[bytes] = []
        try:
            self._take_all(self._cutter.feed(data), out)
        except ProxyError as error:  # an event without an end
            self._break_off(error, out)
        except Exception as fault:
            self._break(fault, out)
        return b"".join(out)

    def _take_all(self, frames: list[bytes], out: list[bytes]) -> None:
        place = self._pass_run(frames, 0, out)
        while place < len(frames):
            frame, lessons = frames[place], self._pattern.lessons
            place += 1
            if self._ordinary(frame):
                out.append(self._pattern.written(frame))
                continue
            self._look(frame, out)
            if self._pattern.lessons > lessons:
                place = self._pass_run(frames, place, out)

    def close(self) -> bytes:
        """End of the bytes: a reply that had finished gets its `[DONE]`, any other an error."""
        out: list[bytes] = []
        try:
            if rest := self._cutter.close().rstrip(b"\r\n"):
                self._look(rest + b"\n\n", out)
            self._break_off(cut_short("reply" if self._choices else ""), out)
        except Exception as fault:
            self._break(fault, out)
        return b"".join(out)

    def fail(self, error: ProxyError) -> bytes:
        out: list[bytes] = []
        self._break_off(error, out)
        return b"".join(out)

    def _break(self, fault: Exception, out: list[bytes]) -> None:
        """A bug of ours: what came before it has been told, and a failure follows."""
        self.violations.count("fault")
        self.fault = self.fault or fault
        if not self.ended:
            self._fail(ProxyError("internal", "The gateway failed while it checked this reply."), out)

    def _note_finish(self, choice: Choice) -> None:
        """A choice has told its end; when all that were asked for have, usage and `[DONE]` may follow."""
        self._finished += not choice.finished
        choice.finished = True
        asked = self._context.echo.get("n")
        self.told = self._finished >= (asked if isinstance(asked, int) else 1)

    def _break_off(self, error: ProxyError, out: list[bytes]) -> None:
        """No more bytes: the end of a reply that had finished, the failure of any other."""
        if self.ended:
            return
        optional = self._rules.sse.done == "optional"
        if optional and self._choices and all(choice.finished for choice in self._choices.values()):
            self._release(out)
            self.ended = True
            out.append(_DONE)
        else:
            self._fail(error, out)

    # --- the short way -----------------------------------------------------------------

    def _is_ordinary(self, data: bytes) -> bool:
        """Whether a whole read is ordinary text."""
        return not (self._busy or self._cutter.holding) and self._pattern.covers(data)

    @property
    def _busy(self) -> bool:
        """Whether frames have to be looked at one by one."""
        return bool(self._held) or self.ended or self._exact or self._call is not None

    def _pass_run(self, frames: list[bytes], place: int, out: list[bytes]) -> int:
        """Let the ordinary frames from `place` on go at once; the place of the next one."""
        if self._busy or len(frames) - place < _RUN:
            return place
        end = place + self._pattern.run(frames[place:])
        out += frames[place:end]
        return end

    def _ordinary(self, frame: bytes) -> bool:
        """Whether the frame differs from a known good one in nothing but the text it brings."""
        if self._held or self.ended:
            return False
        if self._exact:
            usual = b'"finish_reason":null' in frame and b'"usage":{' not in frame
            return usual and bool(self._choices) and b'"error":' not in frame
        if not self._pattern.matches(frame):
            return False
        return self._call is None or self._more_of_call(self._pattern.quoted(frame))

    def _more_of_call(self, quoted: bytes) -> bool:
        """An ordinary piece of the call that was learned, noted; False: it needs a look."""
        try:
            text: str = orjson.loads(quoted)
        except orjson.JSONDecodeError:
            return False
        if self._call is None or text[:1] in ("", "{"):
            return False
        known, call = self._call
        known.calls.grow(call, text)
        return True

    def _learn(self, frame: bytes, name: str) -> bool:
        """Take a good frame as the pattern of the next ones; the role has been told by now."""
        bare = b'"role"' in frame
        if (bare and without_role(frame) is None) or not self._pattern.learn(frame, name, bare):
            return False
        self._call = None
        return True

    def _learn_text(self, frame: bytes, delta: Json) -> None:
        names = [name for name, value in delta.items() if value and name != "role"]
        if len(names) == 1 and isinstance(delta[names[0]], str):
            self._learn(frame, names[0])

    def _learn_call(self, frame: bytes, choice: Json) -> None:
        """The pattern of a piece of arguments, which the assembler must still be told of."""
        known, entries = self._choices[choice["index"]], choice["delta"]["tool_calls"]
        if len(entries) != 1 or len(known.pieces) != 1:
            return
        call, opens, text, extra = known.pieces[0]
        if text and not opens and not extra and self._learn(frame, "arguments"):
            self._call = (known, call)

    # --- one frame ---------------------------------------------------------------------

    def _look(self, frame: bytes, out: list[bytes]) -> None:
        data = payload_of(frame)
        if self.ended:
            self._after_the_end(data)
        elif data is None:
            if self._rules.sse.comments:
                out.append(frame)
        elif data.strip() == b"[DONE]":
            self._finish(out)
        else:
            objects, mend = objects_in(data)
            if mend or not objects:
                self.violations.count("not_json")
            if not objects and is_torn_object(data):
                self._lost = True
                if any(map(Choice.in_call, self._choices.values())):
                    self._fail(lost_piece(), out)
            for obj in objects:
                self._take(obj, sse(orjson.dumps(obj)) if mend else frame, out)

    def _after_the_end(self, data: bytes | None) -> None:
        """Left out: a client that reads on would take it for more. After a failure it is the reply's rest."""
        if data is not None and self.error is None:
            self.violations.count("after_end")

    def _take(self, obj: Json, frame: bytes, out: list[bytes]) -> None:
        if self.ended:
            return
        choice = first_choice(obj.get("choices"))
        error = failure_in(obj, choice, self._rules.content)
        if error is not None:
            self._fail(error, out)
            return
        self.begun = self.begun or choice is not None or bool(obj.get("id"))
        if self._exact:
            self._note(obj, frame, out)
        else:
            self._tidy(obj, frame, out)

    def _note(self, obj: Json, frame: bytes, out: list[bytes]) -> None:
        """An exact backend's chunk: remembered, not touched."""
        self.usage = read_chat_usage(obj.get("usage")) or self.usage
        told = obj.get("choices")
        choices = [each for each in told if isinstance(each, dict)] if isinstance(told, list) else []
        for choice in choices:
            index = at if isinstance(at := choice.get("index"), int) else 0
            known = self._choices.setdefault(index, Choice(self._rules.tool_delta))
            if choice.get("finish_reason"):
                self._note_finish(known)
        if choices or not self._hide_usage:
            out.append(frame)

    def _tidy(self, obj: Json, frame: bytes, out: list[bytes]) -> None:
        listed = isinstance(obj.get("choices"), list)
        changed = tidy_choices(obj)
        usage, mended = tidy_usage(obj, self._profile)
        self.usage = usage or self.usage
        choices: list[Json] = obj["choices"]
        if not choices and (self._hide_usage or not (listed or usage)):
            return  # usage nobody asked for, or no chunk at all but a sign of life
        changed = self._head.tidy(obj) | mended | changed
        calling, told = False, frame
        for choice in choices:
            known = self._choices.setdefault(choice["index"], Choice(self._rules.tool_delta))
            changed |= self._tidy_delta(choice, known)
            if known.has_role_again(choice["delta"]):
                frame = without_role(frame) or frame
                changed |= frame is told or len(choices) > 1
            if self._collect(choice, known):
                calling, self._calling[choice["index"]] = True, known
            changed |= self._tidy_finish(choice, known, out)
            if self.ended:
                return
        if calling:
            self._held.append((frame, obj, changed))
            if any(known.calls.waiting for known in self._calling.values()):
                return
        self._release(out)
        if not calling:
            out.append(sse(orjson.dumps(obj)) if changed else frame)
            if len(choices) == 1 and not (changed or usage or choices[0].get("finish_reason")):
                self._learn_text(told, choices[0]["delta"])

    def _tidy_delta(self, choice: Json, known: Choice) -> bool:
        delta, changed = choice.get("delta"), False
        if not isinstance(delta, dict) or "message" in choice:
            message = choice.pop("message", None)
            if not delta and isinstance(message, dict) and (known.in_messages or not known.begun):
                delta, known.in_messages = message, True
            choice["delta"] = delta = delta if isinstance(delta, dict) else {}
            changed = True
        known.begun = known.begun or bool(delta.get("content") or delta.get("tool_calls"))
        return tidy_message(delta, self._profile) or changed

    def _tidy_finish(self, choice: Json, known: Choice, out: list[bytes]) -> bool:
        told = choice.get("finish_reason")
        if told is None:
            return False
        finish = read_finish(told, self._profile.answer.finish_map)
        if finish == "failed":
            self._fail(stopped_by_failure(told), out)
            return True
        if finish is None or known.finished:
            if finish is not None:
                self.violations.count("second_finish")
            choice["finish_reason"] = None
            return True
        self._note_finish(known)
        known.pieces += known.calls.settle()
        if known.calls.nameless():
            self._fail(nameless_call(), out)
        elif self._lost and any(not call.parsable for call in known.calls.calls):
            self._fail(cut_short("tool call"), out)
        implied = self._profile.answer.tool_calls_imply_finish
        choice["finish_reason"] = chat_reason(told, finish, bool(known.calls.calls), implied)
        return bool(choice["finish_reason"] != told)

    # --- tool calls --------------------------------------------------------------------

    def _collect(self, choice: Json, known: Choice) -> bool:
        """Feed the assembler; whether the choice brings anything of a call."""
        entries = choice["delta"].get("tool_calls")
        if not entries:
            return False
        if not isinstance(entries, list):
            entries, known.calls.clean = [entries], False
        known.pieces += known.calls.feed(entries)
        return True

    def _release(self, out: list[bytes]) -> None:
        """Let the held frames go: as they are, or the same written anew."""
        if not self._held:
            return
        for known in self._calling.values():
            known.pieces += known.calls.settle()
        clean = all(known.calls.clean for known in self._calling.values())
        if clean and not any(changed for _, _, changed in self._held):
            out += [frame for frame, _, _ in self._held]
            frame, obj, _ = self._held[0]
            if len(self._held) == len(obj["choices"]) == 1 and not obj["choices"][0].get("finish_reason"):
                self._learn_call(frame, obj["choices"][0])
        else:
            self._pattern.forget()
            self._call = None  # its index may mean another call from here on
            chunks = [self._rewritten(obj) for _, obj, _ in reversed(self._held)]
            out += [sse(orjson.dumps(obj)) for obj in reversed(chunks) if says_something(obj)]
        for known in self._calling.values():
            known.pieces, known.calls.clean = [], True
        self._calling, self._held = {}, []

    def _rewritten(self, obj: Json) -> Json:
        """The chunk with the pieces that wait for its choices; called from the last one back."""
        for choice in obj["choices"]:
            known = self._choices[choice["index"]]
            choice["delta"].pop("tool_calls", None)
            if known.pieces:
                choice["delta"]["tool_calls"] = [self._written(piece) for piece in known.pieces]
                known.pieces = []
        return obj

    def _written(self, piece: Piece) -> Json:
        return call_delta(piece, (piece.call.id or self._context.new_id("call_")) if piece.opens else "")

    # --- the end -----------------------------------------------------------------------

    def _finish(self, out: list[bytes]) -> None:
        """`[DONE]`. Some servers send no finish reason at all: then one is made of what came."""
        self._release(out)
        unfinished = {index: known for index, known in self._choices.items() if not known.finished}
        if not self._choices:
            self._fail(cut_short(""), out)
            return
        calls = [call for known in unfinished.values() for call in known.calls.calls]
        if any(not call.parsable or not call.name for call in calls):
            self._fail(cut_short("tool call"), out)
            return
        if unfinished and not self._exact:
            out.append(self._finish_chunk(unfinished))
        self.ended = True
        out.append(_DONE)

    def _finish_chunk(self, unfinished: dict[int, Choice]) -> bytes:
        choices: list[Json] = [
            {"index": index, "delta": {}, "finish_reason": settle_finish(None, bool(known.calls.calls))}
            for index, known in unfinished.items()
        ]
        chunk: Json = {"choices": choices}
        self._head.tidy(chunk)
        return sse(orjson.dumps(chunk))

    def _fail(self, error: ProxyError, out: list[bytes]) -> None:
        """An error frame in OpenAI's shape, and the end; what was held back is of no more use."""
        self.ended, self.error = True, conceal(error, self._context.private)
        out += [sse(orjson.dumps({"error": error.body()})), _DONE]
