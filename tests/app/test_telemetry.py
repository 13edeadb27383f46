"""Whether somebody looks at exchanges, and that nobody pays for it where nobody does."""

from __future__ import annotations

import io
import subprocess
import sys

import orjson
import pytest

from app.telemetry import log
from app.telemetry.otel_names import HOSTS, provider_name
from app.telemetry.otel_sdk import Sdk, resource
from app.telemetry.telemetry import is_wanted, open_telemetry, open_watch
from config.schema import Config, Telemetry
from providers.extras import MODULES
from providers.http import HttpClient
from providers.openai import OpenAIProvider, Settings

HERE = "http://127.0.0.1:4318"


@pytest.mark.parametrize(
    ("settings", "environ", "expected"),
    [
        ({}, {}, False),
        ({"endpoint": HERE}, {}, True),
        ({"endpoint": HERE}, {"OTEL_SDK_DISABLED": "TRUE"}, False),
        ({}, {"OTEL_EXPORTER_OTLP_ENDPOINT": HERE}, True),
        ({}, {"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, False),
        ({}, {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": HERE}, True),
        ({}, {"OTEL_SERVICE_NAME": "x"}, False),
    ],
)
def test_when_something_is_sent(settings: dict[str, str], environ: dict[str, str], expected: bool) -> None:
    assert is_wanted(Telemetry.model_validate(settings), environ) is expected


@pytest.mark.usefixtures("log_as_before")
def test_without_the_extra_it_serves_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    log.configure(log.LEVELS["info"], [], file)
    monkeypatch.setitem(MODULES, "otel", ("opentelemetry.no_such_part", "nor_this.one"))
    assert open_telemetry(Telemetry(endpoint=HERE), {}) is None
    said = orjson.loads(file.getvalue())
    assert (said["event"], said["level"]) == ("telemetry_unavailable", "warning")
    assert ".[otel]" in said["reason"]


def test_nobody_looks_at_level_info() -> None:
    assert open_watch(Telemetry(wire_log=True), None, log.LEVELS["info"], {"DRAGOMAN_WIRE_LOG": "1"}) is None
    assert open_watch(Telemetry(), None, log.LEVELS["debug"], {}) is not None


def test_nothing_is_imported_for_nobody() -> None:
    code = (
        "import sys, os, app.main; from config.schema import Config; "
        "a = app.main.create_app(Config()); assert a.state.gateway.watch is None; "
        "heavy = ('opentelemetry.sdk', 'opentelemetry.exporter', 'app.telemetry.otel', "
        "'app.telemetry.debug_events', 'requests'); "
        "print([name for name in sys.modules if name.startswith(heavy)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("endpoint", ["127.0.0.1:4318", "grpc://x:4317", "", 3])
def test_a_faulty_endpoint_is_refused(endpoint: object) -> None:
    with pytest.raises(ValueError):
        Config.model_validate({"telemetry": {"endpoint": endpoint}})


@pytest.mark.parametrize(
    ("settings", "environ", "expected"),
    [
        ({}, {}, "dragoman"),
        ({"service_name": "mine"}, {"OTEL_SERVICE_NAME": "theirs"}, "mine"),
        ({}, {"OTEL_SERVICE_NAME": "theirs"}, "theirs"),
        ({}, {"OTEL_RESOURCE_ATTRIBUTES": "service.name=listed"}, "listed"),
    ],
)
def test_the_name_of_the_service(
    settings: dict[str, str], environ: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in environ.items():
        monkeypatch.setenv(name, text)
    found = resource(Telemetry.model_validate(settings), environ).attributes
    assert (found["service.name"], bool(found["service.instance.id"])) == (expected, True)


@pytest.mark.usefixtures("log_as_before")
@pytest.mark.parametrize(("protocol", "warned"), [("grpc", True), ("http/protobuf", False)])
def test_another_protocol_is_warned_of(protocol: str, warned: bool) -> None:
    file = io.BytesIO()
    log.configure(log.LEVELS["info"], [], file)
    none = {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}
    sdk = Sdk.over_otlp(Telemetry(endpoint=HERE), {**none, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol})
    sdk.close()
    assert (b"telemetry_protocol" in file.getvalue()) is warned
    assert sdk.trouble is None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://my.openai.azure.com/openai/v1", "azure.ai.openai"),
        ("https://api.mistral.ai/v1", "mistral_ai"),
        ("https://us-central1-aiplatform.googleapis.com/v1", "gcp.vertex_ai"),
        ("http://127.0.0.1:8000/v1", "openai"),
        ("https://myapi.x.ai/v1", "openai"),
        ("https://api.x.ai.example.org/v1", "openai"),
    ],
)
def test_the_name_of_a_provider(url: str, expected: str) -> None:
    assert provider_name(OpenAIProvider(Settings("p", url), HttpClient())) == expected
    assert provider_name(OpenAIProvider(Settings("p", url, "databricks"), HttpClient())) == "databricks"


def test_hosts_have_names_of_the_conventions() -> None:
    from opentelemetry.semconv._incubating.attributes.gen_ai_attributes import GenAiProviderNameValues

    assert {name for _, name in HOSTS} <= {each.value for each in GenAiProviderNameValues}
