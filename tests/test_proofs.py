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
        ("x + x", "x * x", "A.twice"),
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
    mechanisms = tmp_path / "lexveil/mechanisms"
    mechanisms.mkdir(parents=True)
    (mechanisms / "one_way.py").write_text(
        "@register\n" + CODE.split("LIMIT = 3  # of something\n\n")[1], encoding="utf-8"
    )
    page = tmp_path / "docs/proofs/one-way.md"
    page.parent.mkdir(parents=True)
    page.write_text(
        "---\nreviewed:\ncode:\n  lexveil/mechanisms/one_way.py:\n---\n\n# One\n---\nTrue.\n", encoding="utf-8"
    )
    proofs.review(tmp_path, page)
    return tmp_path


def test_a_review_is_noted_and_leaves_the_page_as_it_is(root: Path) -> None:
    assert proofs.problems(root) == []
    assert (root / "docs/proofs/one-way.md").read_text(encoding="utf-8").endswith("---\n\n# One\n---\nTrue.\n")


def test_changed_code_names_itself_and_its_page(root: Path) -> None:
    code = root / "lexveil/mechanisms/one_way.py"
    code.write_text(code.read_text(encoding="utf-8").replace("x + x", "x - x"), encoding="utf-8")
    (found,) = proofs.problems(root)
    assert found.startswith(
        "docs/proofs/one-way.md: lexveil/mechanisms/one_way.py has changed since the page was reviewed"
    )
    assert found.endswith("run python .ci/proofs.py --reviewed docs/proofs/one-way.md")
    proofs.review(root, root / "docs/proofs/one-way.md")
    assert proofs.problems(root) == []


def test_a_mechanism_without_proof_is_found(root: Path) -> None:
    shutil.copy(root / "lexveil/mechanisms/one_way.py", root / "lexveil/mechanisms/other.py")
    (root / "lexveil/mechanisms/kernels").mkdir()
    (root / "lexveil/mechanisms/kernels/shared.py").write_text("LIMIT = 3\n", encoding="utf-8")
    assert proofs.problems(root) == [
        "lexveil/mechanisms/kernels/shared.py: no page of docs/proofs covers it",
        "docs/proofs/other.md: mechanism other has no proof that covers lexveil/mechanisms/other.py",
        "lexveil/mechanisms/other.py: no page of docs/proofs covers it",
    ]


def test_what_a_page_covers_must_be_there(root: Path) -> None:
    page = root / "docs/proofs/one-way.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("one_way.py:", "one_way.py::B:"), encoding="utf-8")
    assert "docs/proofs/one-way.md: there is no lexveil/mechanisms/one_way.py::B" in proofs.problems(root)
    with pytest.raises(SystemExit, match=r"there is no .*one_way\.py::B"):
        proofs.review(root, page)
    page.write_text("# Nothing\n", encoding="utf-8")
    assert "docs/proofs/one-way.md: it names no code that it is about" in proofs.problems(root)
