"""The formats there are: every class in this folder that is registered. A new format is its file and nothing else."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar

from lexveil.formats.base import Format, Source
from lexveil.formats.compression import COMPRESSIONS

F = TypeVar("F", bound=Format)

_REGISTERED: dict[str, Format] = {}


def register(kind: type[F]) -> type[F]:
    """Class decorator: make a format known.

    Raises:
        ValueError: if another format has its name or one of its endings.
    """
    taken = {ending for form in _REGISTERED.values() for ending in form.endings}
    if kind.name not in kind.endings or taken & set(kind.endings):
        raise ValueError(f"format {kind.name}: its endings {kind.endings} are taken, or its name is not one of them")
    _REGISTERED[kind.name] = kind()
    return kind


@cache
def formats() -> tuple[Format, ...]:
    """All formats, in the order in which lists name them."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if not module.name.endswith("_tables"):  # what a format needs once a file is opened
            importlib.import_module(f"{__package__}.{module.name}")
    return tuple(sorted(_REGISTERED.values(), key=lambda form: (form.rank, form.name)))


def format_named(name: str) -> Format:
    """A format by its name."""
    return next(form for form in formats() if form.name == name)


def as_source(path: Path) -> Source | None:
    """How a file is to be read, from its name; None if the name does not say so."""
    name = path.name
    compression = next((ending for ending in COMPRESSIONS if name.lower().endswith(f".{ending}")), "")
    if compression:
        name = name[: -len(compression) - 1]
    stem, dot, ending = name.rpartition(".")
    for form in formats():
        if dot and ending.lower() in form.endings and (form.is_compressible or not compression):
            return Source(path, form, compression, stem)
    return None


def known_endings(conjunction: str = "and") -> str:
    """All endings of files, for messages."""
    return _listed([(form, form.endings) for form in formats()], conjunction)


def known_names(conjunction: str = "or") -> str:
    """The names of all formats, for messages and help."""
    return _listed([(form, (form.name,)) for form in formats()], conjunction)


def _listed(endings: Iterable[tuple[Format, tuple[str, ...]]], conjunction: str) -> str:
    compressible = [ending for form, own in endings if form.is_compressible for ending in own]
    others = [ending for form, own in endings if not form.is_compressible for ending in own]
    suffixes = " or ".join(f".{ending}" for ending in COMPRESSIONS)
    listed = f"{', '.join(compressible)} (each also as {suffixes})"
    return f"{listed} {conjunction} {', '.join(others)}" if others else listed
