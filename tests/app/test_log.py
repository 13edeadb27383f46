"""The log: one JSON line for each request, and no secret in any."""

from __future__ import annotations

import asyncio
import io
import logging

import orjson
import pytest
import structlog

from app.telemetry import log
from app.telemetry.log import Log
from app.telemetry.trace import Trace
from translators.errors import ProxyError

pytestmark = pytest.mark.usefixtures("log_as_before")
KEY = "sk-7f3a9c1e5b2d4608e1"


def written(file: io.BytesIO) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in file.getvalue().splitlines()]


def start(level: str = "debug") -> tuple[io.BytesIO, Log]:
    file = io.BytesIO()
    return file, Log(log.configure(log.LEVELS[level], [KEY, "short"], file))


def note(event: str, **fields: object) -> None:
    structlog.get_logger().info(event, **fields)


def test_a_request_is_one_line() -> None:
    file, logger = start()
    logger.exchange(Trace(b"r1", "POST /v1/responses", status=200))
    (line,) = written(file)
    assert (line["event"], line["level"], line["request_id"], line["status"]) == (
        "request",
        "info",
        "r1",
        200,
    )
    assert str(line["timestamp"]).endswith("Z")


@pytest.mark.parametrize(
    ("level", "status", "probe", "lines"),
    [
        ("info", 200, False, 1),
        ("info", 200, True, 0),
        ("debug", 200, True, 1),
        ("info", 503, True, 1),
        ("warning", 200, False, 0),
        ("warning", 502, False, 1),
        ("error", 502, False, 0),
    ],
)
def test_levels(level: str, status: int, probe: bool, lines: int) -> None:
    file, logger = start(level)
    logger.exchange(Trace(b"r1", "", status=status), probe)
    assert len(written(file)) == lines


@pytest.mark.parametrize(
    ("value", "level"), [("debug", 10), ("WARNING ", 30), ("", 20), ("loud", 20), (None, 20)]
)
def test_level_from_the_environment(value: str | None, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAGOMAN_LOG_LEVEL", raising=False)
    if value is not None:
        monkeypatch.setenv("DRAGOMAN_LOG_LEVEL", value)
    assert log.level_from_environment() == level


def test_configured_secrets_are_masked_wherever_they_are() -> None:
    file, logger = start()
    trace = Trace(b"r1", f"GET /v1/models/{KEY}", model=KEY)
    trace.error = ProxyError("upstream", f"no {KEY} here")
    logger.exchange(trace)
    note("note", anything={"deep": [KEY]})
    logger.fault(trace, ValueError(KEY))
    assert KEY not in file.getvalue().decode()
    assert len(written(file)) == 3


def test_a_short_secret_would_mask_ordinary_words() -> None:
    file, _ = start()
    note("short of memory")
    assert written(file)[0]["event"] == "short of memory"


def test_keys_in_a_backends_words_are_masked() -> None:
    file, logger = start()
    trace = Trace(b"r1", "")
    trace.error = ProxyError("upstream", "Incorrect API key provided: sk-abcdef1234567890")
    logger.exchange(trace)
    assert "sk-abcdef1234567890" not in file.getvalue().decode()
    assert "Incorrect API key" in str(written(file)[0]["error"])


def test_a_fault_has_its_stack() -> None:
    file, logger = start()
    try:
        raise ValueError("broken")
    except ValueError as error:
        logger.fault(Trace(b"r1", "POST /x"), error)
    (line,) = written(file)
    assert "test_a_fault_has_its_stack" in str(line["exception"])
    assert (line["level"], line["request_id"]) == ("error", "r1")


def test_libraries_come_out_in_the_same_form() -> None:
    file, _ = start()
    logging.getLogger("asyncio").error("Task %s", "lost")
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    logging.getLogger("uvicorn.error").info("Started server process")
    logging.getLogger("uvicorn.error").warning("Unsupported upgrade request.")
    logging.getLogger("uvicorn.error").warning("No supported WebSocket library detected.")
    lines = written(file)
    assert [(line["level"], line["logger"], line["detail"]) for line in lines] == [
        ("error", "asyncio", "Task lost"),
        ("warning", "uvicorn.error", "Invalid HTTP request received."),
    ]


def test_a_reader_of_the_log_that_is_gone_stops_nothing() -> None:
    class Closed(io.BytesIO):
        def write(self, data: object, /) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    Log(log.Sink(Closed())).exchange(Trace(b"r1", ""))


async def test_lines_of_one_turn_are_flushed_together() -> None:
    class Counted(io.BytesIO):
        flushes = 0

        def flush(self) -> None:
            self.flushes += 1

    file = Counted()
    logger = Log(log.Sink(file))
    for _ in range(3):
        logger.exchange(Trace(b"r1", ""))
    assert file.flushes == 0
    await asyncio.sleep(0)
    assert (file.flushes, len(written(file))) == (1, 3)


def test_without_a_file_it_is_stdout(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    Log(log.Sink()).exchange(Trace(b"r1", ""))
    assert orjson.loads(capfdbinary.readouterr().out)["event"] == "request"


def test_values_json_has_no_name_for_are_written_as_text() -> None:
    file, _ = start()
    note("note", value=io)
    assert "module" in str(written(file)[0]["value"])


def test_values_json_cannot_hold_are_written_as_text() -> None:
    file, _ = start()
    note("odd", half="a\udce9b", many=2**70, plain="x")
    (line,) = written(file)
    assert (line["event"], line["half"], line["many"], line["plain"]) == ("odd", "a?b", str(2**70), "x")
