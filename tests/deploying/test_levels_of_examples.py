"""Deploy files and first guides release at a level of protection, not at an epsilon."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Of each deploy file: what a service or a nightly release would run as it stands.
DEPLOYED = sorted(
    file
    for file in (ROOT / "examples/deploy").iterdir()
    if re.search(r"\bservice\b|privatize", file.read_text(encoding="utf-8"))
)
GUIDES = ("docs/how-to/privatize-files.md", "docs/how-to/python.md", "README.md")
BUDGET = re.compile(r"--(epsilon|document-budget|recovery)\b|\b(epsilon|document_budget)=\d")


@pytest.mark.parametrize("file", DEPLOYED, ids=lambda file: file.name)
def test_a_deploy_file_names_no_epsilon(file):
    """An epsilon means another share of words named in each mechanism and model."""
    text = file.read_text(encoding="utf-8")
    assert not BUDGET.search(text)


def test_the_services_that_ship_name_their_level():
    for name in ("compose.yaml", "lexveil-service.service"):
        text = (ROOT / "examples/deploy" / name).read_text(encoding="utf-8")
        assert re.search(r"--protection[= ](strong|balanced)\b", text), name


@pytest.mark.parametrize("name", GUIDES)
def test_first_guides_release_at_a_level(name):
    """Commands and calls that release; an audit is of an epsilon, and prose may name options."""
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```.*?```", text, re.DOTALL) + re.findall(r"(?m)^ {4}.*$", text)
    releases = [block for block in blocks if re.search(r"privatize|inspect|service", block)]
    of_words = [block for block in releases if "S5" not in block]  # sentences have no levels
    assert not [block for block in of_words if BUDGET.search(block)]


def test_the_services_that_ship_name_their_model():
    """The model of a service without a name changes from `en` to `own` once the project has run."""
    for name in ("compose.yaml", "lexveil-service.service"):
        text = (ROOT / "examples/deploy" / name).read_text(encoding="utf-8")
        assert re.search(r"--model[= ]en\b", text), name
