"""`provider:retry` in the log: which try failed, of how many at most, how long the pause is, and why."""

from __future__ import annotations

import pytest

from app.routing.candidates import FIRST_PAUSE_S, most_retries
from tests.app.conftest import Serve, provider
from tests.app.test_recovery import post
from tests.backends.replies import chat_completion, json_reply
from tests.backends.scripted import ScriptedBackend


@pytest.mark.parametrize(
    ("budget_s", "most"), [(0, 0), (0.4, 0), (0.5, 1), (1.4, 1), (1.5, 2), (5, 3), (60, 6)]
)
def test_the_most_that_a_budget_allows(budget_s: float, most: int) -> None:
    assert most_retries(budget_s) == most
    pauses = [FIRST_PAUSE_S * 2**at for at in range(most + 1)]
    assert sum(pauses[:most]) <= budget_s < sum(pauses)


def test_the_event_says_it_all(serve: Serve, scripted: ScriptedBackend) -> None:
    busy = json_reply({"error": {"message": "busy"}}, 503, {"retry-after": "0"})
    scripted.play(busy, busy, json_reply(chat_completion("a")))
    served = serve(fresh=True, providers=[provider(scripted)])
    body = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}
    assert post(served, body).status_code == 200
    first, second = served.log("provider:retry")
    assert (first["attempt"], second["attempt"]) == (1, 2)
    for line in (first, second):
        assert (line["max_retries"], line["delay"], line["target"], line["provider"]) == (3, 0, "p/m", "p")
        assert (line["error_type"], line["error_message"]) == ("upstream", "busy")
