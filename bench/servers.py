"""Who is measured: what each is started with, and under which paths it answers.

Of the other gateways PyPI has releases: each is installed once, into an environment of its own under
`.cache/bench`. One that cannot be had here is left out, with its reason.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import orjson

from .processes import ROOT, Server, free_port

PLACE = ROOT / ".cache" / "bench"
MODELS = ("fast", "idle")


class Missing(Exception):
    """It cannot be measured here; the text says why."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One server in front of the scripted backend."""

    name: str
    start: Callable[[Path, str], Server]
    """From a folder for its files and the backend's address; raises `Missing`."""
    version: Callable[[], str]
    passed: str | None = None
    """The path of Chat Completions, None: it has none."""
    translated: str | None = None
    """The path of Responses over a backend that speaks Chat Completions."""
    prefix: str = ""
    """Of the backend's model names."""
    quick: bool = field(default=False, kw_only=True)
    """Whether it is measured when only the targets count."""

    def path(self, lane: str) -> str | None:
        return self.passed if lane == "passed" else self.translated


# --- without logic ------------------------------------------------------------------------


class Direct(Server):
    """The backend itself, which runs already; what it costs is nobody's overhead."""

    def __init__(self, behind: Server) -> None:
        self.url, self.start_seconds, self._behind = behind.url, 0.0, behind

    def __enter__(self) -> Direct:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def cpu_seconds(self) -> float:
        return self._behind.cpu_seconds()

    def memory_mb(self) -> float:
        return self._behind.memory_mb()


def backend() -> Server:
    port = free_port()
    return Server([sys.executable, "-m", "bench.backend", str(port)], port)


def _relay(_: Path, behind: str) -> Server:
    port = free_port()
    return Server([sys.executable, "-m", "bench.relay", str(port), behind], port)


_NGINX = """
worker_processes 1;
error_log stderr crit;
pid {folder}/nginx.pid;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    client_max_body_size 64m;
    client_body_buffer_size 2m;
    keepalive_requests 1000000;
    upstream behind {{ server {behind}; keepalive 256; keepalive_requests 1000000; }}
    server {{
        listen 127.0.0.1:{port} backlog=2048;
        location / {{
            proxy_pass http://behind;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_read_timeout 3600s;
        }}
    }}
}}
"""


def _nginx(folder: Path, behind: str) -> Server:
    program, port = _program("nginx"), free_port()
    text = _NGINX.format(folder=folder, behind=behind.removeprefix("http://"), port=port)
    (folder / "nginx.conf").write_text(text)
    return Server([program, "-c", str(folder / "nginx.conf"), "-g", "daemon off;"], port)


def _nginx_version() -> str:
    said = subprocess.run([_program("nginx"), "-v"], capture_output=True, text=True).stderr
    return said.strip().rpartition("/")[2]


def _program(name: str) -> str:
    found = shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if found is None:
        raise Missing(f"no {name} on this machine")
    return found


# --- gateways -----------------------------------------------------------------------------


def dragoman(folder: Path, behind: str, workers: int = 1) -> Server:
    """One provider of the base profile: its streams are watched, as those of any unknown server."""
    port, path = free_port(), folder / "dragoman.toml"
    lines = ['name = "up"', 'kind = "openai"', f'base_url = "{behind}/v1"', 'wire = "chat"']
    path.write_text("\n".join(["[[providers]]", *lines, f"models = {list(MODELS)}", ""]))
    command = str(Path(sys.executable).with_name("dragoman"))
    options = ["--config", str(path), "--port", str(port), "--workers", str(workers)]
    return Server([command, "serve", *options], port, {"XDG_STATE_HOME": str(folder)})


def _litellm(folder: Path, behind: str) -> Server:
    command, port = _installed("litellm", "litellm[proxy]"), free_port()
    models = [
        {
            "model_name": f"up/{model}",
            "litellm_params": {
                "model": f"openai/{model}",
                "api_base": f"{behind}/v1",
                "api_key": "none",
                "use_chat_completions_api": True,
            },
        }
        for model in MODELS
    ]
    settings = {"telemetry": False, "num_retries": 0, "drop_params": True}
    config = {"model_list": models, "litellm_settings": settings}
    (folder / "litellm.yaml").write_bytes(orjson.dumps(config))
    options = ["--config", str(folder / "litellm.yaml"), "--host", "127.0.0.1", "--port", str(port)]
    environ = {
        "LITELLM_TELEMETRY": "False",
        "LITELLM_LOG": "ERROR",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
        "DISABLE_SCHEMA_UPDATE": "true",
    }
    return Server([command, *options, "--num_workers", "1"], port, environ)


def _codex_proxy(folder: Path, behind: str) -> Server:
    command, port = _installed("codex-proxy", "codex-proxy"), free_port()
    lines = [
        "[server]",
        f'log_dir = "{folder}/logs"',
        "max_retries = 0",
        "[circuit_breaker]",
        "enabled = false",
        "[compaction]",
        "enabled = false",
        "[provider]",
        'name = "up"',
        f'base_url = "{behind}/v1"',
        'api_key = "none"',
        f"models = {list(MODELS)}",
        'default_model = "fast"',
    ]
    (folder / "codex-proxy.toml").write_text("\n".join([*lines, ""]))
    options = ["--config", str(folder / "codex-proxy.toml"), "--host", "127.0.0.1", "--port", str(port)]
    return Server([command, *options], port, {"HOME": str(folder)})


def _installed(name: str, wanted: str) -> str:
    """The command of a release from PyPI in an environment of its own."""
    place = PLACE / name
    command = place / "bin" / name
    if command.exists():
        return str(command)
    print(f"installing {name} into {place.relative_to(ROOT)}, once", file=sys.stderr, flush=True)
    steps = ([sys.executable, "-m", "venv", str(place)], [str(place / "bin/pip"), "install", "-q", wanted])
    for step in steps:
        ran = subprocess.run(step, capture_output=True, text=True)
        if ran.returncode:
            shutil.rmtree(place, ignore_errors=True)
            raise Missing(f"{name} could not be installed: {ran.stderr.strip().splitlines()[-1:]}")
    return str(command)


def _release(name: str) -> Callable[[], str]:
    def version() -> str:
        found = metadata.distributions(name=name, path=[str(p) for p in (PLACE / name).glob("lib/*/*")])
        return next((each.version for each in found), "?")

    return version


def _bare_version() -> str:
    return ", ".join(f"{name} {metadata.version(name)}" for name in ("fastapi", "uvicorn", "aiohttp"))


_CHAT, _RESPONSES = "/v1/chat/completions", "/v1/responses"

CONTENDERS: Mapping[str, Contender] = {
    each.name: each
    for each in (
        Contender("nginx", _nginx, _nginx_version, _CHAT),
        Contender("relay", _relay, _bare_version, _CHAT, quick=True),
        Contender(
            "dragoman", dragoman, lambda: metadata.version("dragoman"), _CHAT, _RESPONSES, "up/", quick=True
        ),
        Contender("litellm", _litellm, _release("litellm"), _CHAT, _RESPONSES, "up/"),
        Contender("codex-proxy", _codex_proxy, _release("codex-proxy"), None, "/responses"),
    )
}
"""In the order of the tables; the first of all is the backend itself."""
