"""Calls written as tags: Qwen3-Coder, GLM, DeepSeek from 3.2 on, Kimi from K3 on.

Values are raw text and may hold the very tags: a closing tag counts only where the structure
lets it stand.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from html import unescape

from ..lenient import json_in
from .argument_values import Offer, coerced, object_of, quoted
from .brackets import BLANK, BrokenMarkupError, begins
from .pieces import Found
from .reader import HEAD_LENGTH, Parsed, Reader

_NOT_YET = -1
_NOT_HERE = -2


class TagReader(Reader):
    """Looks for the closing tag that is meant as one."""

    def __init__(self, offer: Offer, close: str) -> None:
        self._offer = offer
        self._close = close
        self._name = ""
        self._named = 0
        """Where the name ends."""
        self._headed = False
        self._at = 0

    def read(self, text: str) -> Parsed | None:
        if not self._headed:
            headed = self._head(text[:HEAD_LENGTH])
            if headed is None:
                return self.unfinished(text)
            if not headed:
                raise BrokenMarkupError
            self._headed = True
        return self._search(text)

    def finish(self, text: str) -> Parsed | None:
        """The last mark of a call may be missing, its closing tag not."""
        whole = self._headed and text.rstrip().endswith(self._close)
        return Parsed(len(text), (self._call(text.rstrip()),)) if whole else None

    def _search(self, text: str) -> Parsed | None:
        while (at := text.find(self._close, self._at)) >= 0:
            end = self._end(text, at)
            if end == _NOT_YET:
                self._at = at
                return None
            if end != _NOT_HERE:
                return Parsed(end, (self._call(text[:end]),))
            self._at = at + len(self._close)
        self._at = max(self._at, len(text) - len(self._close) + 1)
        return None

    @abstractmethod
    def _head(self, text: str) -> bool | None:
        """Whether a call begins; None while it cannot be told."""

    def _end(self, text: str, at: int) -> int:
        """Where the call ends if the closing tag at `at` is meant."""
        return at + len(self._close)

    @abstractmethod
    def _call(self, text: str) -> Found:
        """The call; `text` ends with its last mark."""

    def _found(self, values: list[tuple[str, str]]) -> Found:
        pairs = [(key, coerced(value, self._offer.schema(self._name, key))) for key, value in values]
        return Found(self._name, object_of(pairs))


def _matches(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """All of them; what stands between would be lost, so the text is no call if something does."""
    if pattern.sub("", text).strip():
        raise BrokenMarkupError
    return list(pattern.finditer(text))


_XML_NAME = re.compile(r"\s*(?:<function=)?\s*([^>\s]+)\s*>")
_XML_PARAMETER = re.compile(
    r"<parameter=([^>\n]+)>(.*?)(?:</parameter>(?=\s*(?:<parameter=|\Z))|(?=\n<parameter=[^>\n]+>\n)|\Z)",
    re.DOTALL,
)
_XML_FOLLOWERS = ("</tool_call>", "<function=", "<tool_call>")


class XmlReader(TagReader):
    """`<function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>`.

    Models leave out the opening `<tool_call>`, and a `</parameter>` before the next tag.
    """

    def __init__(self, offer: Offer, opener: str) -> None:
        super().__init__(offer, "</function>")
        self._bare = opener == "<function="

    def _head(self, text: str) -> bool | None:
        known = True if self._bare else begins(text.lstrip(BLANK), ("<function=",))
        if not known:
            return known
        if match := _XML_NAME.match(text):
            self._name, self._named = match[1], match.end()
            return True
        return None if re.fullmatch(r"\s*(?:<function=)?[^>\s]*", text) else False

    def _end(self, text: str, at: int) -> int:
        after = at + len(self._close)
        rest = text[after : after + 64].lstrip(BLANK)
        known = begins(rest, _XML_FOLLOWERS)
        if known is None:
            return _NOT_YET
        if not known:
            return _NOT_HERE
        if rest.startswith("</tool_call>"):
            return text.index("</tool_call>", after) + len("</tool_call>")
        return after

    def _call(self, text: str) -> Found:
        body = text[self._named :].removesuffix("</tool_call>").rstrip()
        matches = _matches(_XML_PARAMETER, body.removesuffix(self._close))
        return self._found(
            [(match[1].strip(), match[2].removeprefix("\n").removesuffix("\n")) for match in matches]
        )


_GLM_NAME = re.compile(r"\s*([\w.\-]*)\s*")
_GLM_PAIR = re.compile(
    r"<arg_key>([^<]*)</arg_key>\s*<arg_value>(.*?)"
    r"(?:</arg_value>(?=\s*(?:<arg_key>|\Z))|\Z)",
    re.DOTALL,
)


class GlmReader(TagReader):
    """`<tool_call>NAME<arg_key>K</arg_key><arg_value>V</arg_value></tool_call>`."""

    def __init__(self, offer: Offer) -> None:
        super().__init__(offer, "</tool_call>")

    def _head(self, text: str) -> bool | None:
        match = _GLM_NAME.match(text)
        self._name, self._named = (match[1], match.end()) if match else ("", 0)
        rest = text[self._named :]
        return begins(rest, ("<arg_key>", "</tool_call>")) if self._name or not rest else False

    def _end(self, text: str, at: int) -> int:
        closed = text[max(0, at - 64) : at].rstrip().endswith("</arg_value>")
        if closed or text.find("<arg_value>", 0, at) < 0:
            return at + len(self._close)
        return _NOT_HERE

    def _call(self, text: str) -> Found:
        matches = _matches(_GLM_PAIR, text[self._named :].removesuffix(self._close))
        return self._found([(match[1].strip(), match[2]) for match in matches])


_DSML_HEAD = re.compile(r'\s+name="([^"\n]+)"\s*(/?)>')
_DSML_PARAMETER = re.compile(r'<｜DSML｜ ?parameter name="([^"]*)"(?: string="(true|false)")?>')
_DSML_CLOSE = re.compile(r"</｜DSML｜ ?parameter>\s*")


class DsmlReader(TagReader):
    """`<｜DSML｜invoke name="NAME">`, parameters that say whether they are strings; maybe self-closing."""

    def __init__(self, offer: Offer, opener: str) -> None:
        super().__init__(offer, f"</{opener[1:]}>")
        self._empty = False

    def _head(self, text: str) -> bool | None:
        if match := _DSML_HEAD.match(text):
            self._name, self._named = match[1], match.end()
            self._empty = bool(match[2])
            return True
        return False if ">" in text else None

    def _search(self, text: str) -> Parsed | None:
        if self._empty:
            return Parsed(self._named, (Found(self._name, "{}"),))
        return super()._search(text)

    def _call(self, text: str) -> Found:
        body = text[self._named :].removesuffix(self._close).strip()
        pairs, at = [], 0
        while at < len(body):
            head = _DSML_PARAMETER.match(body, at)
            close = _DSML_CLOSE.search(body, head.end()) if head else None
            if head is None or close is None:
                raise BrokenMarkupError
            pairs.append((head[1], self._value(head[1], head[2], body[head.end() : close.start()])))
            at = close.end()
        return Found(self._name, object_of(pairs))

    def _value(self, key: str, is_string: str | None, raw: str) -> str:
        if is_string == "true":
            return quoted(raw)
        if is_string and json_in(raw) is not None:
            return raw.strip()
        return coerced(raw, self._offer.schema(self._name, key))


_XTML_HEAD = re.compile(r'"([^"]+)"[^<>]*<\|sep\|>')
_XTML_CLOSE = "<|close|>argument<|sep|>"
_XTML_ARGUMENT = re.compile(
    r'<\|open\|>argument key="([^"]*)"(?: type="([^"]*)")?<\|sep\|>(.*?)'
    r"<\|close\|>argument<\|sep\|>(?=\s*(?:<\|open\|>argument key=|\Z))",
    re.DOTALL,
)


class XtmlReader(TagReader):
    """`"NAME" index="1"`, then `argument` tags that say their type, up to the end of `call`.

    Names are escaped as in XML, values are not.
    """

    def __init__(self, offer: Offer) -> None:
        super().__init__(offer, "<|close|>call<|sep|>")

    def _head(self, text: str) -> bool | None:
        if match := _XTML_HEAD.match(text):
            self._name, self._named = unescape(match[1]), match.end()
            return True
        return False if "<|sep|>" in text else None

    def _end(self, text: str, at: int) -> int:
        before = text[self._named : at].rstrip()
        return at + len(self._close) if not before or before.endswith(_XTML_CLOSE) else _NOT_HERE

    def _call(self, text: str) -> Found:
        matches = _matches(_XTML_ARGUMENT, text[self._named :].removesuffix(self._close))
        pairs = [
            (unescape(match[1]), self._value(unescape(match[1]), match[2], match[3])) for match in matches
        ]
        return Found(self._name, object_of(pairs))

    def _value(self, key: str, kind: str | None, raw: str) -> str:
        if kind == "string":
            return quoted(raw)
        if kind and json_in(raw) is not None:
            return raw.strip()
        return coerced(raw, self._offer.schema(self._name, key))
