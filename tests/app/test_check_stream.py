"""`dragoman check-stream`: servers, base URLs and recorded streams."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from app.cli.main import cli
from tests.app.conftest import provider
from tests.backends.gateway import COMMAND, Gateway, config_text
from tests.backends.loopback import Reply
from tests.backends.replies import (
    CHAT_USAGE,
    ToolUse,
    chat_chunk,
    chat_stream,
    frame_bytes,
    json_reply,
    response_stream,
    sse_reply,
)
from tests.backends.scripted import ScriptedBackend


def test_our_own_gateway_is_clean(scripted: ScriptedBackend, tmp_path: Path) -> None:
    """A real process checks a real process: both shapes, both wires behind, with and without tools."""
    use = [ToolUse("call_1", "get_weather", '{"city":"Oslo"}')]
    entries = [provider(scripted), {**provider(scripted, "responses"), "name": "r"}]
    with Gateway(tmp_path, config_text(entries)) as gateway:
        for model in ("p/m", "r/m"):
            for tools, calls in (("--no-tools", []), ("--tools", use)):
                frames = chat_stream("Hi", calls) if model == "p/m" else response_stream("Hi", calls)
                scripted.play(sse_reply(frames))
                argv = [str(COMMAND), "check-stream", f"{gateway.base}/v1", "--model", model, tools]
                done = subprocess.run(argv, capture_output=True, text=True, timeout=30, cwd=tmp_path)
                assert (done.returncode, done.stdout.count("clean")) == (0, 2), done.stdout + done.stderr


RUN = CliRunner()


def test_a_server_is_checked(scripted: ScriptedBackend, tmp_path: Path) -> None:
    url = f"{scripted.origin}/v1/chat/completions"
    scripted.play(sse_reply([chat_chunk({"content": "a"}), chat_chunk({}, "end_turn")]))
    body = tmp_path / "body.json"
    body.write_text('{"model": "mine", "messages": []}')
    done = RUN.invoke(cli, ["check-stream", url, "--key", "sk-secret", "--body", str(body), "--json"])
    assert done.exit_code == 1
    (report,) = orjson.loads(done.stdout)
    assert {each["rule"] for each in report["violations"]} == {"bad_role", "bad_finish", "no_done"}
    assert all(each["why"] and each["frame"] for each in report["violations"])
    assert scripted.bodies() == [{"model": "mine", "messages": [], "stream": True}]
    assert scripted.requests[0].headers["authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in done.output
    text = RUN.invoke(cli, ["check-stream", url], env={"OPENAI_API_KEY": "sk-env"})
    assert "frame 2: bad_finish: expected finish_reason: one of stop" in text.stdout
    assert text.stdout.splitlines()[-1] == f"{url}: 2 frames, 3 violations"
    assert scripted.requests[1].headers["authorization"] == "Bearer sk-env"


def test_a_base_url_checks_what_is_there(scripted: ScriptedBackend) -> None:
    def chat_only(request: Any) -> Reply | None:
        return None if request.path.endswith("/completions") else json_reply({"error": "no"}, 404)

    scripted.play(chat_only)
    done = RUN.invoke(cli, ["check-stream", f"{scripted.origin}/v1/"])
    assert (done.exit_code, done.stdout.count("clean")) == (0, 1)
    scripted.play(json_reply({"error": "no"}, 404))
    for path in ("/v1", "/v1/responses"):
        assert RUN.invoke(cli, ["check-stream", scripted.origin + path]).exit_code == 2


def test_a_stream_that_is_never_ended_is_judged_by_what_came(scripted: ScriptedBackend) -> None:
    scripted.play(sse_reply([chat_chunk({"content": "a"}), chat_chunk({}, "stop")], end="hang"))
    url = f"{scripted.origin}/v1/chat/completions"
    done = RUN.invoke(cli, ["check-stream", url, "--timeout", "0.3"])
    assert (done.exit_code, "no_done" in done.stdout) == (1, True)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (json_reply({"error": {"message": "no key"}}, 401), "no key"),
        (json_reply(CHAT_USAGE), "application/json"),
    ],
)
def test_what_is_no_stream_cannot_be_checked(scripted: ScriptedBackend, reply: Reply, said: str) -> None:
    scripted.play(reply)
    done = RUN.invoke(cli, ["check-stream", f"{scripted.origin}/v1/responses"])
    assert (done.exit_code, said in done.output) == (2, True)


def test_recorded_streams(tmp_path: Path) -> None:
    good = b"".join(map(frame_bytes, chat_stream("hi")))
    file = tmp_path / "chat.sse"
    file.write_bytes(b": a comment\n\n" + good)
    assert RUN.invoke(cli, ["check-stream", str(file)]).exit_code == 0
    events = b"".join(map(frame_bytes, response_stream("hi")[:-1]))
    assert "no_end" in RUN.invoke(cli, ["check-stream", "-"], input=events).output
    for bad in ([str(tmp_path / "missing.sse")], ["-"], ["http://127.0.0.1:1/v1"], ["http://[/v1"]):
        assert RUN.invoke(cli, ["check-stream", *bad], input=b"data: nothing\n\ndata: 1\n\n").exit_code == 2
    file.write_text("[1]")
    for body in (file, tmp_path / "missing.json"):
        asked = ["check-stream", "http://127.0.0.1:1/v1", "--body", str(body)]
        assert RUN.invoke(cli, asked).exit_code == 2
