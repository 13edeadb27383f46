"""`dragoman pull`: a model from a hub into a folder, and what to do with it then."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .configuration import say

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from .pull import RemoteFile, Watch

NOT_PULLED = 1
"""Exit status when the model is not here, or not whole, or cannot be run."""


def pull(
    model: Annotated[str, typer.Argument(help="Model id, as org/name.", metavar="ID")],
    revision: Annotated[str, typer.Option(help="Branch, tag or commit.")] = "main",
    to: Annotated[
        Path | None,
        typer.Option(help="Folder to put it in; else one below XDG_DATA_HOME.", show_default=False),
    ] = None,
    variant: Annotated[
        str | None, typer.Option(help="q4, int8, fp16, fp32, ...; else the best that it has for a CPU.")
    ] = None,
) -> None:
    """Fetch an ONNX model from a hub (HF_ENDPOINT, HF_TOKEN): exit 0 when it can be run, else 1."""
    from providers.onnx.extra import pulled_models

    from . import pull as pulling
    from .pull_choice import NotChosenError

    root = pulled_models(os.environ, Path.home())
    folder = (to or root / model).expanduser().absolute()
    try:
        with pulling.Hub(os.environ) as hub, _shown() as watch:
            pulling.pull(hub, model, revision, folder, variant, watch)
    except (pulling.NotPulledError, NotChosenError) as error:
        say(f"{model}: {error}" if isinstance(error, NotChosenError) else str(error))
        raise typer.Exit(NOT_PULLED) from error
    _tell(folder, root if to is None else None, variant)


def _tell(folder: Path, root: Path | None, variant: str | None) -> None:
    """How to use what was pulled; `root` is the folder that is served without a configuration."""
    from providers.onnx.extra import NO_EXTRA, extra_is_installed

    if not extra_is_installed():
        say(f"it is in {folder}; {NO_EXTRA}")
        return
    from providers.onnx.folder import scan

    found = scan(folder)[0]
    if found.reason is not None:
        say(f"it is in {folder}, but cannot be run: {found.reason}")
        raise typer.Exit(NOT_PULLED)
    if found.layout == "onnx-community" and variant not in (None, found.variant or "fp32"):
        say(f'{found.variant} is there too and runs: variant = "{variant}" in model.toml there changes that')
    if root is None:
        name = found.path.name
        typer.echo(
            f'use it as local/{name} with: [[providers]] name = "local" kind = "onnx" path = "{folder}"'
        )
    else:
        name = found.path.relative_to(root).as_posix()
        typer.echo(f"use it as local/{name}: dragoman serve finds it where there is no dragoman.toml")


@contextmanager
def _shown() -> Iterator[Watch]:
    """Bars on a terminal; elsewhere a line for each file."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield _bars(progress)


def _lines() -> Watch:
    told: set[str] = set()

    def watch(file: RemoteFile, done: int) -> None:
        if file.name not in told:
            told.add(file.name)
            here = f", {done:,} are here" if done else ""
            say(f"{file.name}: {'size unknown' if file.size is None else f'{file.size:,} bytes'}{here}")

    return watch


def _bars(progress: Progress) -> Watch:
    bars: dict[str, TaskID] = {}

    def watch(file: RemoteFile, done: int) -> None:
        if file.name not in bars:
            bars[file.name] = progress.add_task(file.name, total=file.size)
        progress.update(bars[file.name], completed=done)

    return watch
