"""The documentation holds together: links lead somewhere, messages name pages that exist, the README stays short."""

from __future__ import annotations

import re
import string
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"(?<!!)\[[^]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def slug(heading: str) -> str:
    """The anchor that a forge gives a heading."""
    dropped = string.punctuation.replace("-", "").replace("_", "")
    return heading.strip().lower().translate(str.maketrans(" ", "-", dropped))


def anchors(page: Path) -> set[str]:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        target, _, anchor = link.partition("#")
        if "://" in link:
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), link
        if anchor:
            assert anchor in anchors(file), link


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / link.partition("#")[0]).resolve() for link in LINK.findall(index)}
    pages = {page for page in ROOT.glob("docs/*/*.md") if page.parent.name != "decisions"}
    assert pages <= linked


def test_pages_that_code_and_configuration_name_exist() -> None:
    files = subprocess.run(
        ["git", "grep", "-hoE", r"\bdocs/[a-z-]+/[0-9A-Za-z-]+\.md", "--", ":!tests", ":!docs", ":!*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert files
    assert [name for name in sorted(set(files)) if not (ROOT / name).is_file()] == []


def test_readme_is_short_and_has_the_two_commands() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    assert any(line.startswith("    pip install uv && uv run lexveil run ") for line in lines)
    assert any(line.startswith("    uv run pytest ") for line in lines)


def test_generated_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / ".ci/reference.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
