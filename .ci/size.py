"""Form of the code, measured on its syntax tree: printed before a commit, compared over time.

The number of nodes says how much there is to read; packing and wrapping lines do not change it. No
measure fails a build; people read the measures.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = ("lexveil", "tasks", "flows")
PARTS = {"lexveil tasks flows": LIBRARY, "tests": ("tests",), "benchmarks": ("benchmarks",)}
LONG_FUNCTION = 60
MANY_PARAMETERS = 7
WIDE_LINE = 100
FILES = {"dvc.yaml": (480, "lines"), "dvc.lock": (130_000, "bytes")}
# Docstrings that begin with these words do not name their subject.
HEADLESS = re.compile(r"(What|Whom?|Whose|Of|As|The same|See that|Let|Its|None yet|All of)\b")


def modules(*tops: str) -> Iterator[tuple[str, str, ast.Module]]:
    """Yield name, source and syntax tree of every module below some folders."""
    for top in tops:
        for path in sorted((ROOT / top).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            yield str(path.relative_to(ROOT)), source, ast.parse(source)


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function and method."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Yield every docstring."""
    for node in ast.walk(tree):
        documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            yield text


def n_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of parameters of a signature, without self and cls."""
    spec = function.args
    every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
    return len(every) - (every[:1] != [] and every[0].arg in ("self", "cls"))


def is_compiled(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is a kernel."""
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    return any(name.startswith(("kernel(", "uncounted", "numba.njit")) for name in decorators)


def packs_assignments(node: ast.AST) -> bool:
    """Return whether a statement is `a, b = x, y`."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
    )


def form(tops: tuple[str, ...]) -> dict[str, str]:
    """Return measures of the form of the code below some folders, by the name of the measure."""
    nodes = 0
    statements = 0
    assignments = 0
    packed = 0
    wide = 0
    skipped = 0
    documented = 0
    headless = 0
    for _, source, tree in modules(*tops):
        every = list(ast.walk(tree))
        nodes += len(every)
        statements += sum(isinstance(node, ast.stmt) for node in every)
        assignments += sum(isinstance(node, ast.Assign) for node in every)
        packed += sum(packs_assignments(node) for node in every)
        wide += sum(len(line) > WIDE_LINE for line in source.splitlines())
        skipped += source.count("# fmt: " + "skip")
        texts = list(docstrings(tree))
        documented += len(texts)
        headless += sum(bool(HEADLESS.match(text)) for text in texts)
    return {
        "nodes of the syntax tree": f"{nodes:,}",
        "statements": f"{statements:,}",
        "nodes a statement": f"{nodes / statements:.1f}",
        "`a, b = x, y` of 1,000 assignments": f"{1000 * packed / assignments:.0f}",
        f"lines over {WIDE_LINE} columns": f"{wide:,}",
        "fmt: " + "skip": str(skipped),
        "docstrings that do not name their subject": f"{headless / documented:.0%}",
    }


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of lines of a function."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def print_functions() -> None:
    """Print the functions that are long or have many parameters; kernels are not counted."""
    measures = {
        f"functions over {LONG_FUNCTION} lines": (length, LONG_FUNCTION),
        f"signatures over {MANY_PARAMETERS} parameters": (n_parameters, MANY_PARAMETERS),
    }
    for heading, (measure, limit) in measures.items():
        found = [
            f"{name}:{function.lineno} {function.name} ({measure(function)})"
            for name, _, tree in modules(*LIBRARY)
            for function in functions(tree)
            if measure(function) > limit and "/kernels/" not in name and not is_compiled(function)
        ]
        print(f"\n{heading}, without kernels: {len(found)}", *found, sep="\n  ")


def print_repeated_classes() -> None:
    """Print the names that several classes share."""
    classes: dict[str, list[str]] = {}
    for name, _, tree in modules(*LIBRARY):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(name)
    twice = [f"{name}: {', '.join(places)}" for name, places in classes.items() if len(places) > 1]
    print(f"\nclasses defined twice: {len(twice)}", *sorted(twice), sep="\n  ")


def main() -> None:
    """Print the tables."""
    print_functions()
    print_repeated_classes()
    untyped = sum(source.count("dict[str, Any]") for _, source, _ in modules(*LIBRARY))
    docs = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    lines = [line for path in docs for line in path.read_text(encoding="utf-8").splitlines()]
    wide = sum(len(line) > WIDE_LINE for line in lines)
    print(f"\ndict[str, Any]: {untyped}\nlines over {WIDE_LINE} columns in docs: {wide}")
    for name, (limit, unit) in FILES.items():
        content = (ROOT / name).read_bytes()
        amount = len(content.splitlines()) if unit == "lines" else len(content)
        print(f"{name}: {amount:,} {unit} (at most {limit:,})")
    measured = {part: form(tops) for part, tops in PARTS.items()}
    width = max(len(what) for what in measured["tests"])
    print(f"\n{'':{width}}", *(f"{part:>20}" for part in PARTS))
    for what in measured["tests"]:
        print(f"{what:{width}}", *(f"{measured[part][what]:>20}" for part in PARTS))


if __name__ == "__main__":
    main()
