"""A Chat body made fit for one backend: the whole profile, in one order.

Both lanes go through here: the pass lane with the client's own body, the translate lane with
the canonical one of `encode`. Nothing is done twice, and nothing twice gives the same.

The order is part of the rules: reasoning decides on `tool_choice` and sampling, so it comes
before them; formats told in words need the messages; no message moves after the cache marks;
keys are dropped after everything that reads them.
"""

from __future__ import annotations

from typing import Any

from ..dialect import Encoded
from ..ir import Json
from ..profile import Profile
from ..request_rules import of_client, set_defaults
from .edit_arrange import arrange
from .edit_body import clamp_numbers, drop_keys, finish_body, rename_keys
from .edit_cache import mark_cache
from .edit_choice import edit_choice
from .edit_draft import Draft
from .edit_format import edit_format, say_json
from .edit_messages import edit_each
from .edit_reasoning import ask_reasoning
from .edit_tools import edit_tools


def edit_request(body: Json, profile: Profile) -> Encoded:
    """The profile applied; idempotent, `body` unmutated. Losses point into `body`.

    `changed` False and the same body when nothing had to be done. Raises 400 (`ProxyError`)
    for what the backend cannot be asked.
    """
    draft = Draft(body, profile)
    defaults = set_defaults(draft.body, profile.request) if profile.request.defaults else None
    rename_keys(draft)
    edit_tools(draft)
    ask_reasoning(draft)
    edit_choice(draft)
    places = edit_each(draft)
    edit_format(draft)
    arrange(draft, places)
    say_json(draft)
    mark_cache(draft)
    drop_keys(draft)
    clamp_numbers(draft)
    finish_body(draft)
    if defaults:
        draft.losses = of_client(draft.losses, defaults)
    if draft.body == body:
        return Encoded(body, draft.losses, draft.repairs, changed=False)
    return Encoded(draft.body, draft.losses, draft.repairs)


def passes(body: Json, profile: Profile) -> bool:
    """Whether edits alone make this body fit, so that the reply needs no translation either.

    Not when a tool, a call in the history or the output format must become something else:
    the reply would then have to be turned back.
    """
    format = body.get("response_format")
    asks_schema = isinstance(format, dict) and format.get("type") == "json_schema"
    if asks_schema and profile.output_format.json_schema == "tool":
        return False
    if not all(_takes(tool, profile) for tool in _dicts(body.get("tools"))):
        return False
    messages = _dicts(body.get("messages"))
    if profile.request.extra_keys is not None and any(_is_old(message) for message in messages):
        return False
    if _takes({"type": "custom"}, profile):
        return True
    return not any(call.get("type") == "custom" for m in messages for call in _dicts(m.get("tool_calls")))


def _takes(tool: Json, profile: Profile) -> bool:
    rules = profile.tools
    kind = tool.get("type") or "function"
    if kind == "custom":
        return "custom" in rules.types and rules.custom == "keep"
    return kind in rules.types or (kind != "function" and rules.builtin == "keep")


def _is_old(message: Json) -> bool:
    """Whether it is of the form that OpenAI had before tools; no backend with a closed schema knows it."""
    return message.get("role") == "function" or message.get("function_call") is not None


def _dicts(value: Any) -> list[Json]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
