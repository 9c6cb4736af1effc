"""Hold the proofs in docs/proofs to the code that they are about.

    python .ci/proofs.py --check            exit 1 and name the pages whose code has changed
                                            since they were reviewed
    python .ci/proofs.py --reviewed PAGE    write the code's hashes of now into a page that
                                            was read against it

A page begins with the code it covers: files, or classes and functions of them (``file.py::Name``,
``file.py::Class.name``), each with a hash of its syntax tree, so that comments, docstrings and
layout do not count. Every mechanism has a page of its name, and every module of the mechanisms is
covered by some page.
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
# Statistics of mechanisms, and names of their variants, which none of them uses.
NO_PROOF = {"__init__.py", "deniability.py", "variants.py"}


def tree_hash(source: str, name: str = "") -> str:
    """The sha256 of some code without comments and docstrings; ``name``: of one class, function or
    method of it.

    Raises:
        KeyError: if there is nothing of the name.
    """
    node: Any = ast.parse(source)
    for part in filter(None, name.split(".")):
        node = {child.name: child for child in node.body if hasattr(child, "name")}[part]
    return hashlib.sha256(repr(_plain(node)).encode()).hexdigest()


def _plain(node: Any) -> Any:
    """A syntax tree as tuples, the same in every version of Python: what is empty is left out, and
    so is prose.
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
    """Whether a statement is a string alone."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def code_hashes(root: Path, names: list[str]) -> dict[str, str]:
    """The hashes of what a page covers; one that is not there has an empty one."""
    hashes = {}
    for entry in names:
        file, _, name = entry.partition("::")
        try:
            hashes[entry] = tree_hash((root / file).read_text(encoding="utf-8"), name)
        except (KeyError, FileNotFoundError, AttributeError):
            hashes[entry] = ""
    return hashes


def front_matter(page: Path) -> dict[str, Any]:
    """What a page says of itself: ``reviewed``, a date, and ``code``, hashes by name."""
    found = FRONT.match(page.read_text(encoding="utf-8"))
    front = yaml.safe_load(found[1]) if found else {}
    return {"reviewed": None, "code": {}, **(front or {})}


def problems(root: Path) -> list[str]:
    """What does not hold, one line each."""
    folder = root / "docs/proofs"
    found = list[str]()
    covered = set[str]()
    for page in sorted(folder.glob("*.md")):
        front = front_matter(page)
        name = page.relative_to(root).as_posix()
        if not front["code"]:
            found.append(f"{name}: it names no code that it is about")
        now = code_hashes(root, list(front["code"]))
        covered |= {entry.partition("::")[0] for entry in now}
        for entry, written in front["code"].items():
            if not now[entry]:
                found.append(f"{name}: there is no {entry}")
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
    """Write the hashes of now, and today's date.

    Raises:
        SystemExit: if the page covers nothing, or something that is not there.
    """
    front = front_matter(page)
    hashes = code_hashes(root, list(front["code"]))
    missing = [entry for entry, value in hashes.items() if not value]
    if missing or not hashes:
        raise SystemExit(f"{page}: there is no {', '.join(missing) or 'code that it is about'}")
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
    """Check, or note a review."""
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
