"""`profile.messages` and the rules of this wire applied to the `input` items of a body.

Every rule gives new items and leaves the client's alone; an item that needs nothing stays
the same object, and its loss is told at the place where the client sent it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..dialect import Loss, Repair
from ..images import refuse_remote_images
from ..ir import Json
from ..profile import MessageRules, Profile
from .edit_media import edit_media
from .edit_thoughts import NOT_TAKEN, REASONING, is_answer, replayed, swept, untied
from .ids import call_id, made_id, short_id
from .keys import ITEMS, PARTS, only_known
from .pairing import Placed, plain_ids, repair_owners, repair_pairs

_PREFIXES = {"message": "msg", "function_call": "fc", "custom_tool_call": "ctc"}
"""How the ids of this wire's items begin."""


def edit_input(body: Json, profile: Profile, losses: list[Loss]) -> list[Repair]:
    """Edit `input` (and `instructions`, where system messages move there) in place.

    Gives the repairs. Raises 400 for remote images where the profile rejects them.
    """
    given = body.get("input")
    if not isinstance(given, list):
        return []
    edit_media(body, profile.messages.media, losses)
    given = body["input"]
    if profile.messages.remote_images == "reject":
        refuse_remote_images(body)
    placed = [Placed(item, f"/input/{index}") for index, item in enumerate(given)]
    whole, placed = placed, replayed(placed, body, profile, losses)
    if placed is not whole and profile.reasoning.sweep:
        if body.get("store") is False and not _is_partial(body, placed):
            placed = swept(placed, losses)
        placed = untied(whole, placed)
    plain_ids(placed)
    repairs = repair_owners(placed)
    placed = [kept for one in placed for kept in _edited(one, profile, losses)]
    placed = [one for one in placed if not _says_nothing(one, profile.messages)] or placed
    if not _is_partial(body, placed):
        placed, found = repair_pairs(placed)
        repairs += found
    if profile.messages.trailing_assistant == "drop":
        repairs += _drop_trailing(placed, losses)
    _gather_system(body, placed, profile.messages)
    body["input"] = [one.item for one in placed]
    return repairs


def _is_partial(body: Json, placed: list[Placed]) -> bool:
    """Whether calls may be elsewhere: in stored items or in what a compaction stands for."""
    if any(body.get(key) is not None for key in ("previous_response_id", "conversation", "prompt")):
        return True
    return any(one.type in ("item_reference", "compaction") or _is_reference(one.item) for one in placed)


def _is_reference(item: Any) -> bool:
    return isinstance(item, dict) and "id" in item and not item.keys() - {"id", "type"}


# --- one item --------------------------------------------------------------------------


def _edited(one: Placed, profile: Profile, losses: list[Loss]) -> Iterator[Placed]:
    item = one.item
    if not isinstance(item, dict):
        yield one
        return
    if profile.request.extra_keys is not None:
        item = only_known(item, ITEMS, profile.request.extra_keys)
    item = _with_ids(item, profile)
    if one.type == "message":
        item = _message(item, one.at, profile, losses)
    elif isinstance(item.get("output"), list):
        item = _with_parts(item, "output", one.at, profile, losses)
    if item is not None:
        yield Placed(item, one.at)


def _with_ids(item: Json, profile: Profile) -> Json:
    changed: Json = {}
    rule, limit = profile.messages.tool_call_id, profile.request.id_max_len
    known = item.get("call_id")
    if isinstance(known, str) and (fitting := call_id(known, rule)) != known:
        changed["call_id"] = fitting
    item = _own_id(item)
    own = item.get("id")
    if limit is not None and isinstance(own, str) and len(own) > limit:
        changed["id"] = short_id(own, limit)
    return {**item, **changed} if changed else item


def _own_id(item: Json) -> Json:
    """An id of another wire's form is left out, or derived anew where it must be there.

    OpenAI answers 400 to it ("Expected an ID that begins with 'fc'"); conversations that move
    from one backend to another bring such ids along.
    """
    own, kind = item.get("id"), item.get("type") or ("message" if "role" in item else None)
    prefix = _PREFIXES.get(kind) if isinstance(kind, str) else None
    if prefix is None or not isinstance(own, str) or own.startswith(prefix):
        return item
    if kind == "message" and item.get("role") == "assistant":
        return {**item, "id": made_id("msg_", own)}
    return {key: value for key, value in item.items() if key != "id"}


