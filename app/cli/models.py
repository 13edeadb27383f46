"""`dragoman models` and `dragoman resolve`: which models there are, and which of them a name means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import orjson
import typer

from translators.errors import ProxyError
from translators.ir import Json

from .configuration import ConfigOption, configured, say

USAGE_ERROR = 2
UNKNOWN = 1
"""Exit status for a name that means nothing, and where no provider has told its models."""

JsonOption = Annotated[bool, typer.Option("--json", help="As JSON.")]


def models(
    config: ConfigOption = None,
    search: Annotated[str | None, typer.Option(help="Words of the name, misspelled or not.")] = None,
    cls: Annotated[
        str | None,
        typer.Option(
            "--class", help="This class and below: chat-thinking, chat-balanced, chat-fast; embedding."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="At most so many, 1 to 50.")] = None,
    threshold: Annotated[float | None, typer.Option(help="How far a name may be off, 0 to 1.")] = None,
    tools: Annotated[bool | None, typer.Option("--tools/--no-tools", help="With tools, or without.")] = None,
    vision: Annotated[bool | None, typer.Option("--vision/--no-vision", help="Sees images, or not.")] = None,
    reasoning: Annotated[
        bool | None, typer.Option("--reasoning/--no-reasoning", help="Reasons, or not.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List models in the order in which they would be asked, and why."""
    from . import lookup

    filters = {"search": search, "class": cls, "limit": limit, "threshold": threshold}
    filters |= {"tools": tools, "vision": vision, "reasoning": reasoning}
    try:
        query = lookup.query_of(filters)
    except ProxyError as error:
        say(str(error))
        raise typer.Exit(USAGE_ERROR) from error
    rows = lookup.look_up(configured(config), lambda catalog: lookup.rows(catalog, query))
    if rows is None:
        raise typer.Exit(UNKNOWN)
    _print({"object": "list", "data": rows}, rows, as_json)
    if not rows:
        say("no model fits")


def resolve(
    query: Annotated[str, typer.Argument(help="What a client may send as `model`.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show which models a name means and why: exit 0, or 1 when it means nothing."""
    from . import lookup

    try:
        found = lookup.look_up(configured(config), lambda catalog: lookup.resolved(catalog, query))
    except ProxyError as error:
        say(str(error))
        raise typer.Exit(UNKNOWN) from error
    if not as_json:
        typer.echo(f"{query}: {found['source']}, order: {found['order']}")
    _print(found, found["choices"], as_json)


def _print(answer: Json, rows: Sequence[Json], as_json: bool) -> None:
    if as_json:
        typer.echo(orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode())
    elif rows:
        from .model_table import print_table

        print_table(rows)
