"""What is said of a request whose tool calls and results had to be put in order.

One event for a request, `provider:tool_sequence_repaired`, with the site: `message_level` for Chat messages,
`chain_pairing` for the calls and results in a Responses input. Other repairs are counted, not told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from translators.dialect import Repair
from translators.errors import ProxyError, bad_request
from translators.ir import Json, Shape

from .telemetry.trace import Trace

MAX_LISTED = 50
"""Repairs, and ids of each list, in one event; `repair_count` counts all of them."""


def sequence_repaired(trace: Trace) -> dict[str, Any] | None:
    """The event's fields, None when no tool call and no result was touched."""
    mended = [repair for repair in trace.repairs if repair.site != "request"]
    if not mended:
        return None
    made = sum(repair.closed for repair in mended)
    return {
        "request_id": trace.id.decode(),
        "target": trace.target,
        "provider": trace.target.partition("/")[0],
        "repair_site": mended[0].site,
        "repair_count": len(mended),
        "repairs": [
            {"tool_call_id": repair.tool_call_id, "tool_name": repair.tool_name}
            for repair in mended[:MAX_LISTED]
        ],
        "repair_kinds": dict(Counter(repair.kind for repair in mended)),
        **({"synthetic_assistant_count": made} if made else {}),
        **(_chain(trace, mended) if trace.pairing is not None else {}),
    }


def orphan_refused(repairs: Sequence[Repair], body: Json, shape: Shape) -> ProxyError | None:
    """The 400 for a result whose call is not there, where nothing may be told otherwise than it was sent.

    `param` names it in the client's `body`; the list it is in, where its id is not the client's own.
    """
    orphan = next((repair for repair in repairs if repair.kind == "orphan_result"), None)
    if orphan is None:
        return None
    key, id_key = ("messages", "tool_call_id") if shape == "chat" else ("input", "call_id")
    places = [at for at, each in enumerate(body[key]) if _is_result(each, orphan.tool_call_id, id_key)]
    param = f"{key}[{places[-1]}]" if places else key
    message = (
        f"{param}: the result of call {orphan.tool_call_id[:80]!r} has no call before it, and would be told "
        "as a user's words; x-dragoman-strict forbids that: send the call too, or leave the result out"
    )
    return bad_request(message, param)


def _is_result(item: Any, call_id: str, id_key: str) -> bool:
    """Of two results of one call the last is the one too many."""
    is_result = item.get("role") == "tool" or str(item.get("type")).endswith("_output")
    return is_result and (item.get(id_key) or "") == call_id


def _chain(trace: Trace, mended: Sequence[Repair]) -> dict[str, Any]:
    """What a Responses input expected of results and what it got.

    `dropped`: results under the id of an item that is not there, told as a user's words; `kept`: those whose
    item is there, sent under its call's id.
    """
    expected, provided = trace.pairing or ((), ())
    made = _ids(mended, "missing_result")
    orphans = _ids(mended, "orphan_result")
    dropped = [call_id for call_id in orphans if call_id.startswith("fc_")]
    kept = _ids(mended, "owner_id")
    return {
        "dropped_count": len(dropped),
        "dropped_item_id_outputs": dropped[:MAX_LISTED],
        "kept_count": len(kept),
        "kept_item_id_outputs": kept[:MAX_LISTED],
        "expected_call_ids": list(expected[:MAX_LISTED]),
        "provided_call_ids": [*(each for each in provided if each not in made), *orphans][:MAX_LISTED],
        "synthesized_for": made[:MAX_LISTED],
    }


def _ids(mended: Sequence[Repair], kind: str) -> list[str]:
    return [repair.tool_call_id for repair in mended if repair.kind == kind]
