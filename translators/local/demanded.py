"""`structured_outputs` of a request, vLLM's key: one of

    {"json": SCHEMA}   {"regex": TEXT}   {"choice": [TEXT, ...]}   {"grammar": LARK}

what the whole answer must be; `regex` and `grammar` as llguidance reads them.
"""

from __future__ import annotations

from typing import Any

from ..errors import bad_request
from ..ir import Json

KEY = "structured_outputs"
_KINDS = ("json", "regex", "choice", "grammar")


def demanded(body: Json) -> tuple[str, Any] | None:
    """Kind and value; None where nothing is demanded. Raises 400 for what is no such demand."""
    told = body.get(KEY)
    if told is None:
        return None
    given = (
        [(key, value) for key, value in told.items() if value is not None] if isinstance(told, dict) else []
    )
    if len(given) != 1 or given[0][0] not in _KINDS:
        raise bad_request(f"`{KEY}` must be an object with one of {', '.join(_KINDS)}.", KEY)
    kind, value = given[0]
    if not _is_right(kind, value):
        forms = {"json": "a schema", "choice": "a list of texts, none empty"}
        raise bad_request(f"`{KEY}.{kind}` must be {forms.get(kind, 'a text, not empty')}.", f"{KEY}.{kind}")
    if body.get("response_format") is not None or _is_forced(body.get("tool_choice")):
        raise bad_request(f"`{KEY}` and another demand of the answer: leave one of them out.", KEY)
    return kind, value


def _is_right(kind: str, value: Any) -> bool:
    if kind == "json":
        return isinstance(value, dict)
    texts = value if kind == "choice" else [value]
    return isinstance(texts, list) and bool(texts) and all(isinstance(text, str) and text for text in texts)


def _is_forced(choice: Any) -> bool:
    return choice == "required" or isinstance(choice, dict)
