"""A signed capsule for what a backend wants back and a Responses item has no place for.

    dgm1.<base64url of the payload>.<base64url of HMAC-SHA256 over all before the last dot>

It travels as `encrypted_content` of a reasoning item (to Chat clients: as an entry of
`reasoning_details`), so that no state is kept here. The payload is a flag byte (`j` plain, `z` zlib)
and compact JSON `{"target": "provider/model", "native": {...}, "after": [items, hash]}`, where `after` tells
what the reply was said after (`fingerprint.py`; Responses clients only); keys of `native`:

    parts    content parts with reasoning, word for word as the message held them
    details  the list `reasoning_details`, the fragments of a stream merged
    calls    call id -> keys of its entry in `tool_calls` (thought signatures)
    message  keys of the assistant message itself (the thought signature of a text)
    field    name of the field that the item's own words came in, where two said different things

A capsule is opened for the target that it came from only, and never believed unless its signature is
right. It can be read by whoever holds it, as the reasoning it stands for can.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from .dialect import Loss
from .fingerprint import Asked, Prefix
from .ir import Call, Item, Json, Reasoning

PREFIX = "dgm"
"""What capsules of every version begin with."""
MARK = b'"dgm'
"""How a body that holds one is told, by one look at its bytes."""
FORMAT = "dragoman"
"""`format` of an entry of `reasoning_details` whose `data` is a capsule."""
RESPONSES_FORMAT = "openai-responses-v1"
"""OpenRouter's name for the sealed reasoning of a Responses backend."""

_HEAD = "dgm1."
_LARGEST = 16 * 2**20
"""Bytes a payload may have once it is unpacked: more is no backend's reasoning."""
_WORTH = 512
"""Bytes from which packing is tried."""


@dataclass(frozen=True, slots=True)
class Seals:
    """`key()` gives the gateway's secret; it is asked only when there is something to seal or open."""

    key: Callable[[], bytes]
    target: str
    """`provider/model` of the backend asked."""
    asked: Asked | None = None
    """The request of a client whose history comes back item by item; None: changes are not looked for."""


class Unusable(ValueError):
    """A capsule that must not be sent on; the text says why."""


def seal(seals: Seals, native: Json) -> str:
    """The capsule of what one answer of this target gave."""
    content: Json = {"target": seals.target, "native": native}
    if seals.asked is not None:
        content["after"] = list(seals.asked.whole())
    return signed(seals.key, _HEAD, content)


def signed(key: Callable[[], bytes], head: str, content: Json) -> str:
    """`content` in a capsule that begins with `head`, which says what it is for."""
    plain = orjson.dumps(content)
    packed = zlib.compress(plain) if len(plain) >= _WORTH else plain
    payload = b"z" + packed if len(packed) < len(plain) else b"j" + plain
    body = head + _encode(payload)
    return f"{body}.{_encode(_signature(key, body))}"


def verified(key: Callable[[], bytes], head: str, text: str) -> Json:
    """What a capsule that begins with `head` holds. Raises `Unusable`."""
    body, _, signature = text.rpartition(".")
    if not hmac.compare_digest(signature.encode(), _encode(_signature(key, body)).encode()):
        raise Unusable("its capsule was changed, or another gateway's key signed it")
    content: Json = orjson.loads(_unpacked(_decode(body.removeprefix(head))))
    return content


def unseal(seals: Seals, text: str) -> Json:
    """What a capsule holds under `native`. Raises `Unusable`."""
    native: Json = _content(seals, text)["native"]
    return native


def _content(seals: Seals, text: str) -> Json:
    if not text.startswith(_HEAD):
        raise Unusable("its capsule is of a version that is unknown here")
    content = verified(seals.key, _HEAD, text)
    if content["target"] != seals.target:
        raise Unusable("it came from another model, which alone could use it")
    return content


