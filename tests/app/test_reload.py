"""When a configuration file is read again, and that nothing but a good one is taken."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.reload import FIXED, LOOK_S, Kept, Origin, Reload, fixed, newest, origin_of, stamp_of
from config.load import load
from config.schema import Config
from providers.profiles import BY_NAME
from tests.providers.conftest import Clock

PROVIDER = """
[[providers]]
name = "{name}"
kind = "openai"
base_url = "http://127.0.0.1:1/v1"
"""
A, B, C = (PROVIDER.format(name=name) for name in "abc")


class Watched:
    """A configuration file that is watched, and what was put into service of it."""

    def __init__(self, folder: Path, text: str = A, **given: Any) -> None:
        self.path, self.clock, self.kept = folder / "dragoman.toml", Clock(), Kept()
        self.path.write_text(text)
        self.given = given
        origin = origin_of(self.path, given)
        self.start = load(self.path, os.environ, BY_NAME, given)
        self.served: list[Config] = []
        self.fault: Exception | None = None
        self.reload = Reload(origin, self.start, self._apply, self.kept, self.clock)

    async def _apply(self, config: Config) -> None:
        if self.fault is not None:
            raise self.fault
        self.served.append(config)

    @property
    def names(self) -> list[str]:
        """The providers of each configuration that was put into service."""
        return ["".join(each.name for each in config.providers) for config in self.served]

    async def ticks(self, seconds: float) -> list[dict[str, Any]]:
        """As often as the server does; what the log says meanwhile."""
        with capture_logs() as said:
            for _ in range(round(seconds * 10)):
                self.clock.now += 0.1
                await self.reload.tick()
        return [dict(line) for line in said]

    async def asked(self) -> list[dict[str, Any]]:
        self.reload.ask()
        return await self.ticks(0.1)


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Callable[..., Watched]]:
    with ExitStack() as stack:

        def made(text: str = A, **given: Any) -> Watched:
            found = Watched(tmp_path, text, **given)
            stack.enter_context(found.kept)
            return found

        yield made


@pytest.fixture
def watched(watch: Callable[..., Watched]) -> Watched:
    return watch()


# --- when it is read -------------------------------------------------------------------


async def test_an_unchanged_file_is_left_alone(watched: Watched) -> None:
    assert await watched.ticks(5) == []
    assert watched.served == []


async def test_a_change_is_taken_up_once(watched: Watched) -> None:
    watched.path.write_text(B)
    said = await watched.ticks(2 * LOOK_S + 0.5)
    assert watched.names == ["b"]
    assert [line["event"] for line in said] == ["config_reloaded"]
    assert said[0]["providers"] == ["b"]
    await watched.ticks(5)
    assert watched.names == ["b"]


async def test_when_asked_it_is_read_at_once_changed_or_not(watched: Watched) -> None:
    await watched.asked()
    watched.path.write_text(B)
    await watched.asked()
    assert watched.names == ["a", "b"]
    await watched.ticks(5)
    assert watched.names == ["a", "b"]


async def test_a_file_that_is_still_being_written_is_waited_for(watched: Watched) -> None:
    text = B
    for _ in range(5):
        text += C.replace('"c"', f'"c{len(text)}"')
        watched.path.write_text(text)
        assert await watched.ticks(LOOK_S) == []
    assert watched.served == []
    await watched.ticks(2 * LOOK_S)
    assert len(watched.served[0].providers) == 6


async def test_what_is_written_while_it_is_read_is_seen_later(watched: Watched) -> None:
    """The file may be another one when it is read than when it was looked at."""

    async def apply(config: Config) -> None:
        watched.served.append(config)
        if len(watched.served) == 1:
            watched.path.write_text(C + "# longer")

    watched.reload._apply = apply
    watched.path.write_text(B)
    await watched.ticks(5)
    assert watched.names == ["b", "c"]


def _rename(path: Path) -> None:
    new = path.with_name(".tmp")
    new.write_text(B)
    new.replace(path)


def _backup(path: Path) -> None:
    """As vim does: the old one is moved away, and a new one is made."""
    path.rename(path.with_name("dragoman.toml~"))
    path.write_text(B)


def _same_size_and_time(path: Path) -> None:
    before = path.stat()
    _rename(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


@pytest.mark.parametrize("change", [_rename, _backup, _same_size_and_time])
async def test_ways_to_replace_a_file(watched: Watched, change: Callable[[Path], None]) -> None:
    change(watched.path)
    await watched.ticks(3)
    assert watched.names == ["b"]


async def test_a_link_that_is_turned_elsewhere(tmp_path: Path) -> None:
    """As Kubernetes mounts a ConfigMap: the file is a link through `..data`, and that link is replaced."""
    for name, text in (("..1", A), ("..2", B)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "dragoman.toml").write_text(text)
        os.utime(tmp_path / name / "dragoman.toml", ns=(1, 1))
    (tmp_path / "..data").symlink_to("..1")
    link = tmp_path / "dragoman.toml"
    link.symlink_to("..data/dragoman.toml")
    served: list[Config] = []

    async def apply(config: Config) -> None:
        served.append(config)

    clock = Clock()
    reload = Reload(origin_of(link, {}), load(link, os.environ, BY_NAME), apply, clock=clock)
    (tmp_path / "..data_tmp").symlink_to("..2")
    (tmp_path / "..data_tmp").rename(tmp_path / "..data")
    for _ in range(3):
        clock.now += LOOK_S
        await reload.tick()
    assert [config.providers[0].name for config in served] == ["b"]


@pytest.mark.parametrize("text", [A, f"# a comment\n{A}"])
async def test_nothing_new_in_it_disturbs_nobody(watched: Watched, text: str) -> None:
    watched.path.write_text(text)
    os.utime(watched.path, ns=(7, 7))
    assert await watched.ticks(5) == []
    assert watched.served == []


# --- what is not taken -----------------------------------------------------------------

BAD = [
    (B + "[[providers]\n", ["6: Expected"]),
    (B + 'modells = ["m"]\n', ['providers[0].modells: unknown key, did you mean "models"']),
    (B + 'api_key = "${DRAGOMAN_NOT_SET_ANYWHERE}"\n', ["DRAGOMAN_NOT_SET_ANYWHERE"]),
    (B + B, ["names are unique"]),
    (B + '[aliases]\n"x" = "nowhere/m"\n', ["nowhere"]),
    ('[server]\nworkers = 0\nkeepalive_s = "no"\n' + B, ["server.workers", "server.keepalive_s"]),
    (B + 'kind = "openai"\n', ["Cannot overwrite"]),
]


@pytest.mark.parametrize("ask", [True, False])
@pytest.mark.parametrize(("text", "told"), BAD, ids=[each[1][0] for each in BAD])
async def test_a_file_with_errors_changes_nothing(
    watched: Watched, text: str, told: list[str], ask: bool
) -> None:
    watched.path.write_text(text)
    said = await (watched.asked() if ask else watched.ticks(3))
    assert watched.served == []
    assert [(line["event"], line["log_level"]) for line in said] == [("config_not_reloaded", "error")]
    assert all(any(words in error for error in said[0]["errors"]) for words in told), said[0]["errors"]
    assert await watched.ticks(5) == []  # said once
    watched.path.write_text(C)
    await watched.ticks(3)
    assert watched.names == ["c"]


@pytest.mark.parametrize("ask", [True, False])
async def test_a_file_that_is_gone_is_told_once(watched: Watched, ask: bool) -> None:
    watched.path.unlink()
    said = await (watched.asked() if ask else watched.ticks(5))
    assert [line["event"] for line in said] == ["config_not_reloaded"]
    assert "no such file" in said[0]["errors"][0]
    assert await watched.ticks(5) == []
    watched.path.write_text(A)
    assert await watched.ticks(5) == []  # the same again
    watched.path.write_text(B)
    await watched.ticks(3)
    assert watched.names == ["b"]


async def test_a_key_does_not_show_where_its_file_has_errors(watched: Watched) -> None:
    secret = "sk-5e1f90b2c7a8d346"
    lines = [
        f'api_key = "{secret}"',
        f'api_keys = ["{secret}"]',
        f'wire = "{secret}"',
        f'client_secret = "{secret}"',
        f'overrides = {{auth = {{header = ["{secret}"]}}, "{secret[:3]}" = 1}}',
    ]
    for line in lines:
        watched.path.write_text(f"{B}{line}\nmodells = 1\n")
        said = await watched.asked()
        assert said[0]["event"] == "config_not_reloaded"
        assert secret not in str(said), line


async def test_a_fault_of_ours_is_told_and_survived(watched: Watched) -> None:
    watched.fault = RuntimeError("no good")
    watched.path.write_text(B)
    said = await watched.ticks(3)
    assert [(line["event"], line["log_level"]) for line in said] == [("config_not_reloaded", "error")]
    assert said[0]["exc_info"]
    watched.fault = None
    await watched.asked()
    assert watched.names == ["b"]


# --- what only a restart changes -------------------------------------------------------


async def test_settings_of_the_start_stay_and_are_told_each_time(watched: Watched) -> None:
    text = '[server]\nhost = "::1"\nport = 1\nworkers = 3\nshutdown_grace_s = 1\nkeepalive_s = 3\n'
    for each in (B, C):
        watched.path.write_text(text + each)
        said = await watched.ticks(3)
        assert [line["event"] for line in said] == ["config_needs_restart", "config_reloaded"]
        assert said[0]["settings"] == [f"server.{key}" for key in FIXED]
    assert watched.names == ["b", "c"]
    assert watched.served[-1].server.keepalive_s == 3
    assert fixed(watched.served[-1]) == fixed(watched.start)


async def test_where_traces_go_is_told_at_the_start(watched: Watched) -> None:
    watched.path.write_text(f'[telemetry]\nendpoint = "http://127.0.0.1:4318"\n{B}')
    said = await watched.ticks(3)
    assert [line["event"] for line in said] == ["config_needs_restart", "config_reloaded"]
    assert said[0]["settings"] == ["telemetry"]


async def test_the_command_line_goes_on_winning(watch: Callable[..., Watched]) -> None:
    watched = watch(A, port=0, workers=2)
    watched.path.write_text("[server]\nport = 4711\nworkers = 5\n" + B)
    said = await watched.ticks(3)
    assert [line["event"] for line in said] == ["config_reloaded"]
    assert (watched.served[0].server.port, watched.served[0].server.workers) == (0, 2)


async def test_nobody_gets_in_without_a_key_because_the_file_names_another_address(
    watch: Callable[..., Watched],
) -> None:
    watched = watch('[server]\nhost = "0.0.0.0"\napi_keys = ["a-key"]\n' + A)
    watched.path.write_text('[server]\nhost = "127.0.0.1"\n' + B)
    said = await watched.ticks(3)
    assert watched.served == []
    assert [line["event"] for line in said] == ["config_needs_restart", "config_not_reloaded"]
    assert "api_keys" in said[1]["errors"][0]


# --- workers that are started later ----------------------------------------------------


async def test_a_later_worker_begins_with_what_was_taken_up_last(watched: Watched) -> None:
    origin = origin_of(watched.path, {})
    assert newest(watched.start, origin, watched.kept) == (watched.start, origin)
    watched.path.write_text(B * 1)
    await watched.ticks(3)
    taken = stamp_of(watched.path)
    watched.path.write_text("no = good")
    await watched.ticks(3)
    config, later = newest(watched.start, origin, watched.kept)
    assert config == watched.served[-1]
    assert later == Origin(watched.path, {}, taken)
    assert later.stamp != stamp_of(watched.path)  # so that the bad file is looked at, and told of


async def test_a_shorter_file_leaves_nothing_of_the_longer(watched: Watched) -> None:
    watched.kept.write(A * 50, (1, 2, 3))
    watched.kept.write(B, None)
    assert watched.kept.read() == (B, None)


@pytest.mark.parametrize("torn", [b'["[[provi', b"", b'["no = good", null]'])
async def test_half_of_one_is_not_used(watched: Watched, torn: bytes) -> None:
    os.pwrite(watched.kept._file.fileno(), torn, 0)
    origin = origin_of(watched.path, {})
    assert newest(watched.start, origin, watched.kept) == (watched.start, origin)


async def test_what_cannot_be_kept_is_served_all_the_same(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(watched.kept, "write", full)
    watched.path.write_text(B)
    assert [line["event"] for line in await watched.ticks(3)] == ["config_reloaded"]
    assert watched.names == ["b"]
