"""Proofs are held to the code that they are about."""

import importlib.util
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("proofs", ROOT / ".ci" / "proofs.py")
proofs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(proofs)

CODE = '''
"""Module."""
LIMIT = 3  # of something

class A:
    """Class."""
    field: int
    """A field."""

    def twice(self, x: int) -> int:
        """Double."""
        return x + x

def other() -> str:
    return f"{LIMIT}: twice"
'''


def test_every_proof_is_of_the_code_there_is() -> None:
    assert proofs.problems(ROOT) == []


def test_comments_docstrings_and_layout_do_not_count() -> None:
    same = CODE.replace("# of something", "# of something else").replace('"""Double."""', '"""Twice,\n\n        x."""')
    same = same.replace("return x + x", "return (\n            x + x\n        )").replace('"""A field."""', "")
    assert proofs.tree_hash(same) == proofs.tree_hash(CODE)
    assert proofs.tree_hash(same, "A.twice") == proofs.tree_hash(CODE, "A.twice")


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("LIMIT = 3", "LIMIT = 4", ""),
        ("x + x", "x - x", "A"),
        ("field: int", "field: float", "A"),
        (": twice", ": thrice", "other"),
    ],
)
def test_code_counts(old: str, new: str, name: str) -> None:
    changed = CODE.replace(old, new)
    assert proofs.tree_hash(changed, name) != proofs.tree_hash(CODE, name)
    assert (old in ("LIMIT = 3", ": twice")) == (proofs.tree_hash(changed, "A") == proofs.tree_hash(CODE, "A"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project of one mechanism with its proof."""
    mechanisms, page = tmp_path / "lexveil/mechanisms", tmp_path / "docs/proofs/one-way.md"
    mechanisms.mkdir(parents=True)
    page.parent.mkdir(parents=True)
    code = "@register\n" + CODE.split("LIMIT = 3  # of something\n\n")[1]
    (mechanisms / "one_way.py").write_text(code, encoding="utf-8")
    page.write_text("---\nreviewed:\ncode:\n  lexveil/mechanisms/one_way.py:\n---\n\n# One\n", encoding="utf-8")
    proofs.review(tmp_path, page)
    assert proofs.problems(tmp_path) == []
    return tmp_path


def test_changed_code_names_itself_and_its_page(root: Path) -> None:
    code, page = root / "lexveil/mechanisms/one_way.py", root / "docs/proofs/one-way.md"
    code.write_text(code.read_text(encoding="utf-8").replace("x + x", "x - x"), encoding="utf-8")
    (found,) = proofs.problems(root)
    assert found.startswith("docs/proofs/one-way.md: lexveil/mechanisms/one_way.py has changed since")
    proofs.review(root, page)
    assert proofs.problems(root) == [] and page.read_text(encoding="utf-8").endswith("---\n\n# One\n")


def test_a_mechanism_without_proof_is_found(root: Path) -> None:
    shutil.copy(root / "lexveil/mechanisms/one_way.py", root / "lexveil/mechanisms/other.py")
    assert proofs.problems(root) == [
        "docs/proofs/other.md: mechanism other has no proof that covers lexveil/mechanisms/other.py",
        "lexveil/mechanisms/other.py: no page of docs/proofs covers it",
    ]
