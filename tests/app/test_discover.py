"""What is found without a configuration, and what a person is told about it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from app.cli.discover import LOCAL, NEXT_STEPS, Discovery, discover
from config.problems import ConfigErrors
from tests.backends.loopback import Loopback, Reply, Request

HOST, TOKEN = "https://dbc-1.cloud.databricks.com", "dapi-secret"
CFG = (
    f"[DEFAULT]\nhost = {HOST}/?o=1\ntoken = {TOKEN}%\n\n[other]\nhost = https://other\ntoken = dapi-other\n"
)


@pytest.fixture(autouse=True)
def _no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of the test's own answers late on a busy machine."""
    monkeypatch.setattr("app.cli.discover.PROBE_S", 5.0)


def look(environ: dict[str, str], home: Path, local: Any = (), **server: Any) -> Discovery:
    return discover(environ, server, home, local, embedded=False)


def found(discovery: Discovery) -> list[tuple[str, str, str, str | None]]:
    return [
        (each.name, each.kind, each.base_url or "", each.api_key.get_secret_value() if each.api_key else None)
        for each in discovery.config.providers
    ]


OPENAI = "https://api.openai.com/v1"
ENVIRONMENTS: list[tuple[dict[str, str], list[tuple[str, str, str, str | None]]]] = [
    ({}, []),
    ({"OPENAI_API_KEY": ""}, []),
    ({"OPENAI_API_KEY": "sk"}, [("openai", "openai", OPENAI, "sk")]),
    (
        {"OPENAI_API_KEY": "sk", "OPENAI_BASE_URL": "http://h/v1/"},
        [("openai", "openai", "http://h/v1", "sk")],
    ),
    ({"OPENAI_BASE_URL": "http://h/v1"}, [("openai", "openai", "http://h/v1", None)]),
    ({"DATABRICKS_HOST": HOST}, []),
    ({"DATABRICKS_HOST": HOST, "DATABRICKS_TOKEN": "t"}, [("databricks", "databricks", HOST, "t")]),
    (
        {"DATABRICKS_API_BASE": HOST + "/serving-endpoints", "DATABRICKS_API_KEY": "t"},
        [("databricks", "databricks", HOST, "t")],
    ),
    (
        {"OPENAI_API_KEY": "sk", "DATABRICKS_HOST": "dbc-1.cloud.databricks.com", "DATABRICKS_TOKEN": "t"},
        [("openai", "openai", OPENAI, "sk"), ("databricks", "databricks", HOST, "t")],
    ),
]


@pytest.mark.parametrize(("environ", "providers"), ENVIRONMENTS, ids=range(len(ENVIRONMENTS)))
def test_keys_in_the_environment(environ: dict[str, str], providers: Any, tmp_path: Path) -> None:
    discovery = look(environ, tmp_path)
    assert found(discovery) == providers
    if not providers:
        assert discovery.lines[-len(NEXT_STEPS) :] == list(NEXT_STEPS)
    else:
        assert len(discovery.lines) == len(providers) + 1
        assert "http://127.0.0.1:4000/v1" in discovery.lines[-1]


@pytest.mark.parametrize(
    ("environ", "provider"),
    [
        ({}, ("databricks", "databricks", HOST, TOKEN + "%")),
        ({"DATABRICKS_CONFIG_PROFILE": "other"}, ("databricks", "databricks", "https://other", "dapi-other")),
        ({"DATABRICKS_CONFIG_PROFILE": "none"}, None),
        ({"DATABRICKS_CONFIG_FILE": "/nowhere"}, None),
        (
            {"DATABRICKS_HOST": "https://h", "DATABRICKS_TOKEN": "t"},
            ("databricks", "databricks", "https://h", "t"),
        ),
    ],
)
def test_the_databricks_file(environ: dict[str, str], provider: Any, tmp_path: Path) -> None:
    (tmp_path / ".databrickscfg").write_text(CFG)
    discovery = look(environ, tmp_path)
    assert found(discovery) == ([provider] if provider else [])
    assert "secret" not in "\n".join(discovery.lines)


