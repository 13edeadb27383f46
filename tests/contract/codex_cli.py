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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from tests.backends.coding_task import AFTER, AGAIN, DONE, FILE, PROMPT, STILL_DONE

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
        self, binary: Path, folder: Path, base_url: str, model: str, *, catalogue: Catalogue = "json"
    ) -> None:
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
        self._configure(catalogue)

    def task(self) -> Said:
        """The whole task, from an empty folder."""
        return self._exec("first", [PROMPT])

    def again(self) -> Said:
        """One more question in the same conversation."""
        return self._exec("again", ["resume", "--last", AGAIN])

    def _configure(self, catalogue: Catalogue) -> None:
        path = self.home / ".codex" / "catalogue.json"
        path.write_bytes(orjson.dumps({"models": [self._entry()]}))
        top = f'model_catalog_json = "{path}"' if catalogue == "json" else ""
        url = f'model_catalog_url = "{self._base_url}/models"' if catalogue == "url" else ""
        config = f"""
model = "{self._model}"
model_provider = "gateway"
{top}

[model_providers.gateway]
name = "gateway"
base_url = "{self._base_url}"
env_key = "GATEWAY_KEY"
wire_api = "responses"
request_max_retries = 2
stream_max_retries = 2
stream_idle_timeout_ms = 30000
{url}
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
        last = self.home / f"{name}.txt"
        argv = [str(self._binary), "exec", "--skip-git-repo-check", "--json", "-o", str(last)]
        argv += ["--dangerously-bypass-approvals-and-sandbox", *arguments]
        ran = subprocess.run(
            argv, cwd=self.project, env=self._env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60
        )
        events = [orjson.loads(line) for line in ran.stdout.splitlines() if line.startswith(b"{")]
        text = last.read_text() if last.exists() else ""
        return Said(ran.returncode, events, text, ran.stderr.decode(errors="replace"))


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
