"""The package without its extras: it starts, serves the rest, and says what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from providers.onnx.extra import EMBEDDED, NO_EXTRA

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
for name in ("onnxruntime_genai", "onnxruntime", "numpy", "tokenizers", "jinja2"):
    sys.modules[name] = None
from pathlib import Path
from app.cli.discover import discover
from app.main import create_app
from config.schema import Config
providers = [{"name": "local", "kind": "onnx", "path": sys.argv[1]}]
app = create_app(Config.model_validate({"providers": providers}))
print(app.state.gateway.not_ready())
print([each.kind for each in discover({}, {}, Path("/nowhere"), ()).config.providers])
"""


def run(program: str) -> list[str]:
    command = [sys.executable, "-c", program, str(EMBEDDED)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_it_starts_and_says_what_to_install() -> None:
    reason, found = run(PROGRAM)
    assert reason == f"local: {NO_EXTRA}"
    assert NO_EXTRA.endswith("not installed: pip install '.[onnx]' in the project's folder")
    assert found == "[]"


def test_the_engine_is_never_in_the_gateways_own_process() -> None:
    (loaded,) = run("import app.main, sys; print({'onnxruntime', 'numpy', 'jinja2'} & set(sys.modules))")
    assert loaded == "set()"
