"""What the documentation says is so: generated parts, links, commands, configuration blocks."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.load import load
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
