"""gpt-oss: messages with a header that says channel and recipient.

`<|start|>assistant to=functions.N<|channel|>commentary <|constrain|>json<|message|>{...}<|call|>`;
the recipient may also stand after the channel. The prompt ends with `<|start|>assistant`. The
channel `final` and messages to nobody on `commentary` are text, what is said to a tool that nobody offered
(`to=python`, built into the model) is dropped, everything else is thought.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..ir import Json
from .argument_values import Offer, object_text
from .brackets import JSON, Brackets, BrokenMarkupError, begins, first_of
from .pieces import Found, Piece, Text, Thought

_MESSAGE = "<|message|>"
_HEAD_ENDS = re.compile(r"<\|(?:message|end|call|return)\|>")
_BODY_ENDS = re.compile(r"<\|(?:end|start|return)\|>")
_BODY_MARKS = ("<|end|>", "<|start|>", "<|return|>")
_HEADS = ("<|channel|>", "<|start|>", "<|message|>", "<|end|>", "to=")
_RECIPIENT = re.compile(r"to=([^\s<]+)")
_TEXT_CHANNELS = ("final", "commentary")
_FUNCTIONS = "functions."


class HarmonyParser:
    """See `TextParser` for the laws."""

    def __init__(self, tools: Sequence[Json], *, thinking_open: bool) -> None:
        self.dropped = ""
        self._has_tools = bool(tools)
        self._offer = Offer(tools)
        self._dropping = False
        """The message that we are in is not the client's."""
        self._out: list[Piece] = []
        self._buffer = ""
        self._fresh = not thinking_open
        """Nothing was read yet: a model that knows no headers is told here."""
        self._kind: type[Text] | type[Thought] | None = Thought if thinking_open else None
        """What the message is that we are in; None in a header and in a call."""
        self._name = ""
        """The function that the message calls."""
        self._scan: Brackets | None = None

    @property
    def thinking(self) -> bool:
        return self._kind is Thought

    def feed(self, text: str) -> list[Piece]:
        self._buffer += text
        while self._buffer and self._advance():
            pass
        return self._taken()

    def close(self, cut: bool) -> list[Piece]:
        rest, self._buffer = self._buffer, ""
        if self._kind is not None:
            self._put(self._kind, rest)
        elif cut:
            self.dropped += rest
        elif self._name or self._fresh:
            self._put(Text, rest)
        else:
            self._garbled(rest)
        return self._taken()

    def _taken(self) -> list[Piece]:
        out, self._out = self._out, []
        return out

    def _put(self, kind: type[Text] | type[Thought], text: str) -> None:
        if self._dropping:
            self.dropped += text
        elif text:
            self._out.append(kind(text))

    def _advance(self) -> bool:
        if self._kind is not None:
            return self._body(self._kind)
        return self._arguments() if self._name else self._head()

    def _head(self) -> bool:
        if self._fresh:
            known = begins(self._buffer.lstrip(), _HEADS)
            if known is None:
                return False
            self._fresh = False
            if not known:
                self._kind = Text
                return True
        end = _HEAD_ENDS.search(self._buffer)
        if end is None:
            return False
        head, self._buffer = self._buffer[: end.start()], self._buffer[end.end() :]
        if end[0] == _MESSAGE:
            self._begin(head)
        else:
            self._garbled(head)
        return True

    def _begin(self, head: str) -> None:
        recipients = _RECIPIENT.findall(head)
        recipient = recipients[-1] if recipients else ""
        channel = re.match(r"\s*(\w*)", head.rpartition("<|channel|>")[2])
        of_function = recipient.startswith(_FUNCTIONS)
        if (of_function and self._has_tools) or recipient in self._offer:
            self._name, self._scan = recipient.removeprefix(_FUNCTIONS), None
        elif channel and channel[1] in _TEXT_CHANNELS and not recipient:
            self._kind = Text
        else:
            self._kind, self._dropping = Thought, bool(recipient) and not of_function

    def _garbled(self, head: str) -> None:
        """A header without a message: nothing is lost, and no thought becomes an answer."""
        rest = head.rpartition("<|channel|>")[2].removeprefix("<|start|>").removeprefix("assistant")
        if rest.startswith("final"):
            self._put(Text, rest.removeprefix("final").lstrip())
        elif rest.strip():
            self._put(Thought, rest)

    def _body(self, kind: type[Text] | type[Thought]) -> bool:
        end = _BODY_ENDS.search(self._buffer)
        if end is None:
            at = _held(self._buffer)
            self._put(kind, self._buffer[:at])
            self._buffer = self._buffer[at:]
            return False
        self._put(kind, self._buffer[: end.start()])
        self._buffer, self._kind, self._dropping = self._buffer[end.end() :], None, False
        return True

    def _arguments(self) -> bool:
        """A JSON object; what is none is text."""
        try:
            end = self._end_of_arguments()
            if end is None:
                return False
            arguments = object_text(self._buffer[:end].strip())
            if arguments is None:
                raise BrokenMarkupError
        except BrokenMarkupError:
            self._name, self._kind = "", Text
            return True
        self._out += Found(self._name, arguments).pieces()
        self._name, self._buffer = "", self._buffer[end:]
        return True

    def _end_of_arguments(self) -> int | None:
        if self._scan is None:
            start = first_of(self._buffer)
            if start == len(self._buffer):
                return None
            if self._buffer[start] != "{":
                raise BrokenMarkupError
            self._scan = Brackets(JSON, start)
        return self._scan.end(self._buffer)


def _held(text: str) -> int:
    """Where the beginning of a mark stands that ends `text`."""
    at = text.rfind("<", max(0, len(text) - len(_BODY_MARKS[2])))
    return at if at >= 0 and begins(text[at:], _BODY_MARKS) is None else len(text)
