"""The commands, calls and settings that the documentation and the examples tell people to run."""

import ast
import json
import re
import shlex
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
KINDS = {"md", "py", "ipynb", "yaml", "sh", "service", "example", ""}
FILES = sorted(
    file
    for top in ("README.md", "docs", "examples")
    for file in ([ROOT / top] if (ROOT / top).is_file() else (ROOT / top).rglob("*"))
    if file.is_file() and file.suffix.removeprefix(".") in KINDS and "__pycache__" not in file.parts
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^    .*\n|^\n)+", re.MULTILINE)
COMMAND = re.compile(
    r"(?:^|uv run |\$ |&& |bin/)lexveil ((?:privatize|inspect|service|release)\b[^#|&]*)"
)
VERBS = ("privatize", "inspect")
BUDGETS = ("epsilon", "document_budget")


class Spends(NamedTuple):
    """Settings of a release with an epsilon or a budget, and the file that names them."""

    file: str
    options: tuple[tuple[str, str], ...]


def blocks(file: Path) -> Iterator[str]:
    """The code of a file: blocks of a page, cells of a notebook, or all of it."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".ipynb":
        for cell in json.loads(text)["cells"]:
            yield "".join(cell["source"])
    elif file.suffix == ".md":
        yield from (match[2] for match in FENCE.finditer(text))
        yield from map(textwrap.dedent, INDENTED.findall(FENCE.sub("", text)))
    else:
        yield text


def commands(file: Path) -> Iterator[list[str]]:
    """The commands that release or look at texts, in words; options of a schema are none."""
    for block in blocks(file):
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            for written in COMMAND.findall(line.strip().removeprefix("ExecStart=")):
                words = shlex.split(re.split(r"\s{2,}", written)[0])
                if not any("[" in word or "{" in word for word in words):
                    yield words


def calls(file: Path) -> Iterator[dict[str, str]]:
    """The keyword arguments with plain values of each call of privatize or inspect."""
    for block in blocks(file):
        try:
            tree = ast.parse(block)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in VERBS:
                yield {
                    str(keyword.arg): str(keyword.value.value)
                    for keyword in node.keywords
                    if isinstance(keyword.value, ast.Constant)
                }


def sections(file: Path) -> Iterator[dict[str, str]]:
    """The settings of each section `inbox` of a lexveil.toml."""
    for block in blocks(file):
        for inbox in re.findall(r"^\[inbox\]\n((?:\w+ = .*\n?)+)", block, re.MULTILINE):
            yield {key: str(value) for key, value in tomllib.loads(inbox).items()}


def spending() -> list[Spends]:
    """All settings of docs and examples that name an epsilon or a budget of a release."""
    found = set[Spends]()
    for file in FILES:
        asked = [*calls(file), *sections(file), *map(_options, commands(file))]
        for options in asked:
            # Sentences have no levels: an epsilon of theirs is judged by what finds the text again.
            is_of_sentences = options.get("strategy") == "S5"
            if any(name in options for name in BUDGETS) and not is_of_sentences:
                kept = (*BUDGETS, "mechanism", "strategy", "average_words", "max_token_epsilon")
                of = tuple(sorted((key, options[key]) for key in kept if key in options))
                found.add(Spends(str(file.relative_to(ROOT)), of))
    return sorted(found)


def _options(words: list[str]) -> dict[str, str]:
    """The options of a command by the names of their fields."""
    flat = [part for word in words for part in (word.split("=", 1) if word[:2] == "--" else [word])]
    return {
        name[2:].replace("-", "_"): value
        for name, value in zip(flat, [*flat[1:], ""], strict=True)
        if name.startswith("--")
    }
