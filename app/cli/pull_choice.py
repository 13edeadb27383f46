"""Which files of a model repository a model folder needs, by their names alone.

The layouts are those that are run from a folder (`providers.onnx.kind`): onnxruntime-genai's,
`onnx-community`'s, sentence-transformers'. A repository often holds a model several times over,
for several devices and in several precisions; one of them is enough.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath, PureWindowsPath

from providers.onnx.synth import VARIANTS

_GENAI = "genai_config.json"
_SMALL = (".json", ".jinja", ".model", ".txt")
"""Ends of configurations, tokenisers and templates."""
_FOREIGN = (
    *(".safetensors", ".gguf", ".pt", ".pth", ".h5", ".msgpack", ".md", ".png", ".jpg"),
    *(".py", ".so", ".dll", ".dylib", ".exe"),
)
"""Ends of other formats' weights, of what only a person reads, and of code: a model is data."""
_POOLING = re.compile(r"\d+_\w+/config\.json")
"""`1_Pooling/config.json` of sentence-transformers."""


class NotChosenError(ValueError):
    """Why a repository cannot be pulled, in words for the one who asked for it."""


def choose_files(names: Sequence[str], variant: str | None = None) -> list[str]:
    """The files to fetch of those in a repository, sorted.

    `variant` is `q4`, `fp16`, ... (`fp32` is the full model), or the folder of a repository that
    holds several for onnxruntime-genai. Raises `NotChosenError`, also for a name that would lead
    out of the folder: such a list is not an honest one.
    """
    for name in names:
        if not is_inside(name):
            raise NotChosenError(f"the hub names a file outside of the model's folder: {name!r}")
    folders = sorted(str(PurePosixPath(name).parent) for name in names if PurePosixPath(name).name == _GENAI)
    if folders:
        return _genai(names, folders, variant)
    return _exported(names, variant)


def is_inside(name: str) -> bool:
    """Whether a name of the hub stays below the folder, on every system."""
    if not name or "\\" in name or not name.isprintable() or PureWindowsPath(name).drive:
        return False
    parts = name.split("/")  # an absolute path begins with an empty part
    return all(part not in ("", ".", "..") for part in parts)


def _genai(names: Sequence[str], folders: Sequence[str], variant: str | None) -> list[str]:
    """All of the root, or of one folder where the root has no `genai_config.json`."""
    if variant is not None:
        found = [each for each in folders if variant in (each, PurePosixPath(each).name)]
        if not found:
            raise NotChosenError(f"it has no variant '{variant}': it has {', '.join(folders)}")
    else:
        found = [each for each in folders if each == "."] or [each for each in folders if "cpu" in each]
        found = found or list(folders)
    if len(found) > 1:
        raise NotChosenError(f"it has several models, choose one with --variant: {', '.join(found)}")
    return sorted(
        name
        for name in names
        if str(PurePosixPath(name).parent) == found[0]
        and not PurePosixPath(name).name.startswith(".")
        and not name.endswith(_FOREIGN)
    )


def _exported(names: Sequence[str], variant: str | None) -> list[str]:
    """The small files of the root, and one graph with the files of its weights."""
    graph = _graph(names, variant)
    # Weights lie beside the graph: model_q4.onnx_data, model_q4.onnx_data_1, model.onnx.data.
    weights = (f"{graph}_data", f"{graph}.data")
    small = [
        name for name in names if ("/" not in name and name.endswith(_SMALL)) or _POOLING.fullmatch(name)
    ]
    return sorted({*small, graph, *(name for name in names if name.startswith(weights))})


def _graph(names: Sequence[str], variant: str | None) -> str:
    # A sentence model is small, and its vectors are what is lost by rounding.
    sentence = any(name == "modules.json" or _POOLING.fullmatch(name) for name in names)
    graphs = {
        each: path
        for each in (("", *VARIANTS) if sentence else VARIANTS)
        for path in (f"model{'_' * bool(each)}{each}.onnx", f"onnx/model{'_' * bool(each)}{each}.onnx")
        if path in names
    }
    if not graphs:
        raise NotChosenError(
            "it holds no ONNX model that can be run: neither genai_config.json nor onnx/model*.onnx"
        )
    wanted = next(iter(graphs)) if variant is None else "" if variant == "fp32" else variant
    if wanted not in graphs:
        listed = ", ".join(each or "fp32" for each in graphs)
        raise NotChosenError(f"it has no variant '{variant}': it has {listed}")
    return graphs[wanted]
