"""Registry of the file formats. A new format is a class in a module of this package, and an entry
in this module.
"""

from __future__ import annotations

from pathlib import Path

from lexveil.io.formats.base import Format, Source
from lexveil.io.formats.compression import MAGIC
from lexveil.io.formats.delimited import CommaSeparated, TabSeparated
from lexveil.io.formats.json_lines import JsonLines
from lexveil.io.formats.lines import PlainText
from lexveil.io.formats.parquet import Parquet

FORMATS: tuple[Format, ...] = (
    JsonLines(),
    CommaSeparated(),
    TabSeparated(),
    PlainText(),
    Parquet(),
)


def format_named(name: str) -> Format:
    """Return a format by its name."""
    return next(form for form in FORMATS if form.name == name)


def as_source(path: Path) -> Source | None:
    """Return the file with the format and compression that its name implies. The result is None if
    the name implies no format.
    """
    name = path.name
    compression = next((ending for ending in MAGIC if name.lower().endswith(f".{ending}")), "")
    if compression:
        name = name[: -len(compression) - 1]
    stem, dot, ending = name.rpartition(".")
    for form in FORMATS:
        if dot and ending.lower() in form.endings and (form.is_streamable or not compression):
            return Source(path, form, compression, stem)
    return None


def known_endings(conjunction: str = "and") -> str:
    """Return all file name endings that a format has, as a phrase for messages."""
    return _listed({ending: form for form in FORMATS for ending in form.endings}, conjunction)


def known_names(conjunction: str = "or") -> str:
    """Return the names of all formats, as a phrase for messages."""
    return _listed({form.name: form for form in FORMATS}, conjunction)


def _listed(endings: dict[str, Format], conjunction: str) -> str:
    compressible = ", ".join(ending for ending, form in endings.items() if form.is_streamable)
    *others_of, last = MAGIC
    others = ", ".join(ending for ending, form in endings.items() if not form.is_streamable)
    return (
        f"{compressible} (each also as {', '.join(f'.{ending}' for ending in others_of)} or "
        f".{last}) {conjunction} {others}"
    )
