"""A file becomes a configuration, or every error in it is told, with its place and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.load import find, load, parse
from config.problems import ConfigErrors
from config.schema import Config, ProviderConfig
from providers.profiles import BY_NAME

EXAMPLE = Path(__file__).parents[2] / "config" / "example.toml"
SECRETS = {
    "DRAGOMAN_API_KEY": "sk-client",
    "OPENAI_API_KEY": "sk-openai",
    "DATABRICKS_HOST": "dbc-1.cloud.databricks.com/?o=12",
    "DATABRICKS_TOKEN": "dapi-1",
}

PROVIDER = '[[providers]]\nname = "a"\nkind = "openai"\nbase_url = "http://h/v1"\n'


def errors(text: str, **environ: str) -> list[str]:
    """The faults of a file, as the lines that a person gets, without the file's name."""
    with pytest.raises(ConfigErrors) as caught:
        parse(text, environ, BY_NAME)
    return [line.removeprefix("configuration:").strip() for line in caught.value.lines()]


def test_the_example_is_valid_and_complete() -> None:
    config = load(EXAMPLE, SECRETS, BY_NAME)
    assert config.providers[1].base_url == "https://dbc-1.cloud.databricks.com"
    # The key for capsules stands there as a comment: one that is made by itself is right for most.
    assert config.server.model_fields_set == set(type(config.server).model_fields) - {"seal_key", "keys_file"}
    assert config.server.model_copy(update={"api_keys": ()}) == Config().server
    assert config.providers[2].overrides["reasoning"]["tags"] is None
    assert "sk-" not in repr(config)
    assert "dapi" not in repr(config)


def test_nothing_is_a_valid_configuration() -> None:
    assert load(None, {}, BY_NAME) == Config()


def test_the_command_line_wins_over_the_file() -> None:
    config = parse("[server]\nport = 1\nkeepalive_s = 3\n", {}, BY_NAME, {"port": 2, "workers": 4})
    assert (config.server.port, config.server.workers, config.server.keepalive_s) == (2, 4, 3)


def test_the_command_line_is_checked_too() -> None:
    with pytest.raises(ConfigErrors, match=r"server\.api_keys: required when host is '0\.0\.0\.0'"):
        parse("", {}, BY_NAME, {"host": "0.0.0.0"})
    with pytest.raises(ConfigErrors, match=r"server\.port"):
        parse("", {}, BY_NAME, {"port": 99999})


@pytest.mark.parametrize(
    ("chosen", "variable", "present", "found"),
    [
        ("given.toml", "named.toml", True, "given.toml"),
        (None, "named.toml", True, "named.toml"),
        (None, None, True, "dragoman.toml"),
        (None, "", True, "dragoman.toml"),
        (None, None, False, None),
    ],
)
def test_which_file_is_read(
    chosen: str | None, variable: str | None, present: bool, found: str | None, tmp_path: Path
) -> None:
    if present:
        (tmp_path / "dragoman.toml").write_text("")
    environ = {} if variable is None else {"DRAGOMAN_CONFIG": variable}
    path = find(Path(chosen) if chosen else None, environ, tmp_path)
    assert (path.name if path else None) == found


