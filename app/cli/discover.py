"""What there is to serve when nothing is configured: keys in the environment, local servers,
and where the engine is installed the models that were pulled and, in any case, the small one of the package.

Looks once, before the gateway starts, and says in plain lines what it found and what to do
next. A key is never printed.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from config.address import normalise
from config.checks import is_loopback
from config.databricks_account import ProfileFile
from config.load import check
from config.problems import ConfigErrors, Problem
from config.schema import Config
from providers.databricks_tokens import NO_SDK, sdk_is_installed
from providers.onnx.extra import EMBEDDED, extra_is_installed, pulled_models
from providers.profiles import BY_NAME

PROBE_S = 0.3
"""A local server answers at once or is not there."""
OPENAI_URL = "https://api.openai.com/v1"
LOCAL: tuple[tuple[str, str, str], ...] = (
    ("ollama", "http://127.0.0.1:11434", "ollama"),
    ("vllm", "http://127.0.0.1:8000/v1", "vllm"),
    ("llamacpp", "http://127.0.0.1:8080/v1", "llamacpp"),
    ("lmstudio", "http://127.0.0.1:1234/v1", "lmstudio"),
)
"""Provider name, base URL and profile of each server where its own defaults put it.

Ollama is spoken to by its own API: its root, and its kind in the place of a profile.
"""

EMBEDDED_MODEL = "embedded/tiny-chat"
ONLY_EMBEDDED = "there is only a demonstration model, which knows a few sentences. For a real one:"
NEXT_STEPS = (
    "nothing to serve was found. Do one of these and start again:",
    "  export OPENAI_API_KEY=...     OpenAI; with OPENAI_BASE_URL=http://host/v1 any compatible server",
    "  export DATABRICKS_HOST=https://... DATABRICKS_TOKEN=...     or put a token into ~/.databrickscfg",
    "  dragoman pull ORG/NAME        an ONNX model of a Hugging Face hub, run on this machine",
    "  start a local server          Ollama, vLLM, llama.cpp or LM Studio on its usual port",
    "  write dragoman.toml           config/example.toml shows every setting; try it: dragoman check",
)
BRIEFLY = "only a demonstration model was found; dragoman serve says how to get a real one"
BRIEFLY_NOTHING = "nothing to serve was found; dragoman serve says what to do"
KEY_STEP = "without a file the key that clients sign with is: export DRAGOMAN_API_KEY=..."


@dataclass(slots=True)
class Discovery:
    """What was found, ready to serve, and the lines that tell a person about it."""

    config: Config
    lines: list[str]
    brief: list[str]
    """The same without what to do next, for commands that are not asked to serve."""


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

    def add_pulled(self, root: Path) -> None:
        """What `dragoman pull` has fetched, if anything of it can be run."""
        from providers.onnx.folder import scan

        usable = [each for each in scan(root) if each.reason is None] if root.is_dir() else []
        if not usable:
            return
        self.providers.append({"name": "local", "kind": "onnx", "path": str(root)})
        self.lines.append(f"pulled: provider local at {root}, models: {len(usable)}")
        talking = (f"local/{each.name}" for each in usable if each.kind == "chat")
        self.example = self.example or next(talking, "")

    def add_embedded(self) -> None:
        """The model of the package, last of all: whatever else there is knows more."""
        self.providers.append({"name": "embedded", "kind": "onnx", "path": str(EMBEDDED)})
        self.lines.append(f"in the package: {EMBEDDED_MODEL}, a demonstration model")
        self.example = self.example or ("" if len(self.providers) > 1 else EMBEDDED_MODEL)


def discover(
    environ: Mapping[str, str],
    server: Mapping[str, Any],
    home: Path,
    local: tuple[tuple[str, str, str], ...] | None = None,
    embedded: bool | None = None,
) -> Discovery:
    """Look around; `server` holds values from the command line. Raises `ConfigErrors` for those.

    `embedded`: whether the model of the package can be run; None: find out.
    """
    host, port = str(server.get("host", "127.0.0.1")), int(server.get("port", 4000))
    findings = _Findings((host, port))
    for source, provider in (*_openai(environ), *_databricks(environ, home)):
        findings.add(source, provider)
    for provider, models in asyncio.run(_servers(environ, LOCAL if local is None else local)):
        findings.add("found", provider, models)
    findings.lines += _missed(environ, home, {provider["name"] for provider in findings.providers})
    runs = extra_is_installed() if embedded is None else embedded
    if runs:
        findings.add_pulled(pulled_models(environ, home))
        findings.add_embedded()
    shared, lines = _shared(environ)
    findings.lines += lines
    table = {**shared.pop("server", {}), **server}
    # Off loopback a key is required, and without a file this is the only place for one.
    key = "" if is_loopback(host) else environ.get("DRAGOMAN_API_KEY", "")
    if key:
        table["api_keys"] = [key]
    found: dict[str, Any] = {"server": table, "providers": findings.providers, **shared}
    if runs and len(findings.providers) > 1:
        found["classes"] = {"tiny chat": "never"}  # a demonstration stands in for no model that fails
    problems, config = check(found, {}, BY_NAME)
    if config is None:
        unsigned = not is_loopback(host) and not table.get("api_keys")
        raise ConfigErrors([*problems, *([Problem((), KEY_STEP)] if unsigned else [])])
    steps = _usage(host, port, findings.example, bool(config.server.api_keys))
    return _told(config, findings.lines, steps, runs)


def _shared(environ: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """What several gateways have in common, by the variables that files name it by, and lines about it."""
    found: dict[str, Any] = {}
    lines = []
    if secret := environ.get("DRAGOMAN_SEAL_KEY"):
        found["server"] = {"seal_key": secret}
        lines.append("DRAGOMAN_SEAL_KEY: reasoning is signed with it")
    if url := environ.get("DRAGOMAN_DATABASE_URL"):
        found["store"] = {"kind": "postgres", "url": url}
        lines.append("DRAGOMAN_DATABASE_URL: responses are kept there")
    return found, lines


def _told(config: Config, lines: list[str], steps: list[str], embedded: bool) -> Discovery:
    """What was found and what to do next; `embedded`: the model of the package is among it."""
    if not config.providers:
        return Discovery(config, [*lines, *NEXT_STEPS], [*lines, BRIEFLY_NOTHING])
    if embedded and len(config.providers) == 1:
        return Discovery(config, [*lines, *steps, ONLY_EMBEDDED, *NEXT_STEPS[1:]], [*lines[:-1], BRIEFLY])
    return Discovery(config, lines + steps, lines)


def _missed(environ: Mapping[str, str], home: Path, found: Collection[str]) -> Iterator[str]:
    """What was meant to be found, going by the environment, and why it was not."""
    if "databricks" not in found and (environ.get("DATABRICKS_HOST") or environ.get("DATABRICKS_API_BASE")):
        yield (
            "DATABRICKS_HOST: no token goes with it; set DATABRICKS_TOKEN to a personal access token, or "
            "DATABRICKS_CLIENT_ID and DATABRICKS_CLIENT_SECRET to a service principal's; for another way "
            'write dragoman.toml with auth = "sdk"'
        )
    source, _, section = _profile(environ, home)
    if "databricks" not in found and section.get("host") and _needs_sdk(section):
        yield f"{source}: {NO_SDK}"
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
    client, secret = environ.get("DATABRICKS_CLIENT_ID"), environ.get("DATABRICKS_CLIENT_SECRET")
    if host and (token or (client and secret)):
        principal = {} if token else {"client_id": client, "client_secret": secret}
        yield "DATABRICKS_HOST", {**_provider("databricks", "databricks", host, token), **principal}
        return
    source, name, section = _profile(environ, home)
    if section.get("host") and section.get("token"):
        yield source, _provider("databricks", "databricks", section["host"], section["token"])
    elif section.get("host") and (_is_principal(section) or (_needs_sdk(section) and sdk_is_installed())):
        provider = _provider("databricks", "databricks", section["host"], None)
        yield source, {**provider, "config_profile": name}


def _profile(environ: Mapping[str, str], home: Path) -> tuple[str, str, Mapping[str, str]]:
    """Where the profile that is meant stands, its name, and its keys."""
    file = ProfileFile.read(environ, home)
    name = file.default(environ)
    return f"{file.path}, profile {name}", name, file.sections.get(name, {})


def _is_principal(section: Mapping[str, str]) -> bool:
    return bool(section.get("client_id") and section.get("client_secret"))


def _needs_sdk(section: Mapping[str, str]) -> bool:
    """A profile that only names a host may be anything; `databricks auth login` writes how to sign in."""
    return section.get("auth_type", "") not in ("", "pat", "oauth-m2m")


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
    asked = (_probe(url, profile) for (_, url), (_, _, profile) in zip(moved, local, strict=True))
    answers = await asyncio.gather(*asked)
    return [
        (_local(name, url, profile), models)
        for (name, url), (_, _, profile), models in zip(moved, local, answers, strict=True)
        if models is not None
    ]


def _local(name: str, url: str, profile: str) -> dict[str, Any]:
    if profile == "ollama":
        return _provider(name, "ollama", url, None)
    return {**_provider(name, "openai", url, None), "profile": profile}


async def _probe(url: str, profile: str) -> list[str] | None:
    """The models of a server; None: nothing there lists any."""
    path, key, name = ("/api/tags", "models", "name") if profile == "ollama" else ("/models", "data", "id")
    listed = await _listed(url + path, key)
    return None if listed is None else _names(listed, name)


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
    return f"{scheme or 'http'}://{host}:{port}"


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