@pytest.mark.parametrize("content", ["no section", "[a]\n[a]\n", "[DEFAULT]\nhost = https://h\n", "\udcff"])
def test_a_broken_databricks_file_is_passed_over(content: str, tmp_path: Path) -> None:
    (tmp_path / ".databrickscfg").write_bytes(content.encode(errors="surrogateescape"))
    assert found(look({}, tmp_path)) == []


def test_a_bad_address_is_told_and_passed_over(tmp_path: Path) -> None:
    discovery = look({"OPENAI_API_KEY": "sk-secret", "OPENAI_BASE_URL": "localhost:8000"}, tmp_path)
    assert found(discovery) == []
    assert discovery.lines[0] == "OPENAI_API_KEY: ignored, its address must begin with http:// or https://"


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("http://127.0.0.1:4000/v1", {}),
        ("http://localhost:4000/v1", {}),
        ("http://[::1]:4000/v1", {}),
        ("http://127.0.0.1:5/v1", {"port": 5}),
        ("http://gw.example:4000/v1", {"host": "gw.example", "api_keys": ["k"]}),
    ],
)
def test_the_gateway_does_not_serve_itself(url: str, server: dict[str, Any], tmp_path: Path) -> None:
    discovery = look({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": url}, tmp_path, **server)
    assert found(discovery) == []
    assert "this gateway itself" in discovery.lines[0]


def _server(body: bytes, status: int = 200) -> Loopback:
    def answer(request: Request) -> Reply:
        known = request.path in ("/v1/models", "/api/tags")
        return Reply(status if known else 404, {"content-length": str(len(body))}, (body,))

    return Loopback(answer)


def test_local_servers_that_list_models(tmp_path: Path) -> None:
    with (
        _server(b'{"data":[]}') as good,
        _server(b"<html>") as page,
        _server(b"[]") as array,
        _server(b'{"data":[]}', 500) as sick,
    ):
        local = tuple(
            (name, f"{server.origin}/v1", "vllm")
            for name, server in {"good": good, "page": page, "array": array, "sick": sick}.items()
        )
        discovery = look({}, tmp_path, (*local, ("absent", "http://127.0.0.1:1/v1", "vllm")))
    (provider,) = discovery.config.providers
    assert (provider.name, provider.kind, provider.profile) == ("good", "openai", "vllm")
    assert discovery.lines[0] == f"found: provider good at {good.origin}/v1"


@pytest.mark.parametrize(
    ("listed", "model"),
    [
        (b'{"data":[{"id":"text-embed"},{"id":"it\'s"},{"id":"b"}]}', "good/it's"),
        (b'{"data":[{"id":"text-embed"},{},3]}', None),
    ],
)
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_command_to_try(listed: bytes, model: str | None, host: str, tmp_path: Path) -> None:
    """One that a shell takes as it stands; with the key where one is asked."""
    with _server(listed) as server:
        local = (("good", f"{server.origin}/v1", "vllm"),)
        lines = look({"DRAGOMAN_API_KEY": "k"}, tmp_path, local, host=host).lines
    commands = [shlex.split(line.removeprefix("try it: ")) for line in lines if line.startswith("try it: ")]
    assert [json.loads(words[-1])["model"] for words in commands] == ([model] if model else [])
    for words in commands:
        assert f"http://{host}:4000/v1/responses" in words
        assert ("authorization: Bearer $DRAGOMAN_API_KEY" in words) == (host == "0.0.0.0")
        assert "k" not in words


@pytest.mark.parametrize(
    "form", ["{host}:{port}", "http://{host}:{port}", "http://{host}:{port}/", "0.0.0.0:{port}"]
)
def test_ollama_is_where_its_variable_says(form: str, tmp_path: Path) -> None:
    with _server(b'{"models":[]}') as server:
        port = server.origin.rpartition(":")[2]
        environ = {"OLLAMA_HOST": form.format(host="127.0.0.1", port=port)}
        discovery = look(environ, tmp_path, (("ollama", "http://127.0.0.1:1", "ollama"),))
    (provider,) = discovery.config.providers
    assert (provider.kind, provider.base_url, provider.profile) == (
        "ollama",
        f"http://127.0.0.1:{port}",
        None,
    )


@pytest.mark.parametrize("profile", ["ollama", "vllm"])
def test_an_ollama_is_known_by_its_own_listing(profile: str, tmp_path: Path) -> None:
    tags = b'{"models": [{"name": "llama3:8b"}, {"name": ""}, {}, "odd", {"name": "qwen3:4b"}]}'

    def answer(request: Request) -> Reply:
        known = request.path == "/api/tags"
        return Reply(200 if known else 404, {"content-length": str(len(tags))}, (tags,))

    with Loopback(answer) as server:
        discovery = look({}, tmp_path, (("local", server.origin, profile),))
    wanted = [("local", "ollama", server.origin, None)] if profile == "ollama" else []
    found = [(each.name, each.kind, each.base_url, each.models) for each in discovery.config.providers]
    assert found == wanted
    assert any("local/llama3:8b" in line for line in discovery.lines) == bool(wanted)


@pytest.mark.parametrize("value", ["nowhere.invalid", "0.0.0.0", "https://127.0.0.1", "::::", "[::1"])
def test_an_ollama_that_does_not_answer_is_not_there(value: str, tmp_path: Path) -> None:
    local = (("ollama", "http://127.0.0.1:1", "ollama"),)
    first, *rest = look({"OLLAMA_HOST": value}, tmp_path, local).lines
    assert first.startswith("OLLAMA_HOST: no Ollama answers there")
    assert rest == list(NEXT_STEPS)


def test_a_workspace_without_a_token_is_told(tmp_path: Path) -> None:
    first, *rest = look({"DATABRICKS_HOST": HOST}, tmp_path).lines
    assert first.startswith("DATABRICKS_HOST: no token goes with it")
    assert rest == list(NEXT_STEPS)


def test_an_ipv6_host_is_shown_in_brackets(tmp_path: Path) -> None:
    assert "http://[::1]:4000/v1" in look({"OPENAI_API_KEY": "k"}, tmp_path, host="::1").lines[-1]


def test_off_loopback_a_key_is_asked(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors, match=r"server\.api_keys: required[^\n]*\n.*export DRAGOMAN_API_KEY"):
        look({}, tmp_path, host="0.0.0.0")
    with pytest.raises(ConfigErrors) as caught:
        look({"DRAGOMAN_API_KEY": "k"}, tmp_path, host="0.0.0.0", port=99999)
    assert "DRAGOMAN_API_KEY" not in str(caught.value)
    discovery = look({"DRAGOMAN_API_KEY": "k"}, tmp_path, host="0.0.0.0")
    assert [key.get_secret_value() for key in discovery.config.server.api_keys] == ["k"]
    assert look({"DRAGOMAN_API_KEY": "k"}, tmp_path).config.server.api_keys == ()


def test_the_usual_ports() -> None:
    assert {url for _, url, _ in LOCAL} == {
        f"http://127.0.0.1:{place}" for place in ("11434", "8000/v1", "8080/v1", "1234/v1")
    }


def test_what_gateways_have_in_common(tmp_path: Path) -> None:
    url = "postgresql://u:p@db/d"
    discovery = look({"DRAGOMAN_DATABASE_URL": url, "DRAGOMAN_SEAL_KEY": "s-1"}, tmp_path, port=4001)
    config = discovery.config
    assert config.store.kind == "postgres"
    assert config.store.url is not None
    assert config.store.url.get_secret_value() == url
    assert config.server.seal_key is not None
    assert config.server.seal_key.get_secret_value() == "s-1"
    assert config.server.port == 4001
    assert not [line for line in discovery.lines if url in line or "s-1" in line]


def test_empty_variables_are_none(tmp_path: Path) -> None:
    config = look({"DRAGOMAN_DATABASE_URL": "", "DRAGOMAN_SEAL_KEY": ""}, tmp_path).config
    assert config.store.kind == "sqlite"
    assert config.server.seal_key is None
