"""How a Chat reply ends: what `finish_reason` means, and which objects are failures.

A profile's `answer.finish_map` comes first; a reason it maps to null ends nothing well. Then
the table of what was met in the field (vLLM, Gemini, Anthropic, DeepSeek, GLM, ... names).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ..errors import ProxyError, error_in
from ..ir import FinishReason, Json

Finish = FinishReason | Literal["failed"]

_NAMES: Mapping[Finish, tuple[str, ...]] = {
    "stop": (
        *("stop", "end_turn", "stop_sequence", "eos", "eos_token", "end", "end_of_text", "complete"),
        *("completed", "finish", "finished", "done", "success"),
    ),
    "length": (
        *("length", "max_tokens", "max_output_tokens", "max_completion_tokens", "max_length"),
        *("model_length", "model_context_window_exceeded", "context_length_exceeded", "incomplete"),
    ),
    "tool_calls": ("tool_calls", "tool_call", "tool_use", "function_call", "function_calls"),
    "content_filter": (
        *("content_filter", "content_filtered", "safety", "refusal", "recitation", "blocklist"),
        *("prohibited_content", "spii", "image_safety", "sensitive", "guardrail_intervened"),
    ),
    "failed": (
        *("error", "failed", "network_error", "insufficient_system_resource", "server_error"),
        *("cancelled", "canceled", "abort", "aborted", "timeout", "malformed_function_call"),
    ),
}

_MEANING: Mapping[str, Finish] = {name: finish for finish, names in _NAMES.items() for name in names}


def read_finish(reason: Any, finish_map: Mapping[str, str | None]) -> Finish | None:
    """The end that a choice tells; None: it goes on (some send "" all along).

    A reason nobody knows is a "stop": the backend says that it has finished.
    """
    if not isinstance(reason, str) or not reason:
        return None
    if reason in finish_map:
        reason = finish_map[reason] or "failed"
    if reason in _MEANING:  # already in the table's form
        return _MEANING[reason]
    return _MEANING.get(reason.lower().replace("-", "_").replace(" ", "_"), "stop")


def settle_finish(finish: FinishReason | None, has_calls: bool, calls_imply: bool = True) -> FinishReason:
    """The one true reason: calls in the reply decide between "stop" and "tool_calls".

    Gemini and vLLM (forced choices) say "stop" over calls, vLLM "tool_calls" over none.
    `calls_imply` False: the backend's "stop" over calls is kept.
    """
    if has_calls and (finish is None or (finish == "stop" and calls_imply)):
        return "tool_calls"
    if finish is None or (finish == "tool_calls" and not has_calls):
        return "stop"
    return finish


def chat_reason(told: Any, finish: FinishReason | None, has_calls: bool, calls_imply: bool) -> str:
    """The reason to tell a Chat client; "function_call" is the older form's own word for it."""
    if told == "function_call" and not has_calls:
        return "function_call"
    return settle_finish(finish, has_calls, calls_imply)


def cut_short(piece: str) -> ProxyError:
    """The bytes ended inside a `piece` ("reply", "tool call"), or before there was any ("")."""
    where = f"in the middle of a {piece}" if piece else "without a reply"
    return ProxyError("upstream", f"The backend ended its stream {where}.")


def lost_piece() -> ProxyError:
    """A frame inside a tool call that is no JSON: the arguments may be whole without it, and wrong."""
    return ProxyError("upstream", "The backend's stream broke inside a tool call: a frame of it is no JSON.")


def no_choices() -> ProxyError:
    return ProxyError("upstream", "The backend's reply has no choices.")


def nameless_call() -> ProxyError:
    return ProxyError("upstream", "The backend sent a tool call without a name.")


def stopped_by_failure(reason: Any) -> ProxyError:
    return ProxyError("upstream", f"The backend broke off its reply (finish_reason {reason!r}).")


def failure_in(obj: Json, choice: Json | None, content: str = "any") -> ProxyError | None:
    """The error in a chunk or reply whose first choice is `choice`, in whatever shape.

    `content` is `answer.content` of the profile: where it is `string`, content of another kind is one.
    """
    if choice is None or obj.get("error") or "base_resp" in obj or "error_code" in obj:
        return error_in(obj)
    if choice.get("error"):
        return error_in({"error": choice["error"]})
    return _not_text(choice) if content == "string" else None


def _not_text(choice: Json) -> ProxyError | None:
    for told in (choice.get("delta"), choice.get("message")):
        if isinstance(told, dict) and not isinstance(told.get("content"), str | None):
            return ProxyError("upstream", "The backend's content is no text, as its profile demands.")
    return None
