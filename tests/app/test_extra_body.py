"""`[providers.extra_body]` over HTTP: the last word on every body, and never taken back."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.app.conftest import Serve
from tests.app.test_pipeline import provider
from tests.app.test_recovery import CHAT, post, refusing
from tests.backends.replies import json_reply
from tests.backends.scripted import ScriptedBackend

EXTRA = {"temperature": 0.25, "chat_template_kwargs": {"thinking": True}, "seed": 7}
RESPONSES = {"model": "p/m", "input": "hi"}


@pytest.mark.parametrize(
    ("route", "body", "wire"),
    [
        ("/v1/chat/completions", CHAT, "chat"),
        ("/v1/responses", RESPONSES, "chat"),
        ("/v1/chat/completions", CHAT, "responses"),
        ("/v1/responses", RESPONSES, "responses"),
        ("/v1/embeddings", RESPONSES, "chat"),
    ],
    ids=["chat-pass", "chat-translate", "responses-translate", "responses-pass", "embeddings"],
)
def test_it_is_in_every_body(
    serve: Serve, scripted: ScriptedBackend, route: str, body: Any, wire: str
) -> None:
    served = serve(fresh=True, providers=[provider(scripted, wire=wire, extra_body=EXTRA)])
    assert post(served, body, route).status_code == 200
    (sent,) = scripted.bodies()
    assert {key: sent[key] for key in EXTRA} == EXTRA
    assert sent["model"] == "m"
    assert not served.log("provider:extra_body_overrides")


def test_tables_merge_the_rest_replaces_and_each_key_is_named_once(
    serve: Serve, scripted: ScriptedBackend
) -> None:
    served = serve(fresh=True, providers=[provider(scripted, extra_body=EXTRA)])
    kwargs = {"thinking": False, "depth": 2}
    body = {**CHAT, "temperature": 1, "seed": 7, "chat_template_kwargs": kwargs}
    for _ in range(3):
        assert post(served, body).status_code == 200
    sent = scripted.bodies()[-1]
    assert (sent["temperature"], sent["chat_template_kwargs"]) == (0.25, {"thinking": True, "depth": 2})
    told = served.log("provider:extra_body_overrides")
    assert [(line["provider"], line["key"]) for line in told] == [
        ("p", "temperature"),
        ("p", "chat_template_kwargs.thinking"),
    ]
    assert all(line["level"] == "warning" for line in told)


def test_it_wins_over_the_profile(serve: Serve, scripted: ScriptedBackend) -> None:
    rules = {"request": {"drop": ["seed"], "force": {"temperature": 1}}}
    served = serve(fresh=True, providers=[provider(scripted, extra_body=EXTRA, overrides=rules)])
    post(served, {**CHAT, "seed": 1})
    (sent,) = scripted.bodies()
    assert (sent["seed"], sent["temperature"]) == (7, 0.25)


def test_without_it_the_clients_bytes_go_out(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(fresh=True, providers=[provider(scripted)])
    raw = b'{ "model":"p/m",  "messages":[{"role":"user","content":"hi"}], "seed":1.0 }'
    with served.client() as client:
        client.post("/v1/chat/completions", content=raw)
    assert scripted.requests[-1].body == raw.replace(b"p/m", b"m")


@pytest.mark.parametrize(
    ("field", "more"), [("seed", {}), ("seed", {"seed": 1}), ("chat_template_kwargs.thinking", {})]
)
@pytest.mark.parametrize("learns", [True, False])
def test_its_refusal_is_told_and_not_learned(
    serve: Serve, scripted: ScriptedBackend, field: str, more: Any, learns: bool
) -> None:
    scripted.play(refusing(field))
    rules = {"request": {"learn_rejections": learns}}
    served = serve(fresh=True, providers=[provider(scripted, extra_body=EXTRA, overrides=rules)])
    for count in (1, 2):
        reply = post(served, {**CHAT, **more})
        assert (reply.status_code, len(scripted.requests)) == (400, count)
        assert reply.json()["error"]["message"].endswith(f"({field} comes from the extra_body of provider p)")
    assert not served.log("provider:field_rejected")


def test_what_the_client_asked_is_still_left_out(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(refusing("top_p"))
    served = serve(fresh=True, providers=[provider(scripted, extra_body=EXTRA)])
    reply = post(served, {**CHAT, "top_p": 0.5})
    assert (reply.status_code, reply.headers["x-dragoman-dropped"]) == (200, "/top_p")
    sent = scripted.bodies()[-1]
    assert sent["seed"] == 7
    assert "top_p" not in sent


def test_a_refusal_of_something_else_is_not_blamed_on_it(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(refusing("messages.0.content"))
    served = serve(fresh=True, providers=[provider(scripted, extra_body=EXTRA)])
    reply = post(served, CHAT)
    assert (reply.status_code, len(scripted.requests)) == (400, 1)
    assert "extra_body" not in reply.text


def test_it_counts_for_the_size(serve: Serve, scripted: ScriptedBackend) -> None:
    rules = {"request": {"max_body_bytes": 1000}}
    served = serve(
        fresh=True, providers=[provider(scripted, extra_body={"note": "x" * 1000}, overrides=rules)]
    )
    assert post(served, CHAT).status_code == 413
    assert not scripted.requests


def test_the_bytes_are_json(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(fresh=True, providers=[provider(scripted, extra_body={"a": [1, {"b": None}]})])
    post(served, CHAT)
    assert orjson.loads(scripted.requests[-1].body)["a"] == [1, {"b": None}]


def test_a_refusal_of_embeddings_is_told_too(serve: Serve, scripted: ScriptedBackend) -> None:
    error = {"message": "unknown field seed", "type": "invalid_request_error", "param": "seed"}
    scripted.play(json_reply({"error": error}, 400))
    served = serve(fresh=True, providers=[provider(scripted, extra_body=EXTRA)])
    reply = post(served, RESPONSES, "/v1/embeddings")
    assert "(seed comes from the extra_body of provider p)" in reply.json()["error"]["message"]
