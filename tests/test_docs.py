"""What the documentation says is so: generated parts, links, commands, configuration blocks."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from config.load import load
from config.schema import Config, ProviderConfig
from docs.generate import PAGES, rendered
from providers.profiles import BY_NAME

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")])
KEYS = {
    "DRAGOMAN_API_KEY": "k-1",
    "DATABRICKS_TOKEN": "k-2",
    "OPENAI_API_KEY": "k-3",
    "DATABRICKS_HOST": "h.example",
    "DATABRICKS_CLIENT_ID": "i",
    "DATABRICKS_CLIENT_SECRET": "k-4",
}


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_generated_parts_are_up_to_date(page: str) -> None:
    text = (ROOT / page).read_text()
    assert rendered(text) == text, "run `make docs`"


def test_a_stale_part_is_noticed() -> None:
    page = "docs/mapping.md"
    assert (
        rendered((ROOT / page).read_text().replace("`max_completion_tokens`", "`max`"))
        == (ROOT / page).read_text()
    )


def links() -> Iterator[tuple[Path, str]]:
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
            if not target.startswith("http"):
                yield path, target


@pytest.mark.parametrize(
    ("path", "target"), list(links()), ids=lambda value: str(value).removeprefix(f"{ROOT}/")
)
def test_links_lead_somewhere(path: Path, target: str) -> None:
    assert (path.parent / target).exists()


SECTIONS: dict[str, type[BaseModel]] = {
    "providers": ProviderConfig,
    **{
        name: field.annotation
        for name, field in Config.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    },
}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_of_the_configuration_is_told(section: str) -> None:
    told = (ROOT / "docs/configuration.md").read_text()
    for key in SECTIONS[section].model_fields:
        assert f"| `{section}.{key}` |" in told


def waits() -> Iterator[tuple[str, str]]:
    """Each key of the table of timeouts, with how long it says that is."""
    text = (ROOT / "docs/operations.md").read_text().partition("## Timeouts")[2].partition("\n## ")[0]
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 7 and cells[4].startswith("`") and "." in cells[4]:
            yield cells[4].strip("`"), cells[3]


@pytest.mark.parametrize(("key", "told"), [pair for pair in waits() if not pair[0].startswith("limits.on_")])
def test_timeouts_are_the_defaults(key: str, told: str) -> None:
    section, _, name = key.partition(".")
    default = SECTIONS[section].model_fields[name].default
    assert told == ("no limit" if default is None else f"{default:g} s")


def anchors(page: Path) -> list[str]:
    """Those that a forge makes of headings; code blocks have none."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_into_a_page_find_their_heading(path: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", path.read_text()):
        if not target.startswith("http"):
            page = path.parent / target if target else path
            assert anchor in anchors(page), f"{target}#{anchor}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_is_short_and_says_each_heading_once(path: Path) -> None:
    found = anchors(path)
    # The table of the profiles is looked things up in, not read; a changelog repeats its headings.
    if path.name not in ("quirks.md", "CHANGELOG.md"):
        assert len(path.read_text().splitlines()) < 400
        assert len(found) == len(set(found))


def test_make_targets_exist() -> None:
    defined = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path in DOCUMENTS:
        named = set(re.findall(r"(?:^(?:\$ )?|`)make ([a-z-]+)", path.read_text(), re.MULTILINE))
        assert named <= defined, path


@pytest.mark.parametrize("name", ["README.md", "docs/quirks.md"])
def test_configuration_blocks_are_valid(name: str, tmp_path: Path) -> None:
    found = [block for block in blocks(ROOT / name, "toml") if "[[providers]]" in block]
    assert found
    for block in found:
        path = tmp_path / "dragoman.toml"
        path.write_text(block)
        assert load(path, KEYS, BY_NAME).providers


def test_the_example_configuration_is_valid() -> None:
    assert load(ROOT / "config/example.toml", KEYS, BY_NAME).providers


def test_codex_block_is_the_example() -> None:
    (block,) = [block for block in blocks(ROOT / "README.md", "toml") if "model_providers" in block]
    assert tomllib.loads(block) == tomllib.loads((ROOT / "examples/codex.toml").read_text())
