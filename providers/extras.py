"""The optional parts of the package, its extras: whether one is installed, and how that is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec

MODULES: Mapping[str, Sequence[str]] = {
    "databricks": ("databricks.sdk",),
    "encryption": ("cryptography",),
    "images": ("PIL",),
    "onnx": ("onnxruntime_genai", "onnxruntime", "numpy", "tokenizers", "jinja2"),
    "otel": ("opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
    "postgres": ("sqlalchemy", "asyncpg"),
    "redis": ("redis",),
}
"""What an extra brings."""


def is_installed(extra: str) -> bool:
    """Nothing of it is imported but the packages that its modules are in."""
    try:
        return all(find_spec(module) is not None for module in MODULES[extra])
    except ModuleNotFoundError:  # the package around a module is missing
        return False


def install(extra: str) -> str:
    """What to do for it. By the package's name a package index may give one of somebody else."""
    return f"pip install '.[{extra}]' in the project's folder"
