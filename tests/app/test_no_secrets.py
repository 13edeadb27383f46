"""No secret leaves: every way to fail is driven with marked secrets, and its output is searched for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from app.gateway import assemble
from app.telemetry import log
from app.telemetry.log import Log, Sink
from app.telemetry.trace import Trace
from config.load import parse
from config.problems import ConfigErrors
from providers.health import Health
from providers.profiles import BY_NAME
from tests.app.keyed import entry, key_of, written
from tests.backends.gateway import Gateway, config_text
from tests.backends.loopback import Loopback, Reply, Request
from tests.backends.otlp import OtlpReceiver
from tests.backends.replies import chat_chunk, chat_completion, json_reply

# What is configured is known and needs not look like a key; a caller's does.
OWN = "canary-of-the-gateway-itself"
PROVIDER = "canary-of-a-provider"
QUERY = "canary-in-an-address"
SEAL = "canary-that-seals"
STORE = "canary-that-encrypts"
OTLP = "canary-for-the-collector"
REDIS = "canary-for-redis"
HELD = key_of("held")
CALLER = "sk-canary-1234567890-of-a-caller"
WRONG = "sk-canary-0987654321-that-is-wrong"
SECRETS = [OWN, PROVIDER, QUERY, SEAL, STORE, OTLP, REDIS, HELD, CALLER, WRONG]

MESSAGES = [{"role": "user", "content": "hi"}]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"messages": MESSAGES}),
    ("/v1/chat/completions", {"messages": MESSAGES, "stream": True}),
    ("/v1/responses", {"input": "hi"}),
    ("/v1/responses", {"input": "hi", "stream": True}),
    ("/v1/embeddings", {"input": "hi"}),
]
SSE = {"content-type": "text/event-stream"}


def heard(request: Request) -> str:
    """What a backend could quote of what it was sent."""
    return request.headers.get("authorization", "Bearer ?").partition(" ")[2] + f" at {request.path}"


def _error(request: Request, **more: Any) -> dict[str, Any]:
    said = f"Incorrect API key provided: {heard(request)}. See http://u:{PROVIDER}@10.0.0.1:8080/?key={QUERY}"
    return {
        "error": {"message": said, "type": "error", "param": heard(request), "code": heard(request), **more}
    }


def _events(*frames: Any) -> bytes:
    return b"".join(b"data: %b\n\n" % orjson.dumps(frame) for frame in frames)


BEGUN = [chat_chunk({"role": "assistant", "content": "Hel"}), chat_chunk({"content": "lo"})]
WAYS: dict[str, Callable[[Request], Reply]] = {
    **{
        f"status {status}": lambda request, status=status: json_reply(_error(request), status)
        for status in (400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504)
    },
    "html": lambda request: Reply(
        502, {"content-type": "text/html"}, [f"<h1>{heard(request)}</h1>".encode()]
    ),
    "text": lambda request: Reply(500, {"content-type": "text/plain"}, [heard(request).encode()]),
    "detail": lambda request: json_reply({"detail": [{"loc": ["body"], "msg": heard(request)}]}, 422),
    "databricks": lambda request: json_reply({"error_code": "DENIED", "message": heard(request)}, 403),
    "traceback": lambda request: Reply(
        500, {}, [f"Traceback (most recent call last):\n  File x\nKeyError: {heard(request)}".encode()]
    ),
    "gzip": lambda request: json_reply(_error(request), 400, {"content-encoding": "gzip"}),
    "headers": lambda request: json_reply(
        {"error": {"message": "no"}},
        429,
        {"x-key": heard(request), "set-cookie": heard(request), "www-authenticate": heard(request)},
    ),
    "200 with an error": lambda request: json_reply(_error(request)),
    "200 without JSON": lambda request: Reply(
        200, {"content-type": heard(request)}, [heard(request).encode()]
    ),
    "redirect": lambda request: Reply(307, {"location": f"http://127.0.0.1:9/?{heard(request)}"}),
    "event first": lambda request: Reply(200, SSE, [_events(_error(request))]),
    "event later": lambda request: Reply(200, SSE, [_events(*BEGUN, _error(request))]),
    "typed event": lambda request: Reply(
        200, SSE, [_events(*BEGUN), b"event: error\ndata: " + orjson.dumps(_error(request)) + b"\n\n"]
    ),
    "bad frame": lambda request: Reply(200, SSE, [_events(*BEGUN), f"data: {{{heard(request)}\n\n".encode()]),
    "cut": lambda request: Reply(200, SSE, [_events(*BEGUN)], "cut"),
    "no HTTP": lambda request: Reply(200, {"content-length": "1", "bad header": heard(request)}, [b"abc"]),
    "comment": lambda request: Reply(
        200, SSE, [f": {heard(request)}\n\n".encode(), _events(_error(request))]
    ),
}


@dataclass
class Told:
    """All that came out of a gateway."""

    texts: dict[str, str] = field(default_factory=dict)

    def answer(self, name: str, answer: httpx.Response) -> None:
        self.texts[name] = f"{answer.status_code} {answer.headers!r} {answer.headers.raw} {answer.text}"

    def leaks(self) -> list[tuple[str, str]]:
        return [(name, secret) for name, text in self.texts.items() for secret in SECRETS if secret in text]


@dataclass
class Stage:
    """A backend that misbehaves as it is told, and a gateway with secrets in every place."""

    gateway: Gateway
    told: Told
    behave: dict[str, str]
    receiver: OtlpReceiver


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("stage")
    behave = {"way": ""}

    def answer(request: Request) -> Reply:
        if request.method == "POST" and behave["way"]:
            return WAYS[behave["way"]](request)
        return json_reply(chat_completion("ok") if request.method == "POST" else _error(request), 200)

    with Loopback(answer) as backend, OtlpReceiver() as receiver:
        config = _config(backend.origin, folder) + (
            f'\n[telemetry]\nendpoint = "{receiver.address}"\nheaders = {{x-key = "{OTLP}"}}\n'
            "wire_log = true\n"
            f'[store]\nkind = "sqlite"\npath = "{folder}/s.db"\nencryption_key = "{STORE}"\n'
            f'[limits]\nstorage = "redis://:{REDIS}@127.0.0.1:9/0"\n'
        )
        env = {
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_METRIC_EXPORT_INTERVAL": "100",
            "DRAGOMAN_WIRE_LOG": "1",
        }
        with Gateway(folder, config, env=env) as gateway:
            yield Stage(gateway, Told(), behave, receiver)


def _config(origin: str, folder: Path) -> str:
    keys = written(folder / "keys.toml", entry("held", limits={"requests_per_minute": 100_000}))
    base = {"kind": "openai", "base_url": f"{origin}/v1", "models": ["m"], "wire": "chat"}
    query = {"wire": {"chat": f"/chat/completions?key={QUERY}"}}
    providers = [
        {"name": "ours", **base, "api_key": PROVIDER, "overrides": query},
        {"name": "theirs", **base, "api_key_from": "client"},
        {"name": "unlisted", "kind": "openai", "base_url": f"{origin}/v1", "api_key": PROVIDER},
        {"name": "refused", **base, "base_url": "http://127.0.0.1:9/v1", "api_key": PROVIDER},
        {"name": "unknown", **base, "base_url": "http://no-such-host.invalid/v1", "api_key": PROVIDER},
        {"name": "tls", **base, "base_url": origin.replace("http:", "https:") + "/v1", "api_key": PROVIDER},
    ]
    server = {
        "api_keys": [OWN],
        "keys_file": keys,
        "seal_key": SEAL,
        "retry_budget_s": 0,
        "connect_timeout_s": 0.3,
    }
    return config_text(providers, server=server)


@pytest.mark.parametrize("way", WAYS)
def test_a_backend_that_quotes_keys(stage: Stage, way: str) -> None:
    stage.behave["way"] = way
    signed = {"ours": {"x-api-key": OWN}, "theirs": {"x-api-key": HELD, "authorization": f"Bearer {CALLER}"}}
    told = Told()
    for name, headers in signed.items():
        with stage.gateway.client(headers=headers) as client:
            for path, body in CALLS:
                told.answer(f"{name} {path} {body}", client.post(path, json={"model": f"{name}/m", **body}))
    assert told.leaks() == []


@pytest.mark.parametrize("name", ["refused", "unknown", "tls", "unlisted", "nobody"])
def test_a_backend_that_cannot_be_asked(stage: Stage, name: str) -> None:
    stage.behave["way"] = ""
    told = Told()
    with stage.gateway.client(headers={"x-api-key": OWN}) as client:
        for path, body in CALLS:
            told.answer(f"{path} {body}", client.post(path, json={"model": f"{name}/m", **body}))
    assert told.leaks() == []


def test_requests_that_are_refused(stage: Stage) -> None:
    stage.behave["way"] = ""
    told = Told()
    with stage.gateway.client() as client:
        for number, headers in enumerate(
            (
                {},
                {"authorization": f"Bearer {WRONG}"},
                {"x-api-key": WRONG},
                {"authorization": WRONG},
                {"authorization": f"Basic {WRONG}"},
            )
        ):
            for path, body in CALLS:
                told.answer(
                    f"{number} {path}", client.post(path, json={"model": "m", **body}, headers=headers)
                )
        right = {"authorization": f"Bearer {OWN}"}
        for path in (
            "/v1/models",
            "/models",
            "/models/ours/m",
            "/models/tls/m",
            "/metrics",
            "/health",
            "/ready",
        ):
            told.answer(path, client.get(path, headers=right, params={"api_key": WRONG, "refresh": "1"}))
        told.answer(
            "query", client.post(f"/v1/chat/completions?api_key={WRONG}", content=b"{", headers=right)
        )
        told.answer("id", client.get("/v1/responses/resp_none", headers=right))
        layer = {**right, "x-dragoman-overrides": '{"auth": {"prefix": "x"}}'}
        told.answer("layer", client.post("/v1/responses", json={"model": "m", "input": "x"}, headers=layer))
        told.answer("429", client.post("/v1/chat/completions", json={}, headers={"x-api-key": HELD}))
    assert told.leaks() == []


def test_nothing_is_in_the_log_the_metrics_the_traces(stage: Stage) -> None:
    """After all kinds of trouble, at level debug and with what goes over the wire in the log."""
    headers = {"x-api-key": HELD, "authorization": f"Bearer {CALLER}"}
    for way in ("status 401", "status 500", "event later", "bad frame", "headers", ""):
        stage.behave["way"] = way
        for model in ("ours/m", "theirs/m"):
            with stage.gateway.client(headers=headers) as client:
                for path, body in CALLS:
                    client.post(path, json={"model": model, **body})
    with stage.gateway.client(headers={"x-api-key": OWN}) as client:
        metrics = client.get("/metrics").text
    time.sleep(0.5)
    receiver = stage.receiver
    told = Told(
        {
            "log": stage.gateway.log(),
            "metrics": metrics,
            "spans": repr(receiver.spans()),
            "measured": repr(receiver.metrics()),
            "store": (stage.gateway._folder / "s.db").read_bytes().decode("latin-1"),
        }
    )
    assert '"event":"wire:from_client"' in told.texts["log"], "the log is the one that shows most"
    assert "chat m" in told.texts["spans"]
    assert told.leaks() == []


def test_nothing_is_in_a_repr(tmp_path: Path) -> None:
    text = (
        _config("http://127.0.0.1:1", tmp_path)
        + f'[store]\nkind = "postgres"\nurl = "postgresql://u:{STORE}@h/d"\n'
    )
    config = parse(text.replace(f"?key={QUERY}", ""), {}, BY_NAME)
    parts = assemble(config, None, Health())
    told = Told(
        {"config": repr(config) + str(config), "dump": repr(config.model_dump()), "parts": repr(parts)}
    )
    told.texts["providers"] = "".join(repr(vars(each)) for each in parts.catalog.providers)
    told.texts["keys"] = repr(vars(parts.keys))
    leaks = [each for each in told.leaks() if each != ("providers", PROVIDER)]
    assert leaks == []


@pytest.mark.parametrize(
    "server",
    [
        {"api_keys": OWN},
        {"api_keys": {"a": OWN}},
        {"api_keys": [[OWN]]},
        {"seal_key": [SEAL]},
        {"api_kys": [OWN]},
        {"keepalive_s": OWN},
        {"port": OWN},
    ],
)
@pytest.mark.parametrize(
    "provider",
    [
        {"api_key": [PROVIDER]},
        {"api_key": {"key": PROVIDER}},
        {"apikey": PROVIDER},
        {"base_url": f"https://u:{PROVIDER}@host/v1"},
        {"base_url": f"https://host/v1?key={PROVIDER}"},
        {"client_secret": PROVIDER},
        {"overrides": {"auth": {"kind": PROVIDER}}},
        {"overrides": {"auth": PROVIDER}},
        {"extra_body": PROVIDER},
    ],
)
def test_nothing_is_in_what_is_said_of_a_faulty_configuration(
    server: dict[str, Any], provider: dict[str, Any]
) -> None:
    given = {"name": "p", "kind": "openai", "base_url": "https://host/v1", **provider}
    text = (
        config_text([given], server=server)
        + f'[limits]\nstorage = "rediss:{REDIS}"\n[store]\nurl = ["{STORE}"]\n'
    )
    with pytest.raises(ConfigErrors) as caught:
        parse(text, {}, BY_NAME)
    assert Told({"said": str(caught.value) + repr(caught.value)}).leaks() == []


def test_a_stack_shows_no_key(monkeypatch: pytest.MonkeyPatch, log_as_before: None, tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        sink = log.configure(log.LEVELS["debug"], [PROVIDER], file)
        try:
            raise ValueError(f"sent {PROVIDER} and Bearer {CALLER} and {WRONG}, api_key={CALLER}")
        except ValueError as error:
            Log(sink).fault(Trace(b"req_1", "POST /"), error)
    told = path.read_text()
    assert "Traceback" in told
    assert "ValueError" in told
    assert Told({"log": told}).leaks() == []


def test_whatever_is_logged_by_a_library_shows_no_key() -> None:
    sink = Sink(secrets=[PROVIDER])
    line = sink.render(None, "error", {"event": "library", "detail": f"to http://u:{CALLER}@h/?k={PROVIDER}"})
    assert Told({"log": line.decode()}).leaks() == []


def test_the_marks_would_be_found() -> None:
    assert len(Told({"a": " ".join(SECRETS)}).leaks()) == len(SECRETS)