def is_capsule(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(PREFIX)


def _signature(key: Callable[[], bytes], head: str) -> bytes:
    return hmac.digest(key(), head.encode("utf-8", "surrogatepass"), "sha256")


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise Unusable("its capsule cannot be read") from None


def _unpacked(payload: bytes) -> bytes:
    """Bounded: the key may be shared with a gateway that has been asked for a bomb."""
    if payload[:1] == b"j":
        return payload[1:]
    unpacker = zlib.decompressobj()
    plain = unpacker.decompress(payload[1:], _LARGEST)
    if unpacker.unconsumed_tail:
        raise Unusable("its capsule is too large")
    return plain


# --- in a request ----------------------------------------------------------------------


_THOUGHTS = ("parts", "details")
"""Keys of `native` that hold what was thought, which a changed history makes untrue.

The others sign what the history says itself, and their backend refuses the whole turn without them (Gemini:
"Function call is missing a thought_signature"), while it takes them after any history.
"""


def open_capsules(call: Call, seals: Seals | None, sweep: bool = False) -> tuple[Call, list[Loss]]:
    """`call` with what its capsules hold in `Reasoning.native`; the same one when it has none.

    `sweep`: thoughts are left out when what was said before them has changed since.
    What cannot be used is left out and told: a conversation is worth more than its thoughts.
    """
    if not any(isinstance(item, Reasoning) and is_capsule(item.sealed) for item in call.items):
        return call, []
    lost: list[Loss] = []
    seen: set[str] = set()
    items = tuple(_opened(item, seals, lost, seen, sweep) for item in call.items)
    return replace(call, items=items), lost


def _opened(item: Item, seals: Seals | None, lost: list[Loss], seen: set[str], sweep: bool) -> Item:
    if not isinstance(item, Reasoning) or item.sealed is None or not is_capsule(item.sealed):
        return item
    bare = replace(item, sealed=None)
    if item.sealed in seen:  # a client that sends an item twice must not have it given back twice
        return bare
    try:
        content = {"native": {}} if seals is None else _content(seals, item.sealed)
    except Unusable as error:
        seen.add(item.sealed)
        lost.append(Loss(item.at, f"its sealed reasoning is left out: {error}", "bookkeeping"))
        return bare
    native = content["native"]
    if native.keys() != {"field"}:  # a name alone is the same capsule in every reply
        seen.add(item.sealed)
    if sweep and seals is not None and not _still_holds(content, seals):
        reason = "its sealed reasoning is left out: what came before it was changed"
        lost.append(Loss(item.at, reason, "bookkeeping"))
        native = {key: value for key, value in native.items() if key not in _THOUGHTS}
    return replace(bare, native=native)


def _still_holds(content: Json, seals: Seals) -> bool:
    """Whether the history before a reply's thoughts is as it was; signatures alone are not asked."""
    if seals.asked is None or "after" not in content or content["native"].keys().isdisjoint(_THOUGHTS):
        return True
    return seals.asked.begins_with(Prefix(*content["after"]))


def without_capsules(body: Json) -> tuple[Json, list[Loss]]:
    """A Responses body that goes to a Responses backend, without capsules: it could not open them."""
    items = body.get("input")
    if not isinstance(items, list) or not any(_holds(item) for item in items):
        return body, []
    lost = [
        Loss(f"/input/{index}", "only the backend that gave it could use it", "bookkeeping")
        for index, item in enumerate(items)
        if _holds(item)
    ]
    kept = [_bare(item) if _holds(item) else item for item in items]
    return {**body, "input": kept}, lost


def in_messages(body: Json) -> bool:
    """Whether an assistant message of a Chat body brings a capsule back."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return False
    told = (each.get("reasoning_details") for each in messages if isinstance(each, dict))
    return any(
        is_capsule(entry.get("data"))
        for details in told
        for entry in (details if isinstance(details, list) else ())
        if isinstance(entry, dict)
    )


def _holds(item: Any) -> bool:
    return isinstance(item, dict) and is_capsule(item.get("encrypted_content"))


def _bare(item: Json) -> Json:
    return {key: value for key, value in item.items() if key != "encrypted_content"}


# --- in a reply ------------------------------------------------------------------------

_GROWING = ("text", "thinking", "summary")
"""Keys whose texts a stream tells in pieces."""


def merge_details(fragments: Iterable[Any]) -> list[Json]:
    """The entries of `reasoning_details` that a stream told in pieces.

    A piece belongs to the entry of its `index` and type; one without an index to the last entry of its
    type, unless it has another `id`.
    """
    merged: list[Json] = []
    texts: list[dict[str, list[str]]] = []
    for fragment in fragments:
        if not isinstance(fragment, dict):
            continue
        place = next((i for i in reversed(range(len(merged))) if _continues(merged[i], fragment)), None)
        if place is None:
            merged.append({})
            texts.append({})
        _grow(merged[place if place is not None else -1], texts[place if place is not None else -1], fragment)
    for entry, pieces in zip(merged, texts, strict=True):
        entry.update({key: "".join(found) for key, found in pieces.items()})
    return merged


def _continues(entry: Json, fragment: Json) -> bool:
    if entry.get("type") != fragment.get("type"):
        return False
    if fragment.get("index") is not None:
        return bool(entry.get("index") == fragment["index"])
    return entry.get("id") == fragment.get("id") and "data" not in entry


def _grow(entry: Json, texts: dict[str, list[str]], fragment: Json) -> None:
    for key, value in fragment.items():
        if key in _GROWING and isinstance(value, str):
            texts.setdefault(key, []).append(value)
            entry.setdefault(key, "")
        elif value is not None or key not in entry:
            entry[key] = value


def merge_parts(fragments: Sequence[Json]) -> list[Json]:
    """Content parts with reasoning that a stream told in pieces: `summary` and `thinking` may be lists."""
    groups: list[list[Json]] = []
    for fragment in fragments:
        if groups and groups[-1][0].get("type") == fragment.get("type"):
            groups[-1].append(fragment)
        else:
            groups.append([fragment])
    return [group[0] if len(group) == 1 else _merged_part(group) for group in groups]


def _merged_part(group: Sequence[Json]) -> Json:
    whole = merge_details({k: v for k, v in part.items() if not isinstance(v, list)} for part in group)[0]
    for key in dict.fromkeys(key for part in group for key, value in part.items() if isinstance(value, list)):
        told = [part[key] for part in group if isinstance(part.get(key), list)]
        if all(len(entries) < 2 for entries in told):  # one entry a delta: its pieces
            whole[key] = [_signed(merge_details(entry for entries in told for entry in entries))]
        else:
            whole[key] = [entry for entries in told for entry in entries]
    return whole


def _signed(entries: list[Json]) -> Json:
    return entries[0] if entries else {}


def native_of(parts: Sequence[Json], details: Sequence[Any]) -> Mapping[str, Any] | None:
    """What one thought's capsule holds, None for nothing."""
    native: Json = {}
    if parts:
        native["parts"] = merge_parts(parts)
    if details:
        native["details"] = merge_details(details)
    return native or None
