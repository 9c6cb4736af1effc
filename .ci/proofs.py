"""Hold the proofs in docs/proofs to the code that they are about.

    python .ci/proofs.py --check            exit 1 and name the pages whose code has changed
                                            since they were reviewed
    python .ci/proofs.py --reviewed PAGE    write the present hashes of the code into a page that
                                            was read against it

A page begins with the code that it covers: files, or classes and functions of them
(``file.py::Name``, ``file.py::Class.name``), each with a hash of its syntax tree, so that comments,
docstrings and layout do not count. Every mechanism has a page of its name, and every module of the
mechanisms is covered by some page.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import hashlib
import re
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
FRONT = re.compile(r"\A---\n(.*?)^---\n", re.DOTALL | re.MULTILINE)
MECHANISMS = Path("lexveil/core/mechanisms")
# Attributes of mechanisms about statistics and names of variants, which no mechanism computes with.
NO_PROOF = {"__init__.py", "deniability.py", "variants.py"}


def tree_hash(source: str, name: str = "") -> str:
    """Return the sha256 of some code without comments and docstrings.

    Args:
        name: class, function or method to hash; empty hashes the whole file.

    Raises:
        KeyError: if the code has nothing of this name.
    """
    node: Any = ast.parse(source)
    for part in filter(None, name.split(".")):
        node = {child.name: child for child in node.body if hasattr(child, "name")}[part]
    return hashlib.sha256(repr(_plain(node)).encode()).hexdigest()


def _plain(node: Any) -> Any:
    """Return a syntax tree as tuples that are the same in every version of Python: empty fields and
    docstrings are left out.
    """
    if isinstance(node, list):
        return [_plain(item) for item in node if not _is_prose(item)]
    if not isinstance(node, ast.AST):
        return node
    fields = [(name, getattr(node, name, None)) for name in node._fields]
    return type(node).__name__, [
        (name, _plain(value)) for name, value in fields if value not in (None, [])
    ]


def _is_prose(node: Any) -> bool:
    """Return whether a statement is a string alone."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def code_hashes(root: Path, names: list[str]) -> dict[str, str]:
    """Return the hashes of the code that a page covers; code that does not exist has an empty
    hash.
    """
    hashes = {}
    for entry in names:
        file, _, name = entry.partition("::")
        try:
            hashes[entry] = tree_hash((root / file).read_text(encoding="utf-8"), name)
        except (KeyError, FileNotFoundError, AttributeError):
            hashes[entry] = ""
    return hashes


def front_matter(page: Path) -> dict[str, Any]:
    """Return the header of a page: ``reviewed``, a date, and ``code``, hashes by name."""
    found = FRONT.match(page.read_text(encoding="utf-8"))
    front = yaml.safe_load(found[1]) if found else {}
    return {"reviewed": None, "code": {}, **(front or {})}


def problems(root: Path) -> list[str]:
    """Return the problems of all pages, one line each."""
    folder = root / "docs/proofs"
    found = list[str]()
    covered = set[str]()
    for page in sorted(folder.glob("*.md")):
        front = front_matter(page)
        name = page.relative_to(root).as_posix()
        if not front["code"]:
            found.append(f"{name}: the page names no code that it covers")
        now = code_hashes(root, list(front["code"]))
        covered |= {entry.partition("::")[0] for entry in now}
        for entry, written in front["code"].items():
            if not now[entry]:
                found.append(f"{name}: {entry} does not exist")
            elif now[entry] != written:
                found.append(
                    f"{name}: {entry} has changed since the page was reviewed "
                    f"({front['reviewed']}); read the page "
                    f"against it, then run python .ci/proofs.py --reviewed {name}"
                )
    for module in sorted((root / MECHANISMS).rglob("*.py")):
        file = module.relative_to(root).as_posix()
        if "@register" in module.read_text(encoding="utf-8").splitlines():
            page = folder / f"{module.stem.replace('_', '-')}.md"
            if not page.is_file() or file not in front_matter(page)["code"]:
                found.append(
                    f"{page.relative_to(root).as_posix()}: mechanism {module.stem} has no "
                    f"proof that covers {file}"
                )
        if module.name not in NO_PROOF and file not in covered:
            found.append(f"{file}: no page of docs/proofs covers it")
    return found


def review(root: Path, page: Path) -> None:
    """Write the present hashes and today's date into a page.

    Raises:
        SystemExit: if the page covers nothing, or code that does not exist.
    """
    front = front_matter(page)
    hashes = code_hashes(root, list(front["code"]))
    missing = [entry for entry, value in hashes.items() if not value]
    if missing or not hashes:
        raise SystemExit(
            f"{page}: {', '.join(missing) or 'code that the page covers'} does not exist"
        )
    today = datetime.datetime.now(datetime.UTC).date()
    lines = [
        f"reviewed: {today}",
        "code:",
        *(f"  {entry}: {value}" for entry, value in hashes.items()),
    ]
    text = FRONT.sub(
        "---\n" + "\n".join(lines) + "\n---\n", page.read_text(encoding="utf-8"), count=1
    )
    page.write_text(text, encoding="utf-8")


def main() -> int:
    """Check the pages, or record a review."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true")
    action.add_argument("--reviewed", type=Path, nargs="+", metavar="PAGE")
    given = parser.parse_args()
    for page in given.reviewed or ():
        review(ROOT, page)
    found = problems(ROOT) if given.check else []
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
