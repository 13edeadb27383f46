"""The estimate that a request is refused by before it is sent."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from translators.budget import check_context
from translators.errors import ProxyError
from translators.profile import RequestRules

LONG = "a" * 4040


def chat(*contents: Any, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": each} for each in contents], **more}


def check(body: dict[str, Any], param: str = "input", **rules: Any) -> None:
    check_context(orjson.dumps(body), RequestRules(**rules), param=param)


@pytest.mark.parametrize(
    ("body", "rules"),
    [
        (chat(LONG), {}),
        (chat("short"), {"context_window": 1000}),
        (chat(LONG), {"context_window": 1010}),
        (chat(LONG), {"context_window": 1000, "chars_per_token": 5.0}),
        (chat([{"image_url": {"url": "data:image/png;base64," + LONG * 9}}]), {"context_window": 1000}),
        (chat([{"input_audio": {"data": LONG * 9}}]), {"context_window": 1000}),
        ({"input": [{"type": "reasoning", "encrypted_content": LONG}]}, {"context_window": 1000}),
        ({"input": [1] * 5000}, {"context_window": 1000}),
    ],
)
def test_what_may_fit_is_let_through(body: dict[str, Any], rules: dict[str, Any]) -> None:
    check(body, **rules)


@pytest.mark.parametrize(
    ("body", "param", "held"),
    [
        (chat(LONG), "messages", "system 0, tools 0, history 1010"),
        ({"messages": [{"role": "system", "content": LONG}]}, "messages", "system 1010, tools 0, history 0"),
        ({"input": LONG}, "input", "system 0, tools 0, history 1010"),
        ({"instructions": LONG, "input": "four"}, "input", "system 1010, tools 0, history 1"),
        (chat("four", tools=[{"function": {"description": LONG}}]), "messages", "tools 1010, history 1"),
    ],
)
def test_what_cannot_fit_is_refused_with_its_numbers(body: dict[str, Any], param: str, held: str) -> None:
    with pytest.raises(ProxyError) as told:
        check(body, param, context_window=1000)
    assert (told.value.param, told.value.kind) == (param, "context_length")
    assert (told.value.http_status, told.value.body()["code"]) == (400, "context_length_exceeded")
    assert held in str(told.value)
    assert "1000" in str(told.value)
