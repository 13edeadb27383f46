"""What a refusal quotes is short, and everything else that it says whole."""

from __future__ import annotations

import pytest

from translators.errors import ProxyError, bad_request
from translators.quotes import MAX_QUOTE, with_short_quotes

LONG = "x" * 3000
SPACED = "two words " * 300
CUT = "x" * (MAX_QUOTE - 3) + "..."
CASES = [
    ("short", "short"),
    (f"`a` is not {LONG}, but `b`", f"`a` is not {CUT} but `b`"),
    (f"`{LONG}` is not known", f"`{CUT}` is not known"),
    (f'put "{LONG}" away', f'put "{CUT}" away'),
    (f"this model's 'kind' is '{LONG}'", f"this model's 'kind' is '{CUT}'"),
    (f"`{SPACED}`: no", f"`{SPACED[: MAX_QUOTE - 3]}...`: no"),
    ("'" + "x" * MAX_QUOTE + "'", "'" + "x" * MAX_QUOTE + "'"),
    ("`a` " + "our own words " * 20 + "`b`", "`a` " + "our own words " * 20 + "`b`"),
    ("a backend's word, " * 20, "a backend's word, " * 20),
]


@pytest.mark.parametrize(("message", "told"), CASES)
def test_quotes(message: str, told: str) -> None:
    assert with_short_quotes(message) == told
    assert bad_request(message).message == told


def test_param_is_short_too() -> None:
    assert bad_request("no", "a" * 3000).body()["param"] == "a" * 200
    assert ProxyError("internal", "no").body()["param"] is None
