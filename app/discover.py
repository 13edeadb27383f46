"""What there is to serve when nothing is configured: keys in the environment, local servers.

Looks once, before the gateway starts, and says in plain lines what it found and what to do
next. A key is never printed.
"""

from __future__ import annotations

import asyncio
import configparser
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from config.address import normalise
from config.checks import is_loopback
from config.load import check
from config.problems import ConfigErrors, Problem
from config.schema import Config
from providers.profiles import BY_NAME

PROBE_S = 0.3
"""A local server answers at once or is not there."""
OPENAI_URL = "https://api.openai.com/v1"
LOCAL: tuple[tuple[str, str, str], ...] = (
    ("ollama", "http://127.0.0.1:11434/v1", "ollama-openai"),
    ("vllm", "http://127.0.0.1:8000/v1", "vllm"),
    ("llamacpp", "http://127.0.0.1:8080/v1", "llamacpp"),
    ("lmstudio", "http://127.0.0.1:1234/v1", "lmstudio"),
)
"""Provider name, base URL and profile of each server where its own defaults put it."""

NEXT_STEPS = (
    "nothing to serve was found. Do one of these and start again:",
    "  export OPENAI_API_KEY=...     OpenAI; with OPENAI_BASE_URL=http://host/v1 any compatible server",
    "  export DATABRICKS_HOST=https://... DATABRICKS_TOKEN=...     or put a token into ~/.databrickscfg",
    "  start a local server          Ollama, vLLM, llama.cpp or LM Studio on its usual port",
    "  write dragoman.toml           config/example.toml shows every setting; try it: dragoman check",
)
KEY_STEP = "without a file the key that clients sign with is: export DRAGOMAN_API_KEY=..."


@dataclass(slots=True)
class Discovery:
    """What was found, ready to serve, and the lines that tell a person about it."""

    config: Config
    lines: list[str]


