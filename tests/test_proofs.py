"""Proofs are held to the code that they are about."""

import importlib.util
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("proofs", ROOT / ".ci" / "proofs.py")
proofs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(proofs)

CODE = """
@register
class A:
    field: int

    def twice(self, x: int) -> int:
        return x + x

def other() -> str:
    return ": twice"
"""


def test_every_proof_is_of_the_code_there_is():
    assert proofs.problems(ROOT) == []


@pytest.fixture
def root(tmp_path):
    """A project of one mechanism with its proof."""
    mechanisms = tmp_path / "lexveil/core/mechanisms"
    page = tmp_path / "docs/proofs/one-way.md"
    mechanisms.mkdir(parents=True)
    page.parent.mkdir(parents=True)
    (mechanisms / "one_way.py").write_text(CODE, encoding="utf-8")
    page.write_text(
        "---\nreviewed:\ncode:\n  lexveil/core/mechanisms/one_way.py:\n---\n\n# One\n",
        encoding="utf-8",
    )
    proofs.review(tmp_path, page)
    assert proofs.problems(tmp_path) == []
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new"), [("x + x", "x - x"), ("field: int", "field: float"), (": twice", ": thrice")]
)
def test_changed_code_names_itself_and_its_page(root, old, new):
    code = root / "lexveil/core/mechanisms/one_way.py"
    page = root / "docs/proofs/one-way.md"
    code.write_text(code.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    (found,) = proofs.problems(root)
    assert found.startswith(
        "docs/proofs/one-way.md: lexveil/core/mechanisms/one_way.py has changed since"
    )
    proofs.review(root, page)
    assert proofs.problems(root) == [] and page.read_text(encoding="utf-8").endswith(
        "---\n\n# One\n"
    )


def test_a_mechanism_without_proof_is_found(root):
    shutil.copy(
        root / "lexveil/core/mechanisms/one_way.py", root / "lexveil/core/mechanisms/other.py"
    )
    assert proofs.problems(root) == [
        "docs/proofs/other.md: mechanism other has no proof that covers "
        "lexveil/core/mechanisms/other.py",
        "lexveil/core/mechanisms/other.py: no page of docs/proofs covers it",
    ]
