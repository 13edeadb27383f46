"""What of the SDK's types we do not handle, each with its reason; everything else must be handled."""

from __future__ import annotations

_HOSTED = "a hosted tool's: kept whole for a backend that runs it, left out and reported elsewhere"
_PROGRESS = "progress of a hosted tool: its item tells the whole when it is done"
_AUDIO = "a spoken reply has no neutral form; it passes untouched between equal shapes"
_RESULT = "answers of hosted tools in an output: kept whole, shown by Responses clients only"

_HOSTED_CALLS = (
    *(
        "file_search_call",
        "web_search_call",
        "computer_call",
        "computer_call_output",
        "image_generation_call",
    ),
    *("code_interpreter_call", "local_shell_call", "local_shell_call_output", "shell_call"),
    *("shell_call_output", "apply_patch_call", "apply_patch_call_output", "mcp_list_tools"),
    *("mcp_approval_request", "mcp_approval_response", "mcp_call", "program", "program_output"),
)
_HOSTED_TOOLS = (
    *("apply_patch", "code_interpreter", "computer", "computer_use_preview", "file_search"),
    *("image_generation", "local_shell", "mcp", "programmatic_tool_calling", "shell", "web_search"),
    *("web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"),
)
_HOSTED_EVENTS = {
    "code_interpreter_call_code": ("delta", "done"),
    "image_generation_call": ("partial_image",),
    "mcp_call": ("failed",),
    "mcp_call_arguments": ("delta", "done"),
    "mcp_list_tools": ("failed",),
    "shell_call_command": ("added", "delta", "done"),
    "shell_call_output_content": ("delta", "done"),
}
_AUDIO_EVENTS = ("audio.delta", "audio.done", "audio.transcript.delta", "audio.transcript.done")
_FIELD = "no neutral meaning: travels to a backend of the Responses shape only"
_COUNT = "no neutral count: part of the sums that are told"

UNSUPPORTED: dict[str, dict[str, str]] = {
    "chat delta": {"audio": _AUDIO},
    "chat message": {"audio": _AUDIO},
    "chat chunk": {
        "moderation": "a verdict of OpenAI's own; it passes between equal shapes",
        "obfuscation": "padding of OpenAI's own frames; ours have none",
    },
    "chat completion": {
        "metadata": "echoed for stored completions; nothing is stored here",
        "moderation": "a verdict of OpenAI's own; it passes between equal shapes",
    },
    "chat usage": dict.fromkeys(
        (
            *("accepted_prediction_tokens", "rejected_prediction_tokens"),
            *("audio_tokens", "image_tokens", "text_tokens"),
        ),
        _COUNT,
    ),
    "responses request": {
        **dict.fromkeys(("access_programs", "background_options", "image"), _FIELD),
        "stream_options": "asks for padding of the frames, which ours do not have",
    },
    "responses input": {
        **dict.fromkeys(_HOSTED_CALLS, _HOSTED),
        **dict.fromkeys(("compaction", "configuration_update"), _FIELD),
    },
    "responses output": {
        **dict.fromkeys(_HOSTED_CALLS, _HOSTED),
        **dict.fromkeys(
            ("function_call_output", "custom_tool_call_output", "tool_search_output", "additional_tools"),
            _RESULT,
        ),
        "compaction": _FIELD,
    },
    "responses tools": dict.fromkeys(_HOSTED_TOOLS, _HOSTED),
    "responses events": {
        **{f"response.{kind}.{step}": _PROGRESS for kind, steps in _HOSTED_EVENTS.items() for step in steps},
        **{f"response.{kind}": _AUDIO for kind in _AUDIO_EVENTS},
        "response.compaction.compacting": "progress; the item tells the whole",
        "response.queued": "no backend is asked for background work: it is done here",
    },
    "responses statuses": {
        "queued": "no backend is asked for background work: it is done here",
        "in_progress": "no backend is asked for background work: it is done here",
    },
    "responses usage": {"cache_write_tokens_details": _COUNT},
}
"""Group -> name -> why."""
