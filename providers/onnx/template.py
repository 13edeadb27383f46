"""Chat templates: messages as the text a local model was trained on.

Templates are the jinja2 sources that model folders carry, written for the environment of
transformers: sandboxed, immutable, `trim_blocks`, `lstrip_blocks`, loop controls, a `tojson`
that keeps non-ASCII characters, `raise_exception`, `strftime_now` and `{% generation %}`.
(The engine's own template engine fails on a quarter of real ones.) What the client wrote goes
through `boundary` first, so that it can never become a control token.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

from translators.errors import ProxyError, bad_request
from translators.ir import Json

from .boundary import Boundary, boundary
from .messages import template_messages, template_tools

if TYPE_CHECKING:
    from jinja2 import Environment, Template

_RESERVED = frozenset({"messages", "tools", "add_generation_prompt", "raise_exception", "strftime_now"})
"""Names that a request's own template arguments may not take."""


class TemplateRefusal(Exception):
    """A template called `raise_exception`."""


def render(
    template: str,
    messages: Sequence[Json],
    tools: Sequence[Json] | None = None,
    *,
    special_tokens: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    add_generation_prompt: bool = True,
    **kwargs: Any,
) -> str:
    """The prompt, with marks where client text would have formed one of `special_tokens`.

    `messages` and `tools` are Chat Completions objects; `variables` are the folder's own
    (`bos_token`, `eos_token`, ...); `kwargs` are the client's (`enable_thinking`,
    `reasoning_effort`, `chat_template_kwargs`). Split the result with `boundary.segments`
    before tokenising. Raises 400 for what the template refuses or cannot render, 502
    (`upstream`) for a template that is no template.
    """
    reserved = sorted(_RESERVED.intersection(kwargs))
    if reserved:
        raise bad_request(
            f"chat_template_kwargs may not set {', '.join(reserved)}: leave it out.", "chat_template_kwargs"
        )
    compiled = _compiled(template)
    try:
        values = _values(template, messages, tools, kwargs, boundary(tuple(special_tokens)))
        return compiled.render(
            {**values, **(variables or {}), "add_generation_prompt": add_generation_prompt}
        )
    except ProxyError:
        raise
    except TemplateRefusal as refusal:
        raise bad_request(f"The chat template refuses these messages: {refusal}", "messages") from None
    except RecursionError:
        raise bad_request("These messages are nested too deeply.", "messages") from None
    except Exception as error:  # a template runs any expression on what the client sent
        raise bad_request(
            f"The chat template cannot render these messages: {type(error).__name__}: {error}", "messages"
        ) from None


def check(template: str) -> str | None:
    """Why the source is no template; None when it compiles, or when jinja2 is missing."""
    try:
        _compiled(template)
    except ProxyError as error:
        return error.message
    except ImportError:
        return None
    return None


def _values(
    template: str,
    messages: Sequence[Json],
    tools: Sequence[Json] | None,
    kwargs: Mapping[str, Any],
    guard: Boundary,
) -> Json:
    rendered = template_messages(messages, developer="developer" in template)
    return {
        **{name: guard.value(value) for name, value in kwargs.items()},
        "messages": [guard.message(message) for message in rendered],
        "tools": guard.value(template_tools(tools)) if tools else None,
    }


@lru_cache(maxsize=64)
def _compiled(source: str) -> Template:
    from jinja2 import TemplateError

    try:
        return _environment().from_string(source)
    except (TemplateError, RecursionError) as error:
        raise ProxyError("upstream", f"This model's chat template does not compile: {error}") from None


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _generation_tag()]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


def _generation_tag() -> Any:
    """`{% generation %}...{% endgeneration %}` marks what training learns from; here it is its body."""
    from jinja2 import nodes
    from jinja2.ext import Extension

    class Generation(Extension):
        tags = {"generation"}  # noqa: RUF012 - jinja2 declares it so

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body).set_lineno(line)

    return Generation


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as Python writes it: models are trained on `{"a": 1, "b": 2}`, spaces included."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _raise_exception(message: str) -> NoReturn:
    raise TemplateRefusal(message)


def _strftime_now(pattern: str) -> str:
    """The local time: the date that a template writes is the one the user sees."""
    return datetime.now().strftime(pattern)
