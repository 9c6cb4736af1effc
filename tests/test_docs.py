"""The documentation holds together: links lead somewhere, messages name pages that exist, the
README stays short."""

import re
import string
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"(?<!!)\[[^]]*\]\(([^)\s]+)\)")
GROUPS = ("data", "ledger", "model", "purpose", "sentences")  # verbs with actions
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def slug(heading):
    """The anchor that a forge gives a heading."""
    dropped = string.punctuation.replace("-", "").replace("_", "")
    return heading.strip().lower().translate(str.maketrans(" ", "-", dropped))


def anchors(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.findall(text):
        target, _, anchor = link.partition("#")
        if "://" in link:
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), link
        if anchor:
            assert anchor in anchors(file), link


def test_every_page_is_in_the_index():
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / link.partition("#")[0]).resolve() for link in LINK.findall(index)}
    pages = {page for page in ROOT.glob("docs/*/*.md") if page.parent.name != "decisions"}
    assert pages <= linked


def test_pages_that_code_and_configuration_name_exist():
    pattern = r"\bdocs/[a-z-]+/[0-9A-Za-z-]+\.md"
    command = ["git", "grep", "-hoE", pattern, "--", ":!tests", ":!docs", ":!*.md"]
    files = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert files
    assert [name for name in sorted(set(files)) if not (ROOT / name).is_file()] == []


def test_generated_pages_are_up_to_date():
    command = [sys.executable, ROOT / ".ci/reference.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def commands():
    """Verb, or verb and action, and option of every command in a code block of the
    documentation."""
    named = set()
    for page in PAGES:
        blocks = re.findall(
            r"(?:^    .+\n)+", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE
        )
        for line in re.sub(r"\\\n\s*", "", "".join(blocks)).splitlines():
            for command in re.findall(r"(?:^ {4}|uv run |\$ |&& |\| )lexveil ([a-z][^#|&]*)", line):
                words = command.split()
                verb = words[0] if words[0] not in GROUPS else " ".join(words[:2])
                named |= {(verb, "")} | {
                    (verb, option) for option in re.findall(r"(?<= )--?[a-z][a-z-]*", command)
                }
    return named


def test_commands_of_the_documentation_exist(capsys):
    from lexveil.faces.cli.main import main

    helps = {}
    for verb, option in sorted(commands()):
        if verb not in helps:
            assert main([*verb.split(), "--help"]) == 0, verb
            helps[verb] = capsys.readouterr().out
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", helps[verb]), (verb, option)
    assert len(helps) > 12
