"""A Chat body, a profile, and what must come of them: the form of every `edit_request` case."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import TypeAdapter

from translators.chat.edit import edit_request
from translators.errors import ProxyError
from translators.profile import Profile

_ADAPTER = TypeAdapter(Profile)
USER = {"role": "user", "content": "x"}


def profile(**sections: Any) -> Profile:
    """A profile written the way a configuration writes it."""
    return _ADAPTER.validate_python(sections)


OPENAI = {
    "answer": {"exact": True},
    "messages": {"developer": "keep"},
    "tools": {
        "types": ["function", "custom"],
        "custom": "keep",
        "builtin": "keep",
        "strict": "keep",
        "choice": {"allowed_tools": "keep"},
    },
    "request": {
        "max_tokens_key": "max_completion_tokens",
        "rename": {"max_tokens": "max_completion_tokens"},
    },
    "reasoning": {"efforts": ["none", "minimal", "low", "medium", "high", "xhigh", "max"]},
    "output_format": {"needs_json_word": True},
}


@dataclass
class Edit:
    """`given` becomes `wanted` (None: stays the same object); both without model and a user message."""

    id: str
    given: dict[str, Any]
    wanted: dict[str, Any] | None = None
    rules: dict[str, Any] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    repairs: int = 0

    def check(self) -> None:
        body = {"model": "m", "messages": [USER], **self.given}
        before = copy.deepcopy(body)
        rules = profile(**self.rules)
        edited = edit_request(body, rules)
        assert body == before, "the input is not touched"
        if self.wanted is None:
            assert edited.body is body
            assert not edited.changed
        else:
            assert edited.body == {"model": "m", "messages": [USER], **self.wanted}
            assert edited.changed
        assert [loss.pointer for loss in edited.losses] == self.lost
        assert len(edited.repairs) == self.repairs
        again = edit_request(edited.body, rules)
        assert again.body is edited.body, "a second edit finds nothing to do"
        assert not again.changed


@dataclass
class Refusal:
    """`given` is refused with a 400 that names `param`."""

    id: str
    given: dict[str, Any]
    param: str
    rules: dict[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        with pytest.raises(ProxyError) as caught:
            edit_request({"model": "m", "messages": [USER], **self.given}, profile(**self.rules))
        assert caught.value.http_status == 400
        assert caught.value.param == self.param


def table(*cases: Edit | Refusal) -> pytest.MarkDecorator:
    """Parametrise a test over cases by their ids."""
    assert len({case.id for case in cases}) == len(cases)
    return pytest.mark.parametrize("case", cases, ids=[case.id for case in cases])
