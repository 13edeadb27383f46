"""Request headers over the provider's overrides, over HTTP: what they set, and what they may not."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from app.layers import GUARDED, read_layers
from tests.app.conftest import Serve
from tests.backends.scripted import ScriptedBackend
from translators.errors import ProxyError

TABLE = "x-dragoman-overrides"
CLIENTS = ("chat/completions", "responses")


def provider(backend: ScriptedBackend, **more: Any) -> dict[str, Any]:
    url = f"{backend.origin}/v1"
    return {"name": "p", "kind": "openai", "base_url": url, "wire": "chat", "profile": "openai", **more}


def body(client: str, model: str = "gpt-5.5", **more: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {"input": "hi"}
    if client == "chat/completions":
        asked = {"messages": [{"role": "user", "content": "hi"}]}
    return {"model": f"p/{model}", **asked, **more}


def said(client: str, effort: str | None) -> dict[str, Any]:
    if effort is None:
        return {}
    return {"reasoning_effort": effort} if client == "chat/completions" else {"reasoning": {"effort": effort}}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("own", [None, "low"])
@pytest.mark.parametrize("header", [None, "", "medium"])
@pytest.mark.parametrize("configured", [None, "high"])
def test_body_over_header_over_provider_over_row(
    serve: Serve,
    scripted: ScriptedBackend,
    client: str,
    own: str | None,
    header: str | None,
    configured: str | None,
) -> None:
    overrides = {"overrides": {"reasoning": {"default_effort": configured}}} if configured else {}
    headers = {} if header is None else {"x-dragoman-effort": header}
    with serve(providers=[provider(scripted, **overrides)]).client() as http:
        reply = http.post(f"/v1/{client}", json=body(client, **said(client, own)), headers=headers)
    assert reply.status_code == 200
    sent = scripted.requests[-1]
    assert orjson.loads(sent.body).get("reasoning_effort") == (own or header or configured)
    assert not [name for name in sent.headers if str(name).lower().startswith("x-dragoman")]


@pytest.mark.parametrize("client", CLIENTS)
def test_one_header_sets_sections_and_the_others_win_over_it(
    serve: Serve, scripted: ScriptedBackend, client: str
) -> None:
    table = {"reasoning": {"default_effort": "low"}, "request": {"defaults": {"seed": 7}}}
    headers = {TABLE: orjson.dumps(table).decode(), "x-dragoman-effort": "HIGH"}
    own = {"overrides": {"request": {"defaults": {"user": "u", "seed": 1}}}}
    with serve(providers=[provider(scripted, **own)]).client() as http:
        assert http.post(f"/v1/{client}", json=body(client), headers=headers).status_code == 200
        assert http.post(f"/v1/{client}", json=body(client)).status_code == 200
    first, second = (orjson.loads(request.body) for request in scripted.requests[-2:])
    assert [first.get(key) for key in ("reasoning_effort", "seed", "user")] == ["high", 7, "u"]
    assert [second.get(key) for key in ("reasoning_effort", "seed", "user")] == [None, 1, "u"]


@pytest.mark.parametrize(("scope", "goes"), [("all", 2), ("none", 0)])
def test_the_scope_of_reasoning(serve: Serve, scripted: ScriptedBackend, scope: str, goes: int) -> None:
    def thought(text: str) -> dict[str, Any]:
        return {"role": "assistant", "content": "a", "reasoning_content": text}

    user = {"role": "user", "content": "hi"}
    asked = {"model": "p/m", "messages": [user, thought("one"), user, thought("two"), user]}
    rules = {"overrides": {"reasoning": {"replay": "field"}}, "profile": "base"}
    with serve(providers=[provider(scripted, **rules)]).client() as http:
        headers = {"x-dragoman-reasoning-scope": scope}
        assert http.post("/v1/chat/completions", json=asked, headers=headers).status_code == 200
    assert scripted.requests[-1].body.count(b'"reasoning_content"') == goes


def test_the_mode_of_reasoning(serve: Serve, scripted: ScriptedBackend) -> None:
    with serve(providers=[provider(scripted, wire="responses")]).client() as http:
        headers = {"x-dragoman-reasoning-mode": "encrypted"}
        assert http.post("/v1/responses", json=body("responses"), headers=headers).status_code == 200
    assert orjson.loads(scripted.requests[-1].body)["include"] == ["reasoning.encrypted_content"]


FAULTS = [
    ({TABLE: "{"}, TABLE, ["not valid JSON"]),
    ({TABLE: "[1]"}, TABLE, ["must be a JSON object"]),
    ({TABLE: '{"reasoning":{"scop":"all"}}'}, TABLE, ['reasoning.scop: unknown key, did you mean "scope"?']),
    (
        {TABLE: '{"reasoning":{"scope":"some","mdoe":1},"tools":{"max":"x"}}'},
        TABLE,
        ["reasoning.scope: should be", "reasoning.mdoe: unknown", "tools.max: should be"],
    ),
    ({TABLE: '{"request":{"chars_per_token":3}}'}, TABLE, ["needs `request.context_window`"]),
    ({TABLE: '{"request":{"defaults":{"stream":true}}}'}, TABLE, ["request.defaults.stream: is the call's"]),
    ({TABLE: '{"a":' + "[" * 220 + "]" * 220 + "}"}, TABLE, ["levels deep"]),
    ({TABLE: '{"reasoning":{"tags":["<t>",""]}}'}, TABLE, ["reasoning.tags: should hold no empty text"]),
    ({"x-dragoman-effort": "ultra"}, "x-dragoman-effort", ["'xhigh'"]),
    ({"x-dragoman-reasoning-mode": "on"}, "x-dragoman-reasoning-mode", ["'summary-only'"]),
    ({"x-dragoman-reasoning-scope": "x"}, "x-dragoman-reasoning-scope", ["'turn'"]),
    (
        {"x-dragoman-reasoning-scope": "x", "x-dragoman-effort": "y"},
        "x-dragoman-effort",
        ["x-dragoman-effort: should be", "x-dragoman-reasoning-scope: should be"],
    ),
]


@pytest.mark.parametrize(("headers", "param", "words"), FAULTS)
@pytest.mark.parametrize("client", CLIENTS)
def test_every_fault_is_told_at_once(
    serve: Serve,
    scripted: ScriptedBackend,
    client: str,
    headers: dict[str, str],
    param: str,
    words: list[str],
) -> None:
    with serve(providers=[provider(scripted)]).client() as http:
        reply = http.post(f"/v1/{client}", json=body(client), headers=headers)
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, param)
    assert all(each in error["message"] for each in words)
    assert scripted.requests == []


@pytest.mark.parametrize("place", sorted(GUARDED))
@pytest.mark.parametrize("value", [{"kind": "none"}, 5, None, False])
def test_what_only_the_configuration_may_say(place: tuple[str, ...], value: object) -> None:
    layer: Any = value
    for step in reversed(place):
        layer = {step: layer}
    with pytest.raises(ProxyError) as refused:
        read_layers({TABLE.encode(): orjson.dumps(layer)})
    assert (refused.value.kind, refused.value.param) == ("bad_request", TABLE)
    assert refused.value.message == f"{TABLE}: {'.'.join(place)}: is for the configuration only"


def test_nothing_set_is_no_layer() -> None:
    assert read_layers({b"user-agent": b"x"}) is None
    assert read_layers({b"x-dragoman-effort": b" ", TABLE.encode(): b""}) is None
    assert read_layers({TABLE.encode(): b"{}"}) is None


def test_false_turns_a_key_off() -> None:
    assert read_layers({TABLE.encode(): b'{"reasoning":{"tags":false}}'}) == {"reasoning": {"tags": None}}
