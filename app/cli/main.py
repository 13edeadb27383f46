"""The command line: `dragoman serve`, `run`, `codex`, `models`, `resolve`, `check`, `quirks`,
`check-stream`, `pull`, `keys`.

What costs time to import (the server, the HTTP clients) is imported by the command that
needs it, so that `check` answers at once.
"""

from __future__ import annotations

import os
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from config.load import find, load
from config.problems import ConfigErrors
from config.schema import Config
from providers.profiles import BY_NAME

from .configuration import ConfigOption, checked, configuration, refuse, say, warn
from .keys import keys
from .launch_commands import Launching, codex, run
from .models import models, resolve
from .pull_command import pull

if TYPE_CHECKING:
    from providers.quirks_file import Learned, QuirksFile

KEY_VARIABLE = "DRAGOMAN_API_KEY"
ASK_FOR_IT = 'on loopback it is where a file says so, [server] api_keys = ["${DRAGOMAN_API_KEY}"]'
UNREADABLE = 1
"""Exit status when what was learned cannot be read or changed."""

cli = typer.Typer(
    name="dragoman",
    help="An OpenAI-compatible gateway between Chat Completions, Responses and any backend.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@cli.callback(invoke_without_command=True)
def options(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if show_version:
        typer.echo(f"dragoman {version('dragoman')}")
        raise typer.Exit


@cli.command()
def serve(
    config: ConfigOption = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="0 picks a free port.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Number of processes.")] = None,
) -> None:
    """Serve; without a configuration, whatever the environment offers."""
    options = {"host": host, "port": port, "workers": workers}
    given = {key: value for key, value in options.items() if value is not None}
    path = find(config, os.environ, Path.cwd())
    from ..reload import origin_of

    origin = None if path is None else origin_of(path, given)
    chosen = configuration(path, given)
    if os.environ.get(KEY_VARIABLE) and not (chosen.server.api_keys or chosen.server.keys_file):
        say(f"warning: {KEY_VARIABLE} is set, but no key is asked: {ASK_FOR_IT}")
    from ..server import run

    run(chosen, origin)


@cli.command()
def check(config: ConfigOption = None) -> None:
    """Validate a configuration: exit 0, or 2 with every error listed."""
    path = find(config, os.environ, Path.cwd())
    found = checked(path, extras=True)
    typer.echo(f"{path or 'no file, built-in defaults'}: ok, {_count(found)}")
    for provider in found.providers:
        typer.echo(f"  {provider.name}: {provider.kind} {provider.base_url or provider.path}")
    if path is None:
        typer.echo("  serve then looks for keys in the environment and for servers on this machine")
    else:
        warn(found)


@cli.command()
def quirks(
    model: Annotated[str | None, typer.Argument(help="Of this model only.")] = None,
    config: ConfigOption = None,
    forget: Annotated[bool, typer.Option("--forget", help="Forget it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    as_toml: Annotated[bool, typer.Option("--toml", help="As overrides for the configuration.")] = False,
) -> None:
    """List, export or forget what backends turned out to refuse."""
    from .. import quirks as shown

    file, found = _learned()
    chosen = [each for each in found if model is None or shown.is_of(each, model)]
    if forget:
        _forget(file, chosen)
        typer.echo(f"forgotten: {len(chosen)}")
    elif as_json:
        typer.echo(shown.as_json(chosen))
    elif as_toml:
        typer.echo(shown.as_toml(chosen, _given(config)))
    else:
        typer.echo(shown.table(chosen) if chosen else "nothing is learned")


@cli.command("check-stream")
def check_stream(
    source: Annotated[str, typer.Argument(help="URL (.../v1, or a full route), a recorded file, or -.")],
    model: Annotated[str, typer.Option(help="Model to ask for.")] = "default",
    key: Annotated[str | None, typer.Option(help="Key; else OPENAI_API_KEY.", show_default=False)] = None,
    prompt: Annotated[str, typer.Option(help="What to ask.")] = "Say hello in five words.",
    body: Annotated[Path | None, typer.Option(help="JSON file with the whole request.")] = None,
    tools: Annotated[bool, typer.Option("--tools/--no-tools", help="Offer one function tool.")] = False,
    timeout: Annotated[float, typer.Option(help="Seconds of silence that are waited for.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Check a server's event stream: exit 0 clean, 1 violations, 2 could not be checked."""
    from . import check_stream as checking

    ask = checking.Ask(model, prompt, tools, body, key or os.environ.get("OPENAI_API_KEY"), timeout)
    try:
        reports = checking.check(source, ask)
    except checking.NotChecked as error:
        say(f"{source}: {error}")
        raise typer.Exit(checking.NOT_CHECKED) from error
    typer.echo(checking.as_json(reports) if as_json else checking.as_text(reports))
    if any(report.findings for report in reports):
        raise typer.Exit(checking.VIOLATIONS)


cli.command()(models)
cli.command()(resolve)
cli.command()(pull)
cli.add_typer(keys)
cli.command(cls=Launching)(run)
cli.command(cls=Launching)(codex)


def main() -> None:
    """The command line."""
    cli()


def _learned() -> tuple[QuirksFile | None, list[Learned]]:
    """The file, if there is a place for one, and what in it still holds."""
    from providers.quirks_file import QuirksFile, UnreadableQuirks, state_file

    path = state_file(os.environ)
    if path is None:
        return None, []
    file = QuirksFile(path)
    try:
        found = file.read()
    except UnreadableQuirks as error:
        say(f"{path}: {error}")
        raise typer.Exit(UNREADABLE) from error
    return file, [each for each in found if each.until > time.time()]


def _forget(file: QuirksFile | None, chosen: list[Learned]) -> None:
    """A server that runs sees it within seconds."""
    try:
        if file is not None:
            file.update(lambda entries: [each for each in entries if each not in chosen])
    except OSError as error:
        say(f"{error.filename}: {error.strerror}")
        raise typer.Exit(UNREADABLE) from error


def _given(config: Path | None) -> Config:
    """The configuration, as far as there is a file."""
    try:
        return load(find(config, os.environ, Path.cwd()), os.environ, BY_NAME)
    except ConfigErrors as errors:
        refuse(errors)


def _count(config: Config) -> str:
    providers, aliases = len(config.providers), len(config.aliases)
    return f"{providers} provider{'s' * (providers != 1)}, {aliases} alias{'es' * (aliases != 1)}"
