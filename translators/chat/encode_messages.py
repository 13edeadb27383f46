"""Items into Chat messages.

An assistant turn is one message: its text and its calls, whatever their order in the items
(Codex: call, text, result), with the reasoning before them. Results follow as tool messages.
Ids, phases and statuses of items have no place here and mean nothing to the model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from ..compaction import COMPACTIONS
from ..dialect import Loss, LossKind
from ..ir import AdditionalTools, Call, Item, Json, Message, Opaque, Reasoning, ToolCall, ToolResult
from ..media import MediaPolicy
from ..profile import Profile
from ..quotes import MAX_QUOTE
from ..turns import message_of
from .content import joined
from .edit_replay import NATIVE, NativeParts
from .encode_parts import content_of


class Conversation:
    """The messages of one call; `at` gives each message's place in the client's body, by `id()`."""

    def __init__(self, call: Call, profile: Profile) -> None:
        self.messages: list[Json] = []
        self.losses: list[Loss] = []
        self._media = MediaPolicy(profile.messages.media, self.losses)
        self.at: dict[int, str] = {}
        self._own = call.shape == "chat"
        self._replays = profile.reasoning.replay != "never"
        self._takes_words = profile.reasoning.mode != "off" and profile.reasoning.scope != "none"
        self._takes_native = self._takes_words and profile.reasoning.mode != "summary-only"
        self._left_out: LossKind = "bookkeeping" if self._takes_words else "policy"
        self._whole: set[str] = set()
        """Pointers of a Chat client's messages whose thought a capsule holds; words beside it repeat it."""
        if self._own and self._takes_native:
            thoughts = (item for item in call.items if isinstance(item, Reasoning) and item.native)
            self._whole = {message_of(item.at) for item in thoughts if _before(item)}
        self._signed: list[tuple[int, Json]] = []
        """Messages before a capsule, and its calls: call id -> keys that the backend wants back."""
        self._thoughts: list[Reasoning] = []
        self._called = {item.call_id for item in call.items if isinstance(item, ToolCall)}
        for item in call.items:
            self._add(item)
        self._forget_thoughts("nothing follows it")
        if self._signed:
            self._sign_calls()

    def _add(self, item: Item) -> None:
        match item:
            case Message(role="assistant"):
                self._assistant(item)
            case Message():
                self._put(self._message(item), item.at)
            case Reasoning():
                self._reasoning(item)
            case ToolCall():
                self._call(item)
            case ToolResult():
                self._put(self._result(item), item.at)
            case AdditionalTools():
                pass  # its tools are in the list of tools by now
            case Opaque():
                self._opaque(item)
            case _:
                assert_never(item)

    def _put(self, message: Json, at: str) -> None:
        self._forget_thoughts("no answer follows it")
        self.messages.append(message)
        self.at[id(message)] = at

    def _message(self, item: Message) -> Json:
        content = content_of(item.parts, f"{item.at}/content", self._media)
        message: Json = {"role": item.role, "content": content}
        if item.name:
            message["name"] = item.name
        return {**message, **item.extra} if self._own else message

    # --- assistant turns -----------------------------------------------------------

    def _assistant(self, item: Message) -> None:
        """A message of its own, unless it comes after calls that no result has answered yet."""
        message = self._message(item)
        last = self._open_turn()
        if last is None or "tool_calls" not in last:
            self._turn(message, item.at)
        else:
            last["content"] = joined(last["content"], message["content"])
            self._attach(last)

    def _call(self, item: ToolCall) -> None:
        turn = self._open_turn()
        if turn is None:
            turn = self._turn({"role": "assistant", "content": None}, item.at)
        else:
            self._attach(turn)
        turn["content"] = turn["content"] or None
        turn.setdefault("tool_calls", []).append(_call(item, self._own))

    def _open_turn(self) -> Json | None:
        """The assistant message that ends the list so far."""
        last = self.messages[-1] if self.messages else None
        return last if last is not None and last.get("role") == "assistant" else None

    def _turn(self, message: Json, at: str) -> Json:
        self.messages.append(message)
        self.at[id(message)] = at
        self._attach(message)
        return message

    # --- reasoning -----------------------------------------------------------------

    def _reasoning(self, item: Reasoning) -> None:
        if self._whole and not item.native and message_of(item.at) in self._whole:
            return
        if item.native and not self._takes_native:
            item = replace(item, native={key: item.native[key] for key in ("field",) if key in item.native})
        if item.native:
            self._native(item)
            if not (item.summary or item.content or _before(item)):
                return
        if not self._replays and not item.native.keys() - {"field"}:
            self._lose(item, "this backend does not take the reasoning of earlier turns back")
        else:
            self._thoughts.append(item)

    def _native(self, item: Reasoning) -> None:
        """What a capsule held of calls and messages is put where it came from; the rest waits for its turn.

        Calls are named by their ids, and may stand before or after it.
        """
        if calls := item.native.get("calls"):
            self._signed.append((len(self.messages), calls))
        if keys := item.native.get("message"):
            if (turn := self._open_turn()) is not None:
                turn.update(keys)
            else:
                self._lose(replace(item, sealed="message"), "no answer stands before it")

    def _sign_calls(self) -> None:
        """Signatures onto the calls of the turn that their capsule stands in, or the only call of that id.

        Some backends (Gemini) give the same ids in every reply, and refuse another call's signature.
        """
        turns: list[int] = []
        turn = 0
        calls: dict[str, dict[int, Json]] = {}
        for message in self.messages:
            turns.append(turn)
            turn += message.get("role") != "assistant"
            for call in message.get("tool_calls") or ():
                calls.setdefault(call["id"], {}).setdefault(turn, call)
        turns.append(turn)
        for place, signed in self._signed:
            for call_id, keys in signed.items():
                known = calls.get(call_id, {})
                call = next(iter(known.values())) if len(known) == 1 else known.get(turns[place])
                if call is not None:
                    call.update(keys)

    def _attach(self, turn: Json) -> None:
        """The reasoning before this turn, in the form `edit_replay` reads."""
        for item in self._latest():
            words = "\n\n".join(item.content or item.summary)
            field = item.native.get("field") or "reasoning_content"
            details = item.extra.get("reasoning_details") if self._own else None
            if item.native.get("parts"):
                turn[NATIVE] = NativeParts([*turn.get(NATIVE, ()), *item.native["parts"]])
                continue
            details = item.native.get("details") or details
            if words:
                turn[field] = joined(turn.get(field), words)
            if isinstance(details, list):
                turn["reasoning_details"] = [*turn.get("reasoning_details", ()), *details]
            if not words and details is None:
                self._lose(item, "reasoning that only its maker can read")
        self._thoughts.clear()

    def _latest(self) -> list[Reasoning]:
        """The thoughts before a turn, without those of a reply that was cut and asked for again.

        One reply's uninterrupted thought is one item, or one for each field that said something else; of
        several in a row the last is what the turn was said after, and a backend given a text that it never
        said refuses it (DeepSeek). Codex keeps the thoughts of each try. What a capsule holds is whole, and
        a Chat message is one reply.
        """
        bare = [item for item in self._thoughts if not _before(item) and (item.content or item.summary)]
        if self._own or len(bare) < 2:
            return self._thoughts
        earlier = bare[: len(bare) - _of_one_reply(bare)]
        for item in earlier:
            self._lose(item, "a later thought stands before the same answer", "policy")
        left_out = {id(item) for item in earlier}
        return [item for item in self._thoughts if id(item) not in left_out]

    def _forget_thoughts(self, reason: str) -> None:
        for item in self._thoughts:
            self._lose(item, reason)
        self._thoughts.clear()

    def _lose(self, item: Reasoning, reason: str, kind: LossKind | None = None) -> None:
        if item.summary or item.content or item.sealed or item.extra.get("reasoning_details"):
            self.losses.append(Loss(item.at, reason, kind or self._left_out))

    # --- the rest ------------------------------------------------------------------

    def _result(self, item: ToolResult) -> Json:
        """The name is told where it is all there is, or where the client told it in this shape."""
        at = f"{item.at}/{'content' if self._own else 'output'}"
        content = content_of(item.parts, at, self._media, in_result=True)
        message: Json = {"role": "tool", "tool_call_id": item.call_id, "content": content}
        if item.name and (self._own or item.call_id not in self._called):
            message["name"] = item.name
        return {**message, **item.extra} if self._own else message

    def _opaque(self, item: Opaque) -> None:
        if self._own and item.shape == "chat":
            self._put(item.raw, item.at)
        else:
            # What stands for an earlier conversation is lost with it: only its maker can read it.
            kind: LossKind = "content" if item.type in COMPACTIONS else "bookkeeping"
            reason = f"an item of type {item.type[:MAX_QUOTE]} means nothing to this backend"
            self.losses.append(Loss(item.at, reason, kind))


def _before(item: Reasoning) -> bool:
    """Whether a capsule held something that stands before the answer."""
    return "parts" in item.native or "details" in item.native


def _of_one_reply(thoughts: list[Reasoning]) -> int:
    """How many at the end of `thoughts` are of one reply: more than one where each names another field."""
    fields: set[str] = set()
    for item in reversed(thoughts):
        field = item.native.get("field")
        if field is None or field in fields:
            break
        fields.add(field)
    return len(fields) or 1


def _call(item: ToolCall, own: bool) -> Json:
    if item.kind == "custom":
        kind, written = "custom", {"name": item.name, "input": item.arguments}
    else:
        # No JSON at all is what many clients record for a call without arguments.
        arguments = item.arguments if item.arguments.strip() else "{}"
        kind, written = "function", {"name": item.name, "arguments": arguments}
    call = {"id": item.call_id, "type": kind, kind: written}
    return {**call, **item.extra} if own else call
