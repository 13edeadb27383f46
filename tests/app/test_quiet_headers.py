"""Answers carry no header that has nothing to say."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.conftest import Serve
from tests.app.test_pipeline import provider
from tests.app.test_recovery import CHAT, post
from tests.backends.scripted import ScriptedBackend

RESPONSES = {"model": "p/m", "input": "hi"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize(("route", "body"), [("/v1/chat/completions", CHAT), ("/v1/responses", RESPONSES)])
def test_a_plain_answer_names_its_model_and_no_more(
    serve: Serve, scripted: ScriptedBackend, route: str, body: Any, wire: str, stream: bool
) -> None:
    served = serve(providers=[provider(scripted, wire=wire)])
    reply = post(served, {**body, "stream": stream}, route)
    assert reply.status_code == 200
    assert [name for name in reply.headers if name.startswith("x-dragoman-")] == ["x-dragoman-model"]


def test_a_repair_is_counted_in_a_header(serve: Serve, scripted: ScriptedBackend) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    served = serve(providers=[provider(scripted, wire="chat")])
    reply = post(
        served,
        {
            "model": "p/m",
            "input": [{"role": "user", "content": "hi"}, call, {"role": "user", "content": "x"}],
        },
        "/v1/responses",
    )
    assert int(reply.headers["x-dragoman-repairs"]) >= 1
