"""Pictures, documents and sound for a backend that takes none: `messages.media` of the profile.

    keep       goes on, as far as the backend's wire has a form for it
    describe   a text takes its place, e.g. `[image: plan.png, image/png, 12.3 KB]`, and that is a loss
    refuse     a 400 naming the modality and the place

The address of a picture is told without its query and credentials: a signed URL is a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from .dialect import Loss
from .errors import bad_request, param_at
from .ir import Audio, File, Image, Opaque, Part, Refusal, Text
from .profile import MediaRule, MediaRules

_PART_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("image_url", "input_image"), "image"),
    **dict.fromkeys(("file", "input_file"), "file"),
    "input_audio": "audio",
}
"""Part type, in either shape -> the modality that the profile has a rule for."""

_INSTEAD: Mapping[str, str] = {
    "image": "Leave it out, or say in words what it shows.",
    "file": "Leave it out, or send its text.",
    "audio": "Leave it out, or send a transcript.",
}

_DATA_URL = re.compile(r"data:([^;,]{0,100})[^,]{0,200},", re.IGNORECASE)
_ADDRESS = re.compile(r"\s*https?://(?:[^/?#]*@)?([^/?#@]+)([^?#]*)", re.IGNORECASE)
"""Host and path, without credentials, query and fragment."""
_NOT_IN_A_LABEL = re.compile(r"[\s\[\]\x00-\x1f\x7f]+")
_LONGEST_LABEL = 200
_UNITS = ("KB", "MB", "GB")


def modality_of(kind: object) -> str | None:
    """`image`, `file` or `audio` for a part's type, None for every other part."""
    return _PART_TYPES.get(kind) if isinstance(kind, str) else None


def keeps_all(rules: MediaRules) -> bool:
    """Whether no medium is refused or told in words, so that nobody needs to look for one."""
    return rules.image == rules.file == rules.audio == "keep" and rules.tool_results in ("lift", "keep")


@dataclass(frozen=True, slots=True)
class MediaPolicy:
    """The rules for one request; what is told in words goes into `losses`."""

    rules: MediaRules
    losses: list[Loss]

    def lowered(self, parts: Sequence[Part], at: str, in_result: bool) -> Sequence[Part]:
        """The parts, described where the profile says so; `in_result`: in a tool's result on the Chat wire.

        `at` points to the list of parts. Raises 400 (`ProxyError`) for a refused one.
        """
        if keeps_all(self.rules):
            return parts
        return [self.lower(part, f"{at}/{i}", in_result) for i, part in enumerate(parts)]

    def lower(self, part: Part, at: str, in_result: bool) -> Part:
        """One part; `at` points to it."""
        modality = _modality(part)
        if modality not in _INSTEAD:
            return part
        rule: MediaRule = getattr(self.rules, modality)
        where = ""
        if rule == "keep" and in_result and self.rules.tool_results in ("describe", "refuse"):
            rule, where = self.rules.tool_results, " in the result of a tool"
        if rule == "keep":
            return part
        if rule == "describe":
            return self._described(part, at, f"this backend takes no {modality}{where}: told in words")
        param = param_at(at)
        words = f"`{param}`: this model's backend takes no {modality}{where}. {_INSTEAD[modality]}"
        raise bad_request(words, param)

    def unsaid(self, part: Part, at: str, what: str) -> Text:
        """What takes the place of a part that the backend's wire has no form for.

        `what` ends "this model's backend takes no ..."; raises 400 unless `unsupported` is `describe`.
        """
        at = (part.at if isinstance(part, Opaque) else "") or at
        if self.rules.unsupported == "describe":
            return self._described(part, at, "this backend's wire has no form for it: told in words")
        param = param_at(at)
        raise bad_request(f"`{param}`: this model's backend takes no {what}.", param)

    def _described(self, part: Part, at: str, reason: str) -> Text:
        self.losses.append(Loss(at, reason, "content"))
        return Text(described(part))


def described(part: Part) -> str:
    """`[modality: name, media type, size]`, with what is known of it."""
    name, media_type, size = _facts(part)
    known = [_label(name), _label(media_type), _size(size)]
    told = ", ".join(fact for fact in known if fact)
    return f"[{_label(_modality(part))}: {told}]" if told else f"[{_label(_modality(part))}]"


def _modality(part: Part) -> str:
    match part:
        case Image():
            return "image"
        case File():
            return "file"
        case Audio():
            return "audio"
        case Opaque():
            return _PART_TYPES.get(part.type, part.type)
        case Text() | Refusal():
            return "text"
        case _:
            assert_never(part)


def _facts(part: Part) -> tuple[str, str, int]:
    """Name, media type and size in bytes; empty and 0 where unknown."""
    match part:
        case Image():
            return _of_source(part.url, part.file_id)
        case File():
            name, media_type, size = _of_source(part.data or part.url, part.file_id)
            return part.filename or name, media_type, size or _decoded(part.data or "")
        case Audio():
            return "", f"audio/{part.format}", _decoded(part.data)
        case _:
            return "", "", 0


def _of_source(source: str | None, file_id: str | None) -> tuple[str, str, int]:
    if source is None:
        return file_id or "", "", 0
    data = _DATA_URL.match(source)
    if data is not None:
        return "", data[1].lower(), _decoded(source[data.end() :])
    return _address(source), "", 0


def _address(url: str) -> str:
    """Host and path of an address, nothing else of it; empty for what is none."""
    found = _ADDRESS.match(url)
    return f"{found[1]}{found[2]}" if found else ""


def _decoded(text: str) -> int:
    """Bytes that base64 stands for."""
    return len(text.rstrip("=")) * 3 // 4


def _label(text: str) -> str:
    """One line, without the brackets that end a description."""
    plain = _NOT_IN_A_LABEL.sub(" ", text).strip()
    return plain if len(plain) <= _LONGEST_LABEL else plain[:_LONGEST_LABEL] + "..."


def _size(size: int) -> str:
    if size < 1000:
        return f"{size} B" if size else ""
    amount = size / 1000
    for unit in _UNITS[:-1]:
        if amount < 999.95:
            return f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} {_UNITS[-1]}"
