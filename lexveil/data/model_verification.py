"""Reads a packaged model as one reads what a stranger sends, and checks it against ``model_rules``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lexveil.artifacts.packaged_model import CARD, ORDERS, SCALES, TRAINED_SCALES, ModelCard
from lexveil.data.model_rules import (
    CARD_LIMIT,
    Array,
    UnsoundModel,
    check_array,
    check_files,
    check_numbers,
    check_order,
    check_scales,
    check_structure,
    check_tokens,
    read_card,
)
from lexveil.formats.messages import shown
from lexveil.runtime.hashes import sha256


def verify_folder(folder: Path, shown_as: Path | None = None) -> ModelCard:
    """See that a folder is a packaged model, whole and sound; nothing in it is executed.

    Args:
        folder: with model.json and the other files of a model, and nothing else.
        shown_as: what messages call it: the archive that it was unpacked from.

    Returns:
        Its card.

    Raises:
        UnsoundModel: naming the first fault.
    """
    try:
        return _verified(folder)
    except UnsoundModel as error:
        raise UnsoundModel(f"{shown(shown_as or folder)}: {error}") from None


def _verified(folder: Path) -> ModelCard:
    sizes = _sizes(folder)
    if sizes.pop(CARD, CARD_LIMIT + 1) > CARD_LIMIT:
        raise UnsoundModel(f"{CARD}: missing, or larger than {CARD_LIMIT:,} bytes")
    card = read_card((folder / CARD).read_bytes())
    check_files(card, sizes)
    for name, expected in card.files.items():
        if sha256(folder / name) != expected:
            raise UnsoundModel(f"{name}: not the file that {CARD} names (its sha256 differs); get the model again")
    tokens = check_tokens(card, (folder / "words.txt").read_bytes())
    n, p = card.n_tokens, card.dimensions
    arrays: dict[str, Array] = {}
    for name, dtype, shape in (
        ("counts.npy", "<u4", (n,)),
        ("pmi.npy", "<f4", (n,)),
        ("vectors.npy", "|i1", (n, p)),
        *((name, "<f4", (n,)) for name in (SCALES, TRAINED_SCALES) if name in card.files),
    ):
        arrays[name] = _array(folder, name)
        check_array(name, arrays[name], dtype, shape)
    check_numbers(tokens, arrays["counts.npy"], arrays["pmi.npy"])
    for name in (SCALES, TRAINED_SCALES):
        if name in arrays:
            check_scales(name, arrays["vectors.npy"], arrays[name])
    check_order(ORDERS["word"], _array(folder, ORDERS["word"]), card.n_words)
    check_order(ORDERS["all"], _array(folder, ORDERS["all"]), n)
    check_structure((folder / "structure.json").read_bytes())
    return card


def _sizes(folder: Path) -> dict[str, int]:
    """The bytes of each file by its path inside the folder."""
    if not folder.is_dir():
        raise UnsoundModel("not a folder")
    sizes = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise UnsoundModel(f"{shown(name)}: a link or a device; a model has plain files only")
        if path.is_file():
            sizes[name] = path.stat().st_size
    return sizes


def _array(folder: Path, name: str) -> Array:
    try:
        # Never unpickles, and takes no other of NumPy's formats for an array.
        array: Array = np.lib.format.open_memmap(folder / name, mode="r")
    except (ValueError, OSError, EOFError, SyntaxError, OverflowError):
        raise UnsoundModel(f"{name}: not an array of plain numbers as NumPy writes them") from None
    return array
