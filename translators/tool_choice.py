"""`tool_choice` after lowering: checked against what was offered, renamed, filtered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from .dialect import Loss
from .errors import bad_request
from .ir import ToolChoice, ToolKind, ToolRef
from .tool_names import ToolKey

CLIENT_KINDS = frozenset({"function", "custom", "tool_search"})
"""Tools the client runs. Every other type is a hosted tool's."""


@dataclass(slots=True)
class Offered:
    """The client's tools, and what became of each.

    `wire` maps a tool to its kind and name on the wire (None: left out); `kept_namespaces`
    are not flattened. `hosted` maps a hosted tool's type to whether the backend gets it.
    """

    wire: dict[ToolKey, tuple[ToolKind, str] | None] = field(default_factory=dict)
    kept_namespaces: set[str] = field(default_factory=set)
    hosted: dict[str, bool] = field(default_factory=dict)

    def find(self, name: str, namespace: str | None) -> ToolKey | None:
        """The tool meant by a name; a bare one may mean the only namespaced tool called so.

        (Codex leaves out the namespace of its default one, `functions`.)
        """
        key = ToolKey(name, namespace)
        if key in self.wire:
            return key
        if namespace:
            return None
        same = [each for each in self.wire if each.name == name]
        return same[0] if len(same) == 1 else None


def lower_choice(
    choice: ToolChoice | None, offered: Offered, losses: list[Loss], pointer: str = "/tool_choice"
) -> ToolChoice | None:
    """The choice as the backend is asked it; raises 400 for a tool it names and cannot have.

    An allowed set that nothing is left of becomes `none`, because it is a policy: the other
    tools must not be called. No tool left at all: no choice.
    """
    if choice is None:
        return None
    only = choice.only
    if only is not None:
        only = tuple(ref for old in only for ref in _lowered(old, offered, choice.named))
    if not any(offered.wire.values()) and not any(offered.hosted.values()):
        if choice.mode == "required":
            losses.append(Loss(pointer, "no tool is left to choose from", "feature"))
        return None
    if only == choice.only:
        return choice
    if not only:
        losses.append(Loss(pointer, "none of the allowed tools is left", "feature"))
        return ToolChoice("none")
    return replace(choice, only=only)


def _lowered(ref: ToolRef, offered: Offered, forced: bool) -> Iterator[ToolRef]:
    """What stands for `ref`: nothing when it was left out, several for a whole namespace."""
    if ref.type == "namespace":
        yield from _members(ref, offered)
    elif ref.type not in CLIENT_KINDS:
        yield from _hosted(ref, offered, forced)
    else:
        key = offered.find(ref.name or ref.type, ref.namespace)
        if key is None:
            raise bad_request(f"tool_choice names '{ref.name}', which is not in tools", "tool_choice")
        yield from _client_tool(ref, key, offered, forced)


def _client_tool(ref: ToolRef, key: ToolKey, offered: Offered, forced: bool) -> Iterator[ToolRef]:
    wire = offered.wire[key]
    if wire is not None:
        namespace = key.namespace if key.namespace in offered.kept_namespaces else None
        same = (ref.type, ref.name, ref.namespace) == (*wire, namespace)
        yield ref if same else ToolRef(*wire, namespace)
    elif forced:
        message = f"tool_choice forces '{key.name}', a tool this model cannot take; name another or send auto"
        raise bad_request(message, "tool_choice")


def _members(ref: ToolRef, offered: Offered) -> Iterator[ToolRef]:
    if ref.name in offered.kept_namespaces:
        yield ref
        return
    for key, wire in offered.wire.items():
        if wire is not None and key.namespace == ref.name:
            yield ToolRef(*wire)


def _hosted(ref: ToolRef, offered: Offered, forced: bool) -> Iterator[ToolRef]:
    runs = _of_family(offered.hosted, ref.type)
    if runs is None:
        raise bad_request(f"tool_choice names '{ref.type}', which is not in tools", "tool_choice")
    if runs:
        yield ref
    elif forced:
        raise bad_request(
            f"tool_choice forces '{ref.type}', a hosted tool this model's backend does not run; "
            "name a function tool or send auto",
            "tool_choice",
        )


def _of_family(hosted: Mapping[str, bool], wanted: str) -> bool | None:
    known = [runs for offered, runs in hosted.items() if family(offered) == family(wanted)]
    return any(known) if known else None


def family(type: str) -> str:
    """A hosted tool's type without its version: a choice may name either (`web_search_preview`)."""
    for stem in ("web_search", "computer"):
        if type.startswith(stem):
            return stem
    return type
