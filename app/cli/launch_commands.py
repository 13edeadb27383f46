"""`dragoman run -- CMD` and `dragoman codex`: a gateway for as long as a command runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from .configuration import ConfigOption, configured, say

NOT_STARTED = 1
"""Exit status when there is no gateway to run the command against."""
NOT_FOUND = 127
"""Exit status of a shell for a command that is not there."""
NO_CODEX = "dragoman: codex: command not found; install it with: npm install --global @openai/codex"

LogOption = Annotated[
    Path | None, typer.Option("--log", help="File for the gateway's log; else it is not kept.")
]


class Launching(TyperCommand):
    """A command whose last words belong to another program, whatever they look like."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put a `--` behind the options of ours, unless one stands there."""
        takes_value = {
            name: not getattr(option, "is_flag", False)
            for option in self.get_params(ctx)
            if option.param_type_name == "option"
            for name in option.opts
        }
        at = 0
        while at < len(args) and (name := args[at].partition("=")[0]) in takes_value:
            at += 2 if takes_value[name] and args[at] == name else 1
        fence = [] if args[at : at + 1] == ["--"] else ["--"]
        return super().parse_args(ctx, [*args[:at], *fence, *args[at:]])


def run(
    command: Annotated[list[str], typer.Argument(metavar="CMD", help="What to run, with arguments.")],
    config: ConfigOption = None,
    log: LogOption = None,
) -> None:
    """Run a command with a gateway of its own, which OPENAI_BASE_URL and OPENAI_API_KEY lead it to."""
    from . import launch

    _end(lambda: launch.run(configured(config), command, log))


def codex(
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGS", help="Codex's own, all of them.")
    ] = None,
    config: ConfigOption = None,
    log: LogOption = None,
) -> None:
    """Run Codex with a gateway of its own; nobody's configuration of Codex is touched."""
    if shutil.which("codex") is None:
        say(NO_CODEX)
        raise typer.Exit(NOT_FOUND)
    from . import launch

    _end(lambda: launch.codex(configured(config), arguments or [], log))


def _end(work: Callable[[], int]) -> NoReturn:
    """With the exit status of the command, or ours where there is no gateway to run it against."""
    from .launch import NotStarted

    try:
        status = work()
    except NotStarted as error:
        say(f"dragoman: {error}")
        raise typer.Exit(NOT_STARTED) from error
    raise typer.Exit(status)
