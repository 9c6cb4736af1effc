"""Look for inputs that break what must hold, guided by coverage.

    uv pip install atheris
    uv run --no-sync python -m tests.fuzz.search readers tests/fuzz/corpus/readers
    -max_total_time=3600

Targets are readers and tokenizer.

What follows the target's name goes to libFuzzer: folders of inputs, of which the first gets new
ones, and options.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import atheris

ROOT = Path(__file__).parents[2]
MODULES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts): file
    for file in (ROOT / "lexveil").rglob("*.py")
}
# numba compiles only what is not instrumented.
COMPILED = [
    name
    for name, file in MODULES.items()
    if re.search("numba|kernel", file.read_text(encoding="utf-8"))
]

with atheris.instrument_imports(include=["lexveil", "tests.fuzz"], exclude=COMPILED):
    from lexveil.io.formats import parquet_tables  # noqa: F401
    from tests.fuzz.properties import ENDINGS, check_file, small_limits
    from tests.text.reference_tokenizer import assert_same


def readers(data: bytes) -> None:
    """The first byte says the form, the rest is the file."""
    if data:
        check_file(data[1:], ENDINGS[data[0] % len(ENDINGS)])


def tokenizer(data: bytes) -> None:
    """UTF-8, as far as it is; a byte 255 ends a text."""
    assert_same([part.decode("utf-8", "ignore") for part in data.split(b"\xff")])


TARGETS: dict[str, Callable[[bytes], None]] = {"readers": readers, "tokenizer": tokenizer}


def main() -> None:
    """Run one target until libFuzzer ends, or an input breaks it; that one is left in a file
    crash-…"""
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(
            f"usage: python -m tests.fuzz.search {{{'|'.join(TARGETS)}}} [FOLDER …] "
            "[-OPTION=VALUE …]"
        )
    atheris.Setup([sys.argv[0], *sys.argv[2:]], TARGETS[sys.argv[1]])
    with small_limits():
        atheris.Fuzz()


if __name__ == "__main__":
    main()