ONE_FAULT = [
    # text, environment, the line that a person gets
    ("prt = 1", {}, "1: prt: unknown key"),
    ("[sever]\n", {}, '1: sever: unknown key, did you mean "server"?'),
    ("[server]\nprt = 1", {}, '2: server.prt: unknown key, did you mean "port"?'),
    ("[server]\nport = []", {}, "2: server.port: should be a valid integer"),
    ("[server]\nport = true", {}, "2: server.port: must not be true or false"),
    ("[server]\nport = 65536", {}, "2: server.port: should be less than or equal to 65535"),
    ("[server]\nworkers = 0", {}, "2: server.workers: should be greater than or equal to 1"),
    ("[server]\nhost = ''", {}, None),
    ("[server]\nidle_timeout_s = 0", {}, "2: server.idle_timeout_s: should be greater than 0"),
    ("[server]\napi_keys = ['']", {}, "2: server.api_keys[0]: must not be empty"),
    (
        "[server]\nhost = '0.0.0.0'",
        {},
        "1: server.api_keys: required when host is '0.0.0.0', which others can reach; or listen on 127.0.0.1",
    ),
    ("server = 3", {}, "1: server: must be a table"),
    (
        "[providers]\nname = 'a'",
        {},
        "1: providers: must be a list of tables: begin each provider with [[providers]]",
    ),
    ("[[providers]]\nname = 'a'\nbase_url = 'http://h'", {}, "1: providers[0].kind: is required"),
    (
        "[[providers]]\nname = 'a'\nkind = 'opnai'\nbase_url = 'http://h'",
        {},
        "3: providers[0].kind: should be 'openai', 'databricks', 'ollama' or 'onnx', "
        'did you mean "openai"?',
    ),
    (
        "[[providers]]\nname = 'A b'\nkind = 'openai'\nbase_url = 'http://h'",
        {},
        "2: providers[0].name: may hold only a-z, 0-9 and -",
    ),
    (
        "[[providers]]\nname = 'a'\nkind = 'openai'",
        {},
        '1: providers[0].base_url: required for kind openai, e.g. base_url = "https://api.openai.com/v1"',
    ),
    (
        "[[providers]]\nname = 'a'\nkind = 'databricks'",
        {},
        "1: providers[0].base_url: required for kind databricks, "
        'e.g. base_url = "https://dbc-1234.cloud.databricks.com"',
    ),
    (
        "[[providers]]\nname = 'a'\nkind = 'onnx'",
        {},
        '1: providers[0].path: required for kind onnx, e.g. path = "models/tiny"',
    ),
    (
        "[[providers]]\nname = 'a'\nkind = 'onnx'\npath = 'p'\nbase_url = 'http://h'",
        {},
        "5: providers[0].base_url: has no meaning for kind onnx",
    ),
    (PROVIDER + "path = 'p'", {}, "5: providers[0].path: has no meaning for kind openai"),
    (PROVIDER + PROVIDER, {}, "6: providers[1].name: 'a' is the name of providers[0] too; names are unique"),
    (PROVIDER + "models = 'm'", {}, "5: providers[0].models: should be a list"),
    (PROVIDER + "models = ['m', '']", {}, "5: providers[0].models[1]: must not be empty"),
    (PROVIDER + "api_key = 5", {}, "5: providers[0].api_key: should be a valid string"),
    (PROVIDER + "wire = 'responce'", {}, None),
    (PROVIDER + "apikey = 'sk-secret'", {}, '5: providers[0].apikey: unknown key, did you mean "api_key"?'),
    (
        PROVIDER + "reasoning = {tags = false}",
        {},
        '5: providers[0].reasoning: unknown key, did you mean "overrides.reasoning"?',
    ),
    (
        PROVIDER + "profile = 'databricks-claud'",
        {},
        "5: providers[0].profile: no profile is named 'databricks-claud', "
        'did you mean "databricks-claude"?',
    ),
    (
        PROVIDER + "[providers.overrides]\nrequest = {dorp = ['x']}",
        {},
        '6: providers[0].overrides.request.dorp: unknown key, did you mean "drop"?',
    ),
    (
        PROVIDER + "[providers.overrides.request]\ndorp = ['x']",
        {},
        '6: providers[0].overrides.request.dorp: unknown key, did you mean "drop"?',
    ),
    (PROVIDER + "[providers.overrides]\nname = 'x'", {}, "6: providers[0].overrides.name: unknown key"),
    (PROVIDER + "overrides = 3", {}, "5: providers[0].overrides: must be a table"),
    (PROVIDER + "[aliases]\nx = 'b/m'", {}, "6: aliases.x: no provider is named 'b'"),
    (
        PROVIDER.replace('"a"', '"alpha"') + "[aliases]\nx = 'alpa/m'",
        {},
        "6: aliases.x: no provider is named 'alpa', did you mean \"alpha\"?",
    ),
    (
        PROVIDER + "models = ['gpt-sol']\n[aliases]\nx = 'gpt-so'",
        {},
        "7: aliases.x: no provider lists 'gpt-so', did you mean \"gpt-sol\"?",
    ),
    (PROVIDER + "[aliases]\nx = ''", {}, "6: aliases.x: must not be empty"),
    (PROVIDER + "[aliases]\nx = 'x'", {}, "6: aliases.x: leads back to itself"),
    (
        PROVIDER + "[aliases]\n'a/b' = 'a/c'",
        {},
        "6: aliases.a/b: can never be reached: a name that begins with a provider's addresses that provider",
    ),
    ("[server]\nhost = '${NOPE}'", {}, "2: server.host: environment variable NOPE is not set"),
    ("[server]\nport = '${NOPE}'", {}, "2: server.port: environment variable NOPE is not set"),
    ("[server]\nhost = '${NOPE}'", {"NOPE": ""}, "2: server.host: environment variable NOPE is empty"),
    (PROVIDER + "api_key = 'x${NOPE'", {}, None),
    ("a = \n", {}, "1: Invalid value (at line 1, column 5)"),
]