def _message(item: Json, at: str, profile: Profile, losses: list[Loss]) -> Json | None:
    """The message as the backend takes it, None when nothing is left of an assistant's turn."""
    rules, role = profile.messages, item.get("role")
    if role == "developer" and rules.developer != "keep":
        item = {**item, "role": rules.developer}
    if not isinstance(item.get("content"), list):
        return item
    item = _with_parts(item, "content", at, profile, losses)
    return None if role == "assistant" and not item["content"] else item


def _says_nothing(one: Placed, rules: MessageRules) -> bool:
    """Whether nothing is left of a message, as this backend counts blank text."""
    if one.type != "message" or not isinstance(one.item, dict) or "content" not in one.item:
        return False
    content = one.item["content"]
    is_blank = isinstance(content, str) and not content.strip()
    return content == [] or (is_blank and rules.drop_empty_text)


def _with_parts(item: Json, key: str, at: str, profile: Profile, losses: list[Loss]) -> Json:
    """`item` with its content (or output) list edited, the same object when nothing was."""
    parts = [
        kept
        for index, part in enumerate(item[key])
        for kept in _part(part, f"{at}/{key}/{index}", item, profile, losses)
    ]
    same = len(parts) == len(item[key]) and all(a is b for a, b in zip(parts, item[key], strict=True))
    return item if same else {**item, key: parts}


def _part(part: Any, at: str, item: Json, profile: Profile, losses: list[Loss]) -> Iterator[Any]:
    rules = profile.messages
    if not isinstance(part, dict):
        yield part
        return
    kind = part.get("type")
    if kind in REASONING and rules.reasoning_items == "drop":
        losses.append(Loss(at, NOT_TAKEN, "bookkeeping"))
        return
    if rules.drop_empty_text and _is_blank(part):
        return
    if profile.request.extra_keys is not None:
        part = only_known(part, PARTS, profile.request.extra_keys)
    asked = item.get("role") == "assistant" and rules.assistant_parts == "input"
    yield _as_input(part) if asked else part


def _is_blank(part: Json) -> bool:
    text = part.get("text")
    return isinstance(text, str) and not text.strip()


def _as_input(part: Json) -> Json:
    """An old answer's part as if it were input: the open-responses surface knows `input_*` only."""
    kind = part.get("type")
    if kind == "refusal":
        return {"type": "input_text", "text": part.get("refusal") or ""}
    if not isinstance(kind, str) or not kind.startswith("output_"):
        return part
    rest = {key: value for key, value in part.items() if key not in ("annotations", "logprobs")}
    return {**rest, "type": "input_" + kind.removeprefix("output_")}


# --- the whole list --------------------------------------------------------------------


def _drop_trailing(placed: list[Placed], losses: list[Loss]) -> list[Repair]:
    """Take assistant messages off the end, which some backends refuse as prefill; a call stays.

    An input of nothing but assistant messages is left as it is: something must be asked.
    """
    end = len(placed)
    while end and is_answer(placed[end - 1]):
        end -= 1
    if not end or end == len(placed):
        return []
    losses += [Loss(one.at, "the conversation must end with the user", "content") for one in placed[end:]]
    repairs = [Repair("request", "trailing_assistant")] * (len(placed) - end)
    del placed[end:]
    return repairs


def _gather_system(body: Json, placed: list[Placed], rules: MessageRules) -> None:
    """System and developer messages as one, in `instructions`; only words can move there."""
    if rules.system == "many":
        return
    first = next((i for i, one in enumerate(placed) if _system_text(one) is None), len(placed))
    reach = len(placed) if rules.system == "hoist_all" else first
    moving = [one for one in placed[:reach] if _system_text(one) is not None]
    own = body.get("instructions")
    texts = [own] if isinstance(own, str) and own else []
    if not moving or (rules.system == "merge_leading" and len(texts) + len(moving) < 2):
        return
    texts += [text for one in moving if (text := _system_text(one))]
    body["instructions"] = "\n\n".join(texts)
    placed[:] = [one for one in placed if one not in moving]


def _system_text(one: Placed) -> str | None:
    """The words of a system message, None for anything else."""
    if one.type != "message" or not isinstance(one.item, dict):
        return None
    if one.item.get("role") not in ("system", "developer"):
        return None
    content = one.item.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(_is_text(part) for part in content):
        return None
    return "\n\n".join(part["text"] for part in content)


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str)
