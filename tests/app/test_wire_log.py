"""The raw log: behind its switches, and without secrets."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.telemetry.wire_log import MAX_BODY, shown, wanted
from tests.app.conftest import Serve, provider
from tests.backends.gateway import Gateway, config_text
from tests.backends.loopback import Reply
from tests.backends.replies import chat_completion, chat_stream, json_reply, sse_reply
from tests.backends.scripted import ScriptedBackend

KEY = "sk-backend-0123456789abcdef"
CLIENT_KEY = "client-key-0123456789"
SAID = "what the client said"
CHAT: dict[str, Any] = {
    "model": "p/m",
    "messages": [{"role": "user", "content": f"{SAID} sk-proj-abcdefghijklmnop123456 {'long ' * 100}"}],
    "metadata": {"password": "hunter22", "note": "plain"},
}


def lines(gateway: Gateway) -> list[dict[str, Any]]:
    said = [orjson.loads(line) for line in gateway.log().splitlines() if line.startswith("{")]
    return [line for line in said if line["event"].startswith("wire:")]


def config(backend: ScriptedBackend, wire_log: bool = True) -> str:
    servers = {"api_keys": [CLIENT_KEY]}
    text = config_text([provider(backend, api_key=KEY)], server=servers)
    return f"{text}\n[telemetry]\nwire_log = {str(wire_log).lower()}\n"


@pytest.mark.parametrize(
    ("configured", "variable", "level"),
    [(False, "1", "debug"), (True, "", "debug"), (True, "0", "debug"), (True, "1", "info")],
)
def test_one_switch_is_not_enough(
    configured: bool, variable: str, level: str, tmp_path: Path, scripted: ScriptedBackend
) -> None:
    env = {"DRAGOMAN_WIRE_LOG": variable, "DRAGOMAN_LOG_LEVEL": level}
    with Gateway(tmp_path, config(scripted, configured), env=env) as gateway, gateway.client() as client:
        client.post("/v1/chat/completions", json=CHAT, headers={"x-api-key": CLIENT_KEY})
        assert lines(gateway) == []
        assert SAID not in gateway.log()


@pytest.mark.parametrize("stream", [False, True])
def test_all_that_goes_over_the_wire(stream: bool, tmp_path: Path, scripted: ScriptedBackend) -> None:
    frames = chat_stream("the answer of the backend")
    scripted.play(sse_reply(frames) if stream else json_reply(chat_completion("the answer of the backend")))
    keys = {"authorization": f"Bearer {CLIENT_KEY}", "cookie": "s=secret"}
    env = {"DRAGOMAN_WIRE_LOG": "1"}
    with Gateway(tmp_path, config(scripted), env=env) as gateway, gateway.client(headers=keys) as client:
        client.post("/v1/chat/completions", json={**CHAT, "stream": stream})
    found, text = lines(gateway), gateway.log()
    assert [line["event"] for line in found][:2] == ["wire:from_client", "wire:to_backend"]
    assert {"wire:from_backend", "wire:to_client", "wire:backend_ended"} <= {line["event"] for line in found}
    assert found[0]["headers"]["authorization"] == found[0]["headers"]["cookie"] == "[redacted]"
    assert found[0]["body"]["metadata"] == {"password": "[redacted]", "note": "plain"}
    content = found[0]["body"]["messages"][0]["content"]
    assert content.startswith(SAID)
    assert len(content) < 240
    assert found[1]["upstream"] == scripted.origin
    for secret in (KEY, CLIENT_KEY, "sk-proj-abcdefghijklmnop123456", "s=secret", "hunter22"):
        assert secret not in text
    assert ("the answer of the backend" in text) is not stream
    assert len({line["request_id"] for line in found}) == 1


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"a": "b", "n": 3, "f": null}', {"a": "b", "n": 3, "f": None}),
        (b'{"max_tokens": 5, "token": "abcd"}', {"max_tokens": 5, "token": "[redacted]"}),
        (b'{"url": "data:image/png;base64,AAAA"}', {"url": "data:image/png;base64,[26 characters]"}),
        (b'["' + b"x y " * 100 + b'"]', ["x y " * 45 + "...[400 characters]"]),
        (b"[" + b"1," * 59 + b"1]", [1] * 50 + ["[10 more]"]),
        (b"plain words", "plain words"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b" " * (MAX_BODY + 1), f"[{MAX_BODY + 1} bytes]"),
    ],
)
def test_how_a_body_is_shown(body: bytes, expected: Any) -> None:
    assert shown(body) == expected


@pytest.mark.parametrize(("value", "expected"), [("1", True), (" TRUE ", True), ("", False), ("no", False)])
def test_the_switch_in_the_environment(value: str, expected: bool) -> None:
    assert wanted(True, {"DRAGOMAN_WIRE_LOG": value}) is expected
    assert wanted(False, {"DRAGOMAN_WIRE_LOG": value}) is False


@pytest.mark.parametrize(
    "reply",
    [
        sse_reply(chat_stream("the answer")),
        json_reply(chat_completion("the answer")),
        json_reply({"error": {"message": "no"}}, 400),
        json_reply("an odd word"),
    ],
    ids=["stream", "body", "error", "odd"],
)
@pytest.mark.parametrize("stream", [False, True])
def test_in_this_process(
    reply: Reply, stream: bool, serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_WIRE_LOG", "1")
    scripted.play(reply)
    telemetry = {"wire_log": True}
    told = {"providers": [provider(scripted, api_key=KEY)], "telemetry": telemetry}
    served = serve(fresh=True, watched=True, **told)
    with served.client() as client:
        status = client.post("/v1/chat/completions", json={**CHAT, "stream": stream}).status_code
    while served.gateway.serving:
        time.sleep(0.005)
    (asked,) = served.log("wire:to_backend")
    assert asked["body"]["metadata"]["password"] == "[redacted]"
    assert served.log("wire:from_backend")
    sent = served.log("wire:to_client")
    assert sent[0]["status"] == status
    assert served.log("wire:backend_ended")[0]["status"] == reply.status
    assert KEY not in served.log_file.getvalue().decode()
