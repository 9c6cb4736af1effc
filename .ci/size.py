"""How large the project is and where it is dense: printed before each commit, compared over time.

A code line holds code: blank lines, comments and docstrings do not count. Nothing here fails; people read it.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = ("lexveil", "tasks", "flows")
LONG_FUNCTION, MANY_PARAMETERS, WIDE_LINE = 60, 7, 120
TARGETS = {"lexveil tasks flows": 36_000, "tests": 20_000, "benchmarks": 3_500}
FILES = {"dvc.yaml": (480, "lines"), "dvc.lock": (130_000, "bytes")}
# Whatever follows the layout of tokens and holds no code of its own.
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(source: str, tree: ast.Module) -> int:
    """Lines that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            text = node.body[0]
            lines.difference_update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return len(lines)


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Of its signature, without self and cls."""
    spec = function.args
    every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
    return len(every) - (every[:1] != [] and every[0].arg in ("self", "cls"))


def is_compiled(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is a kernel."""
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    return any(decorator.startswith(("kernel(", "uncounted", "numba.njit")) for decorator in decorators)


def room(path: Path) -> str:
    """The part of the project that a file counts to: lexveil/text, tasks, tests."""
    first, *rest = path.relative_to(ROOT).parts
    return f"{first}/{rest[0]}" if first == "lexveil" and len(rest) > 1 else first


def main() -> None:
    """Print the tables."""
    size: Counter[str] = Counter()
    files: Counter[str] = Counter()
    classes: dict[str, list[str]] = {}
    untyped, long, wide_signature = 0, [], []
    for top in (*LIBRARY, "tests", "benchmarks", "examples"):
        for path in sorted((ROOT / top).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            tree = ast.parse(source)
            size[room(path)] += code_lines(source, tree)
            files[room(path)] += 1
            if top not in LIBRARY:
                continue
            name = str(path.relative_to(ROOT))
            untyped += source.count("dict[str, Any]")
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    classes.setdefault(node.name, []).append(name)
            for function in functions(tree):
                if "/kernels/" in name or is_compiled(function):
                    continue
                length = (function.end_lineno or function.lineno) - function.lineno + 1
                if length > LONG_FUNCTION:
                    long.append(f"{name}:{function.lineno} {function.name} ({length})")
                if parameters(function) > MANY_PARAMETERS:
                    wide_signature.append(f"{name}:{function.lineno} {function.name} ({parameters(function)})")
    for name, lines in size.most_common():
        print(f"{lines:7,} {files[name]:4} files  {name}")
    total = {
        "lexveil tasks flows": sum(size[name] for name in size if name.split("/")[0] in LIBRARY),
        "tests": size["tests"],
        "benchmarks": size["benchmarks"],
    }
    twice = {name: where for name, where in classes.items() if len(where) > 1}
    docs = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    wide = sum(len(line) > WIDE_LINE for path in docs for line in path.read_text(encoding="utf-8").splitlines())
    for heading, items in (
        (f"functions over {LONG_FUNCTION} lines, kernels apart", long),
        (f"signatures over {MANY_PARAMETERS} parameters, kernels apart", wide_signature),
        ("classes defined twice", [f"{name}: {', '.join(where)}" for name, where in sorted(twice.items())]),
    ):
        print(f"\n{heading}: {len(items)}", *items, sep="\n  ")
    print(f"\ndict[str, Any]: {untyped}\nlines over {WIDE_LINE} characters in docs: {wide}")
    for name, (limit, unit) in FILES.items():
        content = (ROOT / name).read_bytes()
        amount = len(content.splitlines()) if unit == "lines" else len(content)
        print(f"{name}: {amount:,} {unit} (at most {limit:,})")
    for name, lines in total.items():
        print(f"{name}: {lines:,} code lines (at most {TARGETS[name]:,})")


if __name__ == "__main__":
    main()
