"""`dragoman run`: a gateway for one command, mostly in this process, so that coverage counts."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from app import server
from app.cli import launch
from app.cli.main import cli
from config.schema import Config
from tests.app.conftest import provider
from tests.backends.gateway import COMMAND, config_text
from tests.backends.scripted import ScriptedBackend

ASK = """
import json, os, sys, urllib.request
body = json.dumps({"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}).encode()
head = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
answer = json.load(urllib.request.urlopen(urllib.request.Request(url, body, head)))
print(answer["choices"][0]["message"]["content"])
json.dump(dict(os.environ), open(sys.argv[1], "w"))
"""
TRAP = """
import signal, sys, time
signal.signal(int(sys.argv[1]), lambda *_: sys.exit(5))
open(sys.argv[2], "w").close()
time.sleep(30)
"""
VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_API_KEY", "DRAGOMAN_BASE_URL")


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, log_as_before: None) -> Iterator[Path]:
    """An empty folder, nothing of the developer's own; afterwards no thread of a gateway is left."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    proxies = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY")
    for name in ("DRAGOMAN_CONFIG", *VARIABLES, *proxies):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path
    assert "gateway" not in {thread.name for thread in threading.enumerate()}


@pytest.fixture
def config(scripted: ScriptedBackend) -> Config:
    return Config.model_validate({"providers": [provider(scripted)], "server": {"api_keys": ["key-of-ours"]}})


def python(code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", code, *map(str, arguments)]


def when(path: Path, act: Callable[[], None]) -> None:
    """Do something as soon as the command has made a file."""

    def wait() -> None:
        deadline = time.monotonic() + 20
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        act()

    threading.Thread(target=wait, daemon=True).start()


# --- what the command gets ---------------------------------------------------------------


def test_the_command_reaches_the_gateway_by_its_environment(
    config: Config, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert launch.run(config, python(ASK, "env.json"), Path("log")) == 0
    assert capfd.readouterr() == ("Hello from the backend.\n", "")
    given = orjson.loads(Path("env.json").read_bytes())
    url = given["OPENAI_BASE_URL"]
    assert [given[name] for name in VARIABLES] == [url, url, "key-of-ours", url]
    assert given["HOME"] == str(folder)
    assert "NO_PROXY" not in given
    host, port = url.removeprefix("http://").removesuffix("/v1").split(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))
    assert '"route":"POST /v1/chat/completions"' in Path("log").read_text()


def test_where_no_key_is_asked_clients_have_one_to_send(scripted: ScriptedBackend) -> None:
    config = Config.model_validate({"providers": [provider(scripted)]})
    assert launch.run(config, python(ASK, "env.json")) == 0
    assert orjson.loads(Path("env.json").read_bytes())["OPENAI_API_KEY"] == "dragoman"


@pytest.mark.parametrize(
    ("own", "added"),
    [
        ({}, None),
        ({"no_proxy": "x"}, None),
        ({"HTTP_PROXY": "http://proxy"}, "127.0.0.1"),
        ({"all_proxy": "socks5://proxy", "NO_PROXY": "a,b"}, "a,b,127.0.0.1"),
        ({"http_proxy": "http://proxy", "NO_PROXY": "a", "no_proxy": "b"}, "b,127.0.0.1"),
    ],
)
def test_no_proxy_stands_between(own: dict[str, str], added: str | None) -> None:
    assert launch.past_proxies(own) == ({} if added is None else {"no_proxy": added, "NO_PROXY": added})


# --- how it ends -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        (python("pass"), 0, ""),
        (python("import sys; sys.exit(7)"), 7, ""),
        (python("import os; os.kill(os.getpid(), 9)"), 137, ""),
        (["no-such-command", "x"], 127, "dragoman: no-such-command: command not found\n"),
        (["/"], 126, "dragoman: /: Permission denied\n"),
    ],
    ids=["0", "7", "killed", "not found", "not executable"],
)
def test_the_exit_status_is_the_commands(
    command: Sequence[str], status: int, said: str, config: Config, capfd: pytest.CaptureFixture[str]
) -> None:
    assert launch.run(config, command) == status
    assert capfd.readouterr() == ("", said)


@pytest.mark.parametrize("number", launch.FORWARDED)
def test_signals_are_the_commands(number: signal.Signals, config: Config) -> None:
    first = signal.signal(number, signal.SIG_DFL)  # whoever runs the tests may ignore it (`nohup`)
    try:
        _pass_on(number, config)
    finally:
        signal.signal(number, first)


def _pass_on(number: signal.Signals, config: Config) -> None:
    before = [signal.getsignal(each) for each in launch.FORWARDED]
    when(Path("ready"), lambda: os.kill(os.getpid(), number))
    assert launch.run(config, python(TRAP, int(number), "ready")) == 5
    assert [signal.getsignal(each) for each in launch.FORWARDED] == before


def test_a_signal_that_ends_the_command(config: Config) -> None:
    when(Path("ready"), lambda: os.kill(os.getpid(), signal.SIGTERM))
    code = "import time; open('ready', 'w').close(); time.sleep(30)"
    assert launch.run(config, python(code)) == 128 + signal.SIGTERM


def test_a_signal_that_came_before_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    start = subprocess.Popen

    def late(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        os.kill(os.getpid(), signal.SIGTERM)
        return start(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", late)
    assert launch.execute(python("import time; time.sleep(30)"), os.environ) == 128 + signal.SIGTERM


def test_what_is_ignored_stays_ignored() -> None:
    """As `nohup` wants it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        code = "import os, signal; os.kill(os.getppid(), 1); os.kill(os.getpid(), 1); print('alive')"
        assert launch.execute(python(code), os.environ) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_a_terminal_has_told_the_command_is_not_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_shares_foreground", lambda _: True)
    when(Path("ready"), lambda: os.kill(os.getpid(), signal.SIGINT))
    assert launch.execute(python(TRAP.replace("30", "0.5"), 2, "ready"), os.environ) == 0


def test_there_need_not_be_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("/dev/null", "/no/terminal"):
        monkeypatch.setattr(os, "ctermid", lambda path=path: path)
        assert not launch._shares_foreground(os.getpid())


# --- when there is no gateway ------------------------------------------------------------


def test_a_log_that_cannot_be_written(config: Config, scripted: ScriptedBackend) -> None:
    Path("dragoman.toml").write_text(config_text([provider(scripted)]))
    done = CliRunner().invoke(cli, ["run", "--log", "no/folder/log", "--", *python("pass")])
    assert (done.exit_code, done.stderr) == (1, "dragoman: --log: no/folder/log: No such file or directory\n")


def test_a_gateway_that_ends_as_it_starts(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.Server, "run", lambda *_, **__: None)
    with pytest.raises(launch.NotStarted, match="ended as it started"):
        launch.run(config, python("pass"))


def test_a_gateway_that_does_not_start(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(self: server.Server, sockets: object) -> None:
        while not self.should_exit:
            time.sleep(0.01)

    monkeypatch.setattr(server.Server, "run", hang)
    monkeypatch.setattr(launch, "START_S", 0.1)
    with pytest.raises(launch.NotStarted, match=r"did not start within 0\.1 s"):
        launch.run(config, python("pass"))


def test_run_needs_a_command() -> None:
    done = CliRunner().invoke(cli, ["run"])
    assert done.exit_code == 2
    assert "Missing argument 'CMD'" in done.stderr


# --- as a command --------------------------------------------------------------------------

COUNT = """
import signal, time
told = []
signal.signal(signal.SIGINT, lambda *_: told.append(1))
print("ready", flush=True)
end = time.monotonic() + 20
while not told and time.monotonic() < end:
    time.sleep(0.01)
time.sleep(0.5)
print("interrupts:", len(told), flush=True)
"""
TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


def started(folder: Path, command: Sequence[str], *before: str) -> subprocess.Popen[bytes]:
    """`dragoman run -- command`; `before` is what runs it."""
    (folder / "dragoman.toml").write_text(
        '[[providers]]\nname = "p"\nkind = "openai"\nbase_url = "http://h/v1"\n'
    )
    argv = [*before, str(COMMAND), "run", "--", *command]
    return subprocess.Popen(
        argv, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_stdout_is_the_commands_and_we_are_silent(folder: Path) -> None:
    process = started(folder, python("import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"))
    assert process.communicate(b"\x00 in\n", timeout=30) == (b"\x00 in\n", b"")
    assert process.returncode == 0


def test_a_stop_ends_the_command_and_the_gateway(folder: Path) -> None:
    process = started(folder, python("import os, time; print(os.getpid(), flush=True); time.sleep(30)"))
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.terminate()
    assert process.communicate(timeout=20) == (b"", b"")
    assert process.returncode == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


@pytest.mark.parametrize(
    "before", [[], ["/bin/sh", "-c", 'exec "$@" </dev/null', "sh"]], ids=["terminal", "file"]
)
def test_ctrl_c_is_told_once(before: list[str], folder: Path) -> None:
    """A terminal tells its whole foreground; wherever our own input comes from."""
    process = started(folder, python(COUNT), sys.executable, "-c", TERMINAL, *before)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\r\n"
    process.stdin.write(b"\x03")
    process.stdin.flush()
    out, _ = process.communicate(timeout=30)
    assert out.endswith(b"interrupts: 1\r\n")
    assert process.returncode == 0
