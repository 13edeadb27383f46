"""What is depended on: each with a reason in docs/dependencies.md, a version known to do, a licence."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PAGE = (ROOT / "docs/dependencies.md").read_text()
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
SHIPPED = [*PROJECT["project"]["dependencies"], *(each for extra in EXTRAS.values() for each in extra)]
ALL = [*SHIPPED, *PROJECT["dependency-groups"]["dev"]]

ALLOWED = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|MPL|Mozilla Public|0BSD|Zlib|HPND|CC0|Unlicense",
    re.IGNORECASE,
)
"""Licences under which what is shipped may be used beside Apache-2.0, whatever links to it."""
FORBIDDEN = re.compile(
    r"\bA?GPL|GNU (Affero )?General Public|SSPL|BUSL|proprietary|non-?commercial", re.IGNORECASE
)
OTHERWISE = {"sqlalchemy": "MIT"}
"""Where the metadata say it in a way that is not read here."""


def named() -> set[str]:
    """The first cells of the page's tables."""
    cells = (line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| "))
    found = (name.strip(" `") for cell in cells for name in cell.split(","))
    return {canonicalize_name(name) for name in found if re.fullmatch(r"[A-Za-z0-9_.-]+", name)} - {"package"}


@pytest.mark.parametrize("written", ALL)
def test_every_dependency_has_its_reason_and_a_version(written: str) -> None:
    wanted = Requirement(written)
    assert canonicalize_name(wanted.name) in named(), "one line in docs/dependencies.md says why"
    bounds = {each.operator for each in wanted.specifier}
    assert bounds & {">=", "==", "~="}, "the oldest version that is known to do"
    assert wanted.url is None, "from the index only"


def test_no_reason_is_left_over() -> None:
    wanted = {canonicalize_name(Requirement(each).name) for each in ALL}
    assert named() - wanted == set()


def test_the_page_names_every_extra() -> None:
    said = {name for line in PAGE.splitlines() for name in re.findall(r"^\|[^|]*\| `([a-z]+)` \|", line)}
    assert said == set(EXTRAS)


def shipped() -> Iterator[Distribution]:
    """Everything that serving needs, with all extras, as far as it is installed here."""
    waiting, seen = [Requirement(each) for each in SHIPPED], set[str]()
    while waiting:
        wanted = waiting.pop()
        key = f"{canonicalize_name(wanted.name)}[{','.join(sorted(wanted.extras))}]"
        if key in seen or (wanted.marker is not None and not _applies(wanted)):
            continue
        seen.add(key)
        try:
            found = distribution(wanted.name)
        except PackageNotFoundError:
            continue
        yield found
        for each in found.requires or ():
            needed = Requirement(each)
            environments = [{"extra": extra} for extra in ("", *wanted.extras)]
            if needed.marker is None or any(needed.marker.evaluate(each) for each in environments):
                needed.marker = None
                waiting.append(needed)


def _applies(wanted: Requirement) -> bool:
    return wanted.marker is not None and wanted.marker.evaluate({"extra": ""})


def licence(found: Distribution) -> str:
    said = found.metadata
    classifiers = [each for each in said.get_all("Classifier") or () if each.startswith("License ::")]
    short = (said.get("License") or "").partition("\n")[0][:100]
    return " ".join([said.get("License-Expression") or "", short, *classifiers])


def test_what_is_shipped_may_be_shipped() -> None:
    told = {canonicalize_name(each.metadata["Name"]): licence(each) for each in shipped()}
    assert len(told) > 30
    told |= {name: text for name, text in OTHERWISE.items() if name in told}
    assert {name: text for name, text in told.items() if not ALLOWED.search(text)} == {}
    assert {name: text for name, text in told.items() if FORBIDDEN.search(text)} == {}