@dataclass(slots=True)
class _Findings:
    """Provider tables in the form of the configuration file."""

    own: tuple[str, int]
    providers: list[dict[str, Any]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    example: str = ""
    """`provider/model` of the first model that can be talked to, as far as any is known yet."""

    def add(self, source: str, provider: dict[str, Any], models: Iterable[str] = ()) -> None:
        """Keep a provider, unless it is this gateway itself or its address is not valid."""
        try:
            url = normalise(provider["base_url"], provider["kind"])
        except ValueError as error:
            self.lines.append(f"{source}: ignored, its address {error}")
            return
        if _leads_home(url, self.own):
            self.lines.append(f"{source}: ignored, {url} is this gateway itself")
            return
        self.providers.append({**provider, "base_url": url})
        self.lines.append(f"{source}: provider {provider['name']} at {url}")
        talking = (f"{provider['name']}/{model}" for model in models if "embed" not in model.lower())
        self.example = self.example or next(talking, "")


def discover(
    environ: Mapping[str, str],
    server: Mapping[str, Any],
    home: Path,
    local: tuple[tuple[str, str, str], ...] | None = None,
) -> Discovery:
    """Look around; `server` holds values from the command line. Raises `ConfigErrors` for those."""
    host, port = str(server.get("host", "127.0.0.1")), int(server.get("port", 4000))
    findings = _Findings((host, port))
    for source, provider in (*_openai(environ), *_databricks(environ, home)):
        findings.add(source, provider)
    for provider, models in asyncio.run(_servers(environ, LOCAL if local is None else local)):
        findings.add("found", provider, models)
    findings.lines += _missed(environ, {provider["name"] for provider in findings.providers})
    table = dict(server)
    # Off loopback a key is required, and without a file this is the only place for one.
    key = "" if is_loopback(host) else environ.get("DRAGOMAN_API_KEY", "")
    if key:
        table["api_keys"] = [key]
    problems, config = check({"server": table, "providers": findings.providers}, {}, BY_NAME)
    if config is None:
        unsigned = not is_loopback(host) and not table.get("api_keys")
        raise ConfigErrors([*problems, *([Problem((), KEY_STEP)] if unsigned else [])])
    steps = _usage(host, port, findings.example, bool(config.server.api_keys))
    return Discovery(config, findings.lines + (steps if config.providers else list(NEXT_STEPS)))


def _missed(environ: Mapping[str, str], found: Collection[str]) -> Iterator[str]:
    """What was meant to be found, going by the environment, and why it was not."""
    if "databricks" not in found and (environ.get("DATABRICKS_HOST") or environ.get("DATABRICKS_API_BASE")):
        yield "DATABRICKS_HOST: no token goes with it; set DATABRICKS_TOKEN to a personal access token"
    if "ollama" not in found and environ.get("OLLAMA_HOST"):
        yield "OLLAMA_HOST: no Ollama answers there; start it with: ollama serve"


def _openai(environ: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    key, url = environ.get("OPENAI_API_KEY"), environ.get("OPENAI_BASE_URL")
    if key or url:
        source = "OPENAI_API_KEY" if key else "OPENAI_BASE_URL"
        yield source, _provider("openai", "openai", url or OPENAI_URL, key)


def _databricks(environ: Mapping[str, str], home: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The environment wins over ~/.databrickscfg, as in Databricks' own tools."""
    host = environ.get("DATABRICKS_HOST") or environ.get("DATABRICKS_API_BASE")
    token = environ.get("DATABRICKS_TOKEN") or environ.get("DATABRICKS_API_KEY")
    if host and token:
        yield "DATABRICKS_HOST", _provider("databricks", "databricks", host, token)
        return
    path = Path(environ.get("DATABRICKS_CONFIG_FILE") or home / ".databrickscfg")
    profile = environ.get("DATABRICKS_CONFIG_PROFILE") or "DEFAULT"
    section = _databrickscfg(path, profile)
    if section.get("host") and section.get("token"):
        yield (
            f"{path}, profile {profile}",
            _provider("databricks", "databricks", section["host"], section["token"]),
        )


def _databrickscfg(path: Path, profile: str) -> Mapping[str, str]:
    # DEFAULT is a profile like any other there, not a base that others inherit from.
    parser = configparser.ConfigParser(interpolation=None, default_section="")
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError, OSError):
        return {}
    return parser[profile] if parser.has_section(profile) else {}


async def _servers(
    environ: Mapping[str, str], local: tuple[tuple[str, str, str], ...]
) -> list[tuple[dict[str, Any], list[str]]]:
    """The servers among `local` that list models, with these; asked at the same time."""
    moved = [
        (
            name,
            _ollama_url(environ["OLLAMA_HOST"]) if name == "ollama" and environ.get("OLLAMA_HOST") else url,
        )
        for name, url, _ in local
    ]
    answers = await asyncio.gather(*(_probe(name, url) for name, url in moved))
    return [
        ({**_provider(name, "openai", url, None), "profile": profile, **answer[0]}, answer[1])
        for (name, url), (_, _, profile), answer in zip(moved, local, answers, strict=True)
        if answer is not None
    ]


async def _probe(name: str, url: str) -> tuple[dict[str, Any], list[str]] | None:
    """What a server's table needs besides its address, and its models; None: nothing there lists any."""
    listed = await _listed(f"{url}/models", "data")
    if listed is not None:
        return {}, _names(listed, "id")
    if name != "ollama":
        return None
    # An old Ollama lists its models in its own way only.
    tags = await _listed(f"{url.removesuffix('/v1')}/api/tags", "models")
    return None if tags is None else ({"models": _names(tags, "name")}, _names(tags, "name"))


def _names(entries: list[Any], key: str) -> list[str]:
    names = [entry.get(key) for entry in entries if isinstance(entry, dict)]
    return [name for name in names if isinstance(name, str) and name]


async def _listed(url: str, key: str) -> list[Any] | None:
    import httpx

    try:
        async with httpx.AsyncClient(timeout=PROBE_S, trust_env=False) as client:
            body = (await client.get(url)).raise_for_status().json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return None
    found = body.get(key) if isinstance(body, dict) else None
    return found if isinstance(found, list) else None


def _ollama_url(value: str) -> str:
    """OLLAMA_HOST as Ollama reads it: scheme and port may be missing, 0.0.0.0 means here."""
    text = value.strip().rstrip("/")
    scheme, _, rest = text.rpartition("://")
    host, colon, port = rest.rpartition(":")
    if not colon:
        host, port = rest, {"http": "80", "https": "443"}.get(scheme, "11434")
    host = "127.0.0.1" if host in ("", "0.0.0.0") else host  # noqa: S104 - compared, not bound
    return f"{scheme or 'http'}://{host}:{port}/v1"


def _provider(name: str, kind: str, base_url: str, key: str | None) -> dict[str, Any]:
    return {"name": name, "kind": kind, "base_url": base_url} | ({"api_key": key} if key else {})


def _leads_home(url: str, own: tuple[str, int]) -> bool:
    """Whether a base URL is this gateway: a client's OPENAI_BASE_URL often is."""
    host, _, port = url.partition("://")[2].partition("/")[0].rpartition(":")
    return port == str(own[1]) and (host == own[0] or is_loopback(host.strip("[]")))


def _usage(host: str, port: int, example: str, signed: bool) -> list[str]:
    """Where to knock, and a command that gets an answer; port 0 is not known before it is opened."""
    if not port:
        return []
    base = f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"
    lines = [f"point any OpenAI client at {base}; curl {base}/models lists the models"]
    if example:
        body = orjson.dumps({"model": example, "input": "Say hello.", "stream": True}).decode()
        key = ' -H "authorization: Bearer $DRAGOMAN_API_KEY"' if signed else ""
        ask = f"curl -N {base}/responses{key} -H 'content-type: application/json' -d {shlex.quote(body)}"
        lines.append(f"try it: {ask}")
    return lines
