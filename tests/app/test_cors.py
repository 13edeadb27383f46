"""Web pages: CORS only for configured origins; other sites may not use a gateway that asks no key."""

from __future__ import annotations

import time
from typing import Any

import pytest

from config.load import parse
from config.problems import ConfigErrors
from providers.profiles import BY_NAME
from tests.app.conftest import Serve, Served, provider
from tests.backends.gateway import Gateway, config_text
from tests.backends.replies import chat_completion, json_reply
from tests.backends.scripted import ScriptedBackend

ASK = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}
PAGE = "https://chat.example.com"
KEY = {"authorization": "Bearer a-key-of-the-gateway"}
PREFLIGHT = {
    "origin": PAGE,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,x-stainless-lang",
}


def served(serve: Serve, scripted: ScriptedBackend, *origins: str, keys: bool = True) -> Served:
    server: dict[str, Any] = {"api_keys": [KEY["authorization"].split()[1]]} if keys else {}
    return serve(providers=[provider(scripted)], server={**server, "cors_origins": list(origins)})


def allowed(headers: Any) -> dict[str, str]:
    return {name: text for name, text in headers.items() if name.startswith("access-control-")}


def test_off_by_default(serve: Serve, scripted: ScriptedBackend) -> None:
    with served(serve, scripted).client() as client:
        asked = client.options("/v1/chat/completions", headers=PREFLIGHT)
        answer = client.post("/v1/chat/completions", json=ASK, headers={**KEY, "origin": PAGE})
    assert asked.status_code == 401
    assert answer.status_code == 200
    assert not allowed(asked.headers)
    assert not allowed(answer.headers)


def test_a_preflight_needs_no_key(serve: Serve, scripted: ScriptedBackend) -> None:
    with served(serve, scripted, PAGE).client() as client:
        asked = client.options("/v1/chat/completions", headers=PREFLIGHT)
        assert asked.status_code == 200
        assert asked.headers["access-control-allow-origin"] == PAGE
        assert "POST" in asked.headers["access-control-allow-methods"]
        assert "DELETE" in asked.headers["access-control-allow-methods"]
        assert asked.headers["access-control-allow-headers"] == PREFLIGHT["access-control-request-headers"]
        assert "access-control-allow-credentials" not in asked.headers
        other = client.options(
            "/v1/responses/x", headers={**PREFLIGHT, "origin": "https://other.example.com"}
        )
        assert other.status_code == 400
        assert "access-control-allow-origin" not in other.headers
        assert client.post("/v1/chat/completions", json=ASK, headers={"origin": PAGE}).status_code == 401


@pytest.mark.parametrize("stream", [False, True])
def test_a_page_reads_what_is_ours(serve: Serve, scripted: ScriptedBackend, stream: bool) -> None:
    with served(serve, scripted, PAGE, "http://localhost:3000").client(headers=KEY) as client:
        answer = client.post("/v1/chat/completions", json={**ASK, "stream": stream}, headers={"origin": PAGE})
        failed = client.post("/v1/chat/completions", json={}, headers={"origin": PAGE})
        plain = client.post("/v1/chat/completions", json=ASK)
    for each in (answer, failed):
        assert each.headers["access-control-allow-origin"] == PAGE
        shown = set(each.headers["access-control-expose-headers"].split(", "))
        assert {name for name in each.headers if name.startswith("x-")} - {"x-accel-buffering"} <= shown
        assert {"x-request-id", "x-dragoman-model", "x-ratelimit-remaining-tokens", "retry-after"} <= shown
    assert not allowed(plain.headers)


def test_every_page(serve: Serve, scripted: ScriptedBackend) -> None:
    with served(serve, scripted, "*").client(headers={**KEY, "origin": PAGE}) as client:
        answer = client.get("/v1/models")
    assert answer.headers["access-control-allow-origin"] == "*"


SITE = {"sec-fetch-site": "cross-site", "content-type": "text/plain"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({**SITE, "origin": PAGE}, 403),
        ({**SITE, "origin": "null"}, 403),
        (SITE, 403),
        ({**SITE, "origin": "http://127.0.0.1:3000"}, 200),
        ({**SITE, "origin": "http://localhost:3000"}, 200),
        ({**SITE, "origin": "http://[::1]:3000"}, 200),
        ({**SITE, "origin": "app://obsidian.md"}, 200),
        ({**SITE, "origin": "vscode-webview://0abc"}, 200),
        ({"sec-fetch-site": "same-site", "origin": "http://localhost:1"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"origin": PAGE}, 403),  # of a browser that does not say whose page it is
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:3000"}, 200),
        ({"origin": "app://obsidian.md"}, 200),
        ({"origin": "http://gateway.example.com:4000", "host": "gateway.example.com:4000"}, 200),
        ({"sec-fetch-site": "same-origin", "origin": PAGE}, 200),
        ({}, 200),
    ],
)
def test_where_no_key_is_asked_other_sites_may_not_ask(
    serve: Serve, scripted: ScriptedBackend, headers: dict[str, str], status: int
) -> None:
    with served(serve, scripted, keys=False).client() as client:
        answer = client.post("/v1/chat/completions", json=ASK, headers=headers)
        assert answer.status_code == status
        assert (answer.status_code == 200) == bool(scripted.requests)
        if status == 403:
            assert answer.json()["error"]["code"] == "origin_not_allowed"
        assert client.get("/health", headers=headers).status_code == 200


def test_a_configured_page_may_ask_without_a_key(serve: Serve, scripted: ScriptedBackend) -> None:
    with served(serve, scripted, PAGE, keys=False).client(headers={**SITE, "origin": PAGE}) as client:
        assert client.post("/v1/chat/completions", json=ASK).status_code == 200
    with served(serve, scripted, PAGE, keys=False).client(headers={"origin": PAGE}) as client:
        assert client.post("/v1/chat/completions", json=ASK).status_code == 200
    with served(serve, scripted).client(headers={**SITE, **KEY, "origin": PAGE}) as client:
        assert client.post("/v1/chat/completions", json=ASK).status_code == 200, "a key says enough"


def test_origins_follow_the_configuration(scripted: ScriptedBackend, tmp_path: Any) -> None:
    def text(*origins: str) -> str:
        return config_text([provider(scripted)], server={"cors_origins": list(origins)})

    scripted.play(json_reply(chat_completion("ok")))
    with Gateway(tmp_path, text(PAGE)) as gateway, gateway.client(headers={"origin": PAGE}) as client:
        assert allowed(client.get("/v1/models").headers)
        (tmp_path / "gateway.toml").write_text(text("https://other.example.com"))
        deadline = time.monotonic() + 15
        while "config_reloaded" not in gateway.log() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert "access-control-allow-origin" not in client.get("/v1/models").headers


@pytest.mark.parametrize(
    "origin", ["example.com", "https://example.com/", "https://a@example.com", "https://", " "]
)
def test_what_is_no_origin_is_refused(origin: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        parse(config_text([], server={"cors_origins": [origin]}), {}, BY_NAME)
    assert "server.cors_origins" in str(caught.value)
