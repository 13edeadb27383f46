"""A real Codex CLI doing the coding task through a gateway.

    python -m tests.contract.codex_cli http://127.0.0.1:4000/v1 MODEL [--catalogue json|url|none] [--again]

The backend behind the gateway must play the task (tests/backends/coding_backend.py). Codex gets
a home and a project folder of its own; nothing of the developer's Codex is read or written.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from tests.backends.coding_task import AFTER, AGAIN, DONE, FILE, PROMPT, STILL_DONE
from tests.backends.gateway import toml

ROOT = Path(__file__).resolve().parents[2]
Catalogue = Literal["json", "url", "none"]
KEY = "codex-test-key"


def find_codex() -> Path | None:
    """The Codex command: of the PATH, of node_modules, or the one that `make codex` installs."""
    on_path = shutil.which("codex")
    found = [Path(on_path)] if on_path else []
    found += [folder / "node_modules/.bin/codex" for folder in (ROOT, ROOT / ".cache/codex")]
    return next((path for path in found if path.exists()), None)


@dataclass(frozen=True, slots=True)
class Said:
    """What one `codex exec` run printed."""

    status: int
    events: list[dict[str, Any]]
    last: str
    stderr: str

    def kinds(self) -> set[str]:
        """Types of the events and of the items in them: `turn.completed`, `file_change`, ..."""
        items = {str(event["item"].get("type")) for event in self.events if "item" in event}
        return items | {str(event.get("type")) for event in self.events}


class Codex:
    """A Codex with a configuration of its own, pointed at a gateway."""

    def __init__(
        self,
        binary: Path,
        folder: Path,
        base_url: str,
        model: str,
        *,
        catalogue: Catalogue = "json",
        settings: Mapping[str, Any] | None = None,
        servers: Mapping[str, Sequence[str]] | None = None,
        provider: Mapping[str, Any] | None = None,
    ) -> None:
        """`settings` are more top-level keys of its configuration, `provider` more of its provider's;
        `servers` are commands of MCP servers.
        """
        self._binary, self._base_url, self._model = binary, base_url.rstrip("/"), model
        self.home, self.project = folder / "home", folder / "project"
        for path in (self.home / ".codex", self.project, folder / "tmp"):
            path.mkdir(parents=True, exist_ok=True)
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CODEX_HOME": str(self.home / ".codex"),
            "TMPDIR": str(folder / "tmp"),
            "GATEWAY_KEY": KEY,
        }
        self._settings, self._servers = settings or {}, servers or {}
        self._provider = {"name": "gateway", **(provider or {})}
        self._configure(catalogue)

    def task(self, env: Mapping[str, str] | None = None) -> Said:
        """The whole task, from an empty folder, with more in the environment."""
        self._env |= env or {}
        return self._exec("first", [PROMPT])

    def again(self) -> Said:
        """One more question in the same conversation."""
        return self._exec("again", ["resume", "--last", AGAIN])

    def run(self, name: str, arguments: Sequence[str]) -> Said:
        """One `codex exec` with these arguments; `name` is for its files."""
        return self._exec(name, list(arguments))

    def start(self, name: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        """The same, not waited for, in a process group of its own; its output is thrown away."""
        return subprocess.Popen(
            self._argv(name, list(arguments)),
            cwd=self.project,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _configure(self, catalogue: Catalogue) -> None:
        path = self.home / ".codex" / "catalogue.json"
        path.write_bytes(orjson.dumps({"models": [self._entry()]}))
        top = f'model_catalog_json = "{path}"' if catalogue == "json" else ""
        url = f'model_catalog_url = "{self._base_url}/models"' if catalogue == "url" else ""
        more = "\n".join(f"{key} = {toml(value)}" for key, value in self._settings.items())
        own = "\n".join(f"{key} = {toml(value)}" for key, value in self._provider.items())
        servers = "\n".join(_server(name, command) for name, command in self._servers.items())
        config = f"""
{more}
model = "{self._model}"
model_provider = "gateway"
{top}

[model_providers.gateway]
base_url = "{self._base_url}"
env_key = "GATEWAY_KEY"
wire_api = "responses"
request_max_retries = 2
stream_max_retries = 2
stream_idle_timeout_ms = 30000
{url}
{own}
{servers}
"""
        (self.home / ".codex" / "config.toml").write_text(config)

    def _entry(self) -> dict[str, Any]:
        """The model as a catalogue lists it: without `apply_patch_tool_type` there is no patch tool."""
        return {
            "slug": self._model,
            "display_name": self._model,
            "supported_reasoning_levels": [{"effort": "medium", "description": "medium"}],
            "default_reasoning_level": "medium",
            "shell_type": "unified_exec",
            "visibility": "list",
            "supported_in_api": True,
            "priority": 1,
            "support_verbosity": False,
            "apply_patch_tool_type": "freeform",
            "truncation_policy": {"mode": "tokens", "limit": 10000},
            "context_window": 128000,
            "experimental_supported_tools": [],
            "base_instructions": "You are a coding agent.",
        }

    def _exec(self, name: str, arguments: list[str]) -> Said:
        argv = self._argv(name, arguments)
        ran = subprocess.run(
            argv, cwd=self.project, env=self._env, stdin=subprocess.DEVNULL, capture_output=True, timeout=90
        )
        last = self._last(name)
        events = [orjson.loads(line) for line in ran.stdout.splitlines() if line.startswith(b"{")]
        text = last.read_text() if last.exists() else ""
        return Said(ran.returncode, events, text, ran.stderr.decode(errors="replace"))

    def _argv(self, name: str, arguments: list[str]) -> list[str]:
        argv = [str(self._binary), "exec", "--skip-git-repo-check", "--json", "-o", str(self._last(name))]
        return [*argv, "--dangerously-bypass-approvals-and-sandbox", *arguments]

    def _last(self, name: str) -> Path:
        return self.home / f"{name}.txt"


def _server(name: str, command: Sequence[str]) -> str:
    """An MCP server's table; Codex waits that long for it before its first turn."""
    return f"""
[mcp_servers.{name}]
command = {toml(command[0])}
args = {toml(command[1:])}
startup_timeout_sec = 30
"""


def shortcomings(said: Said, project: Path) -> Iterator[str]:
    """What is missing for the task to count as done; nothing when it is."""
    if said.status != 0:
        yield f"codex ended with {said.status}: {said.stderr[-1500:]} {said.events[-3:]}"
    wanted = {"turn.completed", "command_execution", "file_change"}
    if missing := wanted - said.kinds():
        yield f"no {', '.join(sorted(missing))} among the events"
    if not said.last.startswith(DONE):
        yield f"the last word was {said.last[:300]!r}"
    path = project / FILE
    holds = path.read_text() if path.exists() else None
    if holds != f"{AFTER}\n":
        yield f"{FILE} holds {holds!r}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base_url")
    parser.add_argument("model")
    parser.add_argument("--catalogue", choices=["json", "url", "none"], default="json")
    parser.add_argument("--again", action="store_true", help="also resume the conversation")
    given = parser.parse_args()
    binary = find_codex()
    if binary is None:
        print("no codex: run make codex", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory() as folder:
        codex = Codex(binary, Path(folder), given.base_url, given.model, catalogue=given.catalogue)
        wrong = list(shortcomings(codex.task(), codex.project))
        if given.again and not wrong and not (last := codex.again().last).startswith(STILL_DONE):
            wrong.append(f"the resumed conversation ended with {last!r}")
    print("\n".join(wrong) or f"done: Codex through {given.base_url}, model {given.model}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