@pytest.mark.parametrize(("text", "environ", "line"), ONE_FAULT, ids=range(len(ONE_FAULT)))
def test_one_fault_is_told_once_and_in_place(text: str, environ: dict[str, str], line: str | None) -> None:
    told = errors(text, **environ)
    if line is None:
        assert len(told) == 1
    else:
        assert told == [line]


def test_all_faults_are_told_in_the_order_of_the_file() -> None:
    text = "\n".join(
        [
            "[server]",
            "host = '0.0.0.0'",
            "prt = 1",
            "api_keys = ['${ABSENT}']",
            "",
            "[[providers]]",
            "name = 'a'",
            "kind = 'openai'",
            "base_url = 'localhost:8000'",
            "profile = 'nope'",
            "[providers.overrides]",
            "request = {dorp = ['x'], stream_options = 'never'}",
            "",
            "[[providers]]",
            "name = 'a'",
            "kind = 'onnx'",
            "",
            "[aliases]",
            "x = 'zzz/m'",
        ]
    )
    places = [line.split(": ")[1] for line in errors(text)]
    assert places == [
        "server.prt",
        "server.api_keys[0]",
        "providers[0].base_url",
        "providers[0].profile",
        "providers[0].overrides.request.dorp",
        "providers[0].overrides.request.stream_options",
        "providers[1].path",
        "providers[1].name",
        "aliases.x",
    ]


ACCEPTED = [
    PROVIDER + "[aliases]\nx = 'a/m'\ny = 'x'\nz = 'anything-discovered'",
    PROVIDER + "models = ['meta/llama']\n[aliases]\nx = 'meta/llama'",
    "[[providers]]\nname = 'o'\nkind = 'ollama'\nbase_url = 'localhost:11434'\n"
    "[providers.overrides]\nnum_ctx = 16384\nkeep_alive = '5m'",
    "[[providers]]\nname = 'x'\nkind = 'onnx'\npath = 'models/tiny'",
    "[server]\nhost = '::1'",
    "[server]\nhost = 'localhost'",
    "[server]\nhost = '127.0.0.2'",
    "[server]\nhost = '0.0.0.0'\napi_keys = ['k']",
    "[server]\napi_keys = []",
]


@pytest.mark.parametrize("text", ACCEPTED, ids=range(len(ACCEPTED)))
def test_what_the_contract_shows_is_accepted(text: str) -> None:
    parse(text, {}, BY_NAME)


def test_no_secret_is_in_an_error() -> None:
    text = PROVIDER + (
        "api_key = ['sk-secret-1']\napi_kee = 'sk-secret-2'\nwire = 'sk-secret-3'\n"
        "[server]\nhost = '0.0.0.0'\napi_keys = 'sk-secret-4'\nkey = '${KEY} ${OTHER}'\n"
    )
    told = errors(text, KEY="sk-secret-5")
    assert len(told) == 5
    assert "secret" not in "\n".join(told)


FILES = [
    (b"\xff\xfe", "is not UTF-8 text"),
    (b"a = 1\nb = = 2\n", ":2: Invalid value"),
]


@pytest.mark.parametrize(("content", "told"), FILES)
def test_a_file_that_cannot_be_read(content: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigErrors) as caught:
        load(path, {}, BY_NAME)
    assert str(path) in str(caught.value)
    assert told in str(caught.value)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors, match=r"nope\.toml: no such file"):
        load(tmp_path / "nope.toml", {}, BY_NAME)
    with pytest.raises(ConfigErrors, match="cannot be read: Is a directory"):
        load(tmp_path, {}, BY_NAME)


def test_a_model_made_in_code_is_checked_as_well() -> None:
    with pytest.raises(ValueError, match=r"request\.dorp: unknown key"):
        ProviderConfig(name="a", kind="openai", base_url="http://h", overrides={"request": {"dorp": []}})
