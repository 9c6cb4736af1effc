"""Verification of a packaged model as untrusted input, from a folder or one archive file. The error
names the first fault.

A model comes from somebody else: it may be damaged, made by another program, or malicious. A sound
model never contains code, and its metadata card (JSON) limits the size of each file, which is
checked before one byte is unpacked. An archive, NAME-VERSION.lexveil.zip, is a plain zip of the
files, with the same bytes on every machine.
"""

from __future__ import annotations

import json
import shutil
import stat
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter, ValidationError

from lexveil.base.errors import RequestError
from lexveil.base.runtime.hashes import sha256
from lexveil.base.runtime.tables import atomic_file
from lexveil.core.accounting.budgets import SEGMENTATION_OF
from lexveil.core.text.normal_forms import has_letters, normal_form
from lexveil.io.artifacts.embeddings import MOST_BIGRAMS
from lexveil.io.artifacts.packaged_model import (
    BIGRAMS,
    CARD,
    FORMAT,
    ORDERS,
    SCALES,
    TRAINED_SCALES,
    ModelCard,
)
from lexveil.io.artifacts.structure import MeasuredStructure
from lexveil.io.formats.messages import shown

Array = npt.NDArray[Any]

# names that mean something else where a user names a model
RESERVED = ("own", "none", "word", "gst", "mst")
CARD_LIMIT = 2**20  # bytes
TOTAL_LIMIT = 2**31  # largest number of bytes of a whole model
LARGEST = 1e9  # largest coordinate: squared distances must stay finite in single precision
MAX_LENGTH = 3  # largest number of words of a collocation
_EPOCH = (1980, 1, 1, 0, 0, 0)  # first date that a zip can hold
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class UnsoundModelError(RequestError):
    """Error about a packaged model that violates the model format."""


def _require(holds: object, fault: str) -> None:
    if not holds:
        raise UnsoundModelError(fault)


def verify_folder(folder: Path, shown_as: Path | None = None) -> ModelCard:
    """Check that a folder is a complete and sound packaged model; nothing in it is executed.

    Args:
        folder: folder with model.json and the other files of a model, and nothing else.
        shown_as: path to name in messages, such as the archive from which the folder was unpacked.

    Returns:
        The model's metadata card.

    Raises:
        UnsoundModelError: if the model has a fault; the message names the first one.
    """
    try:
        return _verified(folder)
    except UnsoundModelError as error:
        raise UnsoundModelError(f"{shown(shown_as or folder)}: {error}") from None


def _verified(folder: Path) -> ModelCard:
    sizes = _sizes(folder)
    _require(
        sizes.pop(CARD, CARD_LIMIT + 1) <= CARD_LIMIT,
        f"{CARD}: missing, or larger than {CARD_LIMIT:,} bytes",
    )
    card = read_card((folder / CARD).read_bytes())
    check_files(card, sizes)
    for name, expected in card.files.items():
        is_same = sha256(folder / name) == expected
        _require(
            is_same,
            f"{name}: its sha256 differs from {CARD}; get the model again",
        )
    tokens = _tokens(card, (folder / "words.txt").read_bytes())
    n = card.n_tokens
    counts = _array(folder, "counts.npy", "<u4", (n,))
    pmi = _array(folder, "pmi.npy", "<f4", (n,))
    vectors = _array(folder, "vectors.npy", "|i1", (n, card.dimensions))
    _check_numbers(tokens, counts, pmi)
    for name in (SCALES, TRAINED_SCALES):
        if name in card.files:
            _check_scales(name, vectors, _array(folder, name, "<f4", (n,)))
    for name, size in ((ORDERS["word"], card.n_words), (ORDERS["all"], n)):
        orders = _array(folder, name, "<u2" if size <= 2**16 else "<u4", (2, size))
        for number, order in enumerate(orders, 1):
            is_order = np.array_equal(np.sort(order), np.arange(size))
            _require(
                is_order, f"{name}: order {number} is not a permutation of the {size:,} tokens"
            )
    _check_structure((folder / "structure.json").read_bytes())
    if f"{BIGRAMS}/starts.npy" in card.files:
        _check_bigrams(folder, n)
    return card


def _sizes(folder: Path) -> dict[str, int]:
    """Return the size in bytes of each file in a folder, by its path inside the folder."""
    _require(folder.is_dir(), "is not a folder")
    sizes = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        is_plain = not path.is_symlink() and (path.is_file() or path.is_dir())
        _require(is_plain, f"{shown(name)}: is a link or a device; a model has plain files only")
        if path.is_file():
            sizes[name] = path.stat().st_size
    return sizes


def read_card(content: bytes) -> ModelCard:
    """Parse and check the metadata card (JSON) of a packaged model.

    Raises:
        UnsoundModelError: if a field is wrong; the message names the first one.
    """
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        raise UnsoundModelError(f"{CARD}: not JSON") from None
    version = fields.get("format") if isinstance(fields, dict) else None
    _require(
        type(version) is not int or version == FORMAT,
        f"{CARD}: format {version}; this version of Lexveil reads format {FORMAT}. "
        "Update Lexveil, or get the model in that format",
    )
    try:
        card = ModelCard.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "as a whole"
        raise UnsoundModelError(f"{CARD}: {shown(field)}: {first['msg'].lower()}") from None
    problem = (
        f"{CARD}: name: {card.name} is reserved; the names {', '.join(RESERVED)} cannot be used"
    )
    _require(card.name not in RESERVED, problem)
    _require(
        card.license.strip(),
        f"{CARD}: license: is empty; the card must state the licence under which the model may "
        "be used",
    )
    is_sum = card.n_words >= 2 and card.n_words + card.n_bigrams + card.n_trigrams == card.n_tokens
    _require(
        is_sum,
        f"{CARD}: n_words, n_bigrams and n_trigrams do not add up to n_tokens, or n_words is 0",
    )
    return card


def check_files(card: ModelCard, sizes: Mapping[str, int]) -> None:
    """Check that a model folder holds only files of the model format, that the metadata card names
    each of them, and that no file is larger than possible.

    Args:
        sizes: bytes of each file except the card, by its path inside the model.
    """
    n = card.n_tokens
    header = 4096
    limits = {
        "words.txt": 256 * n,
        **dict.fromkeys(("counts.npy", "pmi.npy", SCALES), 4 * n + header),
        "vectors.npy": n * card.dimensions + header,
        ORDERS["word"]: 8 * card.n_words + header,
        ORDERS["all"]: 8 * n + header,
        "structure.json": 2**20,
        "NOTICE.md": 2**22,
    }
    # Optional files hold the trained lengths of the vectors and the bigram counts.
    if TRAINED_SCALES in card.files:
        limits[TRAINED_SCALES] = limits[SCALES]
    if any(name.startswith(BIGRAMS) for name in card.files):
        sizes_of = {
            "starts": 4 * n + header,
            "ids": 4 * MOST_BIGRAMS + header,
            "counts": 2 * MOST_BIGRAMS + header,
        }
        limits |= {f"{BIGRAMS}/{name}.npy": most for name, most in sizes_of.items()}
    for files, others, fault in (
        (sizes, limits, "is not a file of the format"),
        (limits, sizes, "missing"),
        (limits, card.files, f"{CARD} states no sha256 for it"),
        (card.files, limits, f"{CARD} names it, but it is not a file of the format"),
    ):
        if odd := sorted(set(files) - set(others)):
            raise UnsoundModelError(f"{shown(odd[0])}: {fault}")
    for name, size in sizes.items():
        most = limits[name]
        _require(
            size <= most,
            f"{name}: {size:,} bytes; in a model of {card.n_tokens:,} tokens it has at most "
            f"{most:,}",
        )
    _require(sum(sizes.values()) <= TOTAL_LIMIT, f"more than {TOTAL_LIMIT:,} bytes")


def _tokens(card: ModelCard, content: bytes) -> list[str]:
    """Parse words.txt and return its tokens. Each token must be a word that the tokenizer can
    produce, or 2 or 3 such words joined by ``_``.
    """
    from lexveil.core.text.tokenize import is_token

    try:
        *tokens, rest = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise UnsoundModelError(f"words.txt: not UTF-8 at byte {error.start:,}") from None
    _require(not rest, "words.txt: the last line has no line feed, so the file is truncated")
    _require(
        len(tokens) == card.n_tokens,
        f"words.txt: {len(tokens):,} tokens; {CARD} states {card.n_tokens:,}",
    )
    seen: set[str] = set()
    known: dict[str, bool] = {}
    for line, token in enumerate(tokens, 1):
        words = token.split("_")
        where = f"words.txt, line {line:,}"
        _require(token not in seen, f"{where}: repeats an earlier token")
        seen.add(token)
        _require(
            len(words) <= MAX_LENGTH,
            f"{where}: {len(words)} words; a collocation has at most {MAX_LENGTH}",
        )
        for word in words:
            if word not in known:
                known[word] = normal_form(word) == word and is_token(word, card.language)
            is_usable = known[word] and (len(words) == 1 or has_letters(word))
            _require(is_usable, f"{where}: not a token that the tokenizer can produce")
    lengths = np.bincount([token.count("_") for token in tokens], minlength=MAX_LENGTH).tolist()
    is_said = lengths == [card.n_words, card.n_bigrams, card.n_trigrams]
    _require(
        is_said, f"words.txt: {lengths} tokens of 1, 2 and 3 words, but {CARD} states other numbers"
    )
    return tokens


def _array(folder: Path, name: str, dtype: str, shape: tuple[int, ...]) -> Array:
    """Open an array file of a model, and check that the array has the type and the shape of the
    format.
    """
    try:
        # open_memmap never unpickles, and accepts NumPy's .npy format only.
        array: Array = np.lib.format.open_memmap(folder / name, mode="r")
    except (ValueError, OSError, EOFError, SyntaxError, OverflowError):
        raise UnsoundModelError(
            f"{name}: is not an array of plain numbers in NumPy's .npy format"
        ) from None
    wanted = f"{np.dtype(dtype)} of shape {shape}"
    is_wanted = array.dtype == np.dtype(dtype) and array.shape == shape
    _require(is_wanted, f"{name}: {array.dtype} of shape {array.shape}; it must be {wanted}")
    return array


def _check_numbers(tokens: Sequence[str], counts: Array, pmi: Array) -> None:
    """Check the arrays of token counts and PMI of a model: counts (V,) do not rise, PMI (V,) is
    finite, and single words have a PMI of 0.
    """
    rises = counts[1:] > counts[:-1]
    place = int(np.argmax(rises)) + 2
    _require(
        not rises.any(),
        f"counts.npy: count {place:,} is larger than the one before; counts must not rise",
    )
    _require(counts[-1], "counts.npy: a count is 0; every token of a model occurs at least once")
    finite = np.isfinite(pmi)
    _require(finite.all(), f"pmi.npy: number {int(np.argmin(finite)) + 1:,} is not finite")
    of_words = pmi[["_" not in token for token in tokens]]
    _require(not of_words.any(), "pmi.npy: the PMI of a single word is not 0")


def _check_scales(name: str, vectors: Array, scales: Array) -> None:
    """Check the quantized vectors of a model: int8 rows (V, p) times scales (V,) are vectors of
    finite, moderate lengths.
    """
    is_positive = np.isfinite(scales).all() and (scales > 0).all()
    _require(is_positive, f"{name}: every scale must be finite and greater than 0")
    largest = max(
        float(
            (
                np.abs(vectors[start : start + 8192].astype(np.int16)).max(axis=1)
                * scales[start : start + 8192]
            ).max()
        )
        for start in range(0, len(vectors), 8192)
    )
    _require(largest <= LARGEST, f"{name}: a coordinate of {largest:g}; the limit is {LARGEST:g}")


def _check_bigrams(folder: Path, n: int) -> None:
    """Check the bigram counts of a model: they name token ids below n, in ascending order after
    each token, and every count is at least 1.
    """
    starts = _array(folder, f"{BIGRAMS}/starts.npy", "<u4", (n + 1,)).astype(np.int64)
    rises = not starts[0] and (np.diff(starts) >= 0).all() and starts[-1] <= MOST_BIGRAMS
    _require(
        rises,
        f"{BIGRAMS}/starts.npy: the numbers must rise from 0 to the number of pairs, which is "
        f"at most {MOST_BIGRAMS:,}",
    )
    n_pairs = int(starts[-1])
    ids = _array(folder, f"{BIGRAMS}/ids.npy", "<u2" if n <= 2**16 else "<u4", (n_pairs,)).astype(
        np.int64
    )
    counts = _array(folder, f"{BIGRAMS}/counts.npy", "<u2", (n_pairs,))
    is_new_row = np.isin(np.arange(1, n_pairs), starts)
    is_sound = (ids < n).all() and (is_new_row | (np.diff(ids) > 0)).all() and counts.all()
    _require(
        is_sound,
        f"{BIGRAMS}: the tokens after each token must be tokens of the model, ascending, with "
        "counts of at least 1",
    )


def _check_structure(content: bytes) -> None:
    """Check that structure.json holds measurements by segmentation; a file without measurements is
    valid.
    """
    try:
        measured = TypeAdapter(dict[str, MeasuredStructure]).validate_json(content)
    except ValueError:
        raise UnsoundModelError(
            "structure.json: does not hold measurements by segmentation"
        ) from None
    for name, one in measured.items():
        strategies = {
            strategy for strategy, segmentation in SEGMENTATION_OF.items() if segmentation == name
        }
        is_known = strategies and one.segmentation == name
        _require(
            is_known, f"structure.json: {shown(name)}: is not the measurement of a segmentation"
        )
        is_whole = all(
            set(part) == strategies for part in (one.policies, one.strategies, one.any_policy)
        )
        _require(
            is_whole,
            f"structure.json: {name}: lacks some of the strategies {', '.join(sorted(strategies))}",
        )
        changes = [
            change.to_dict()
            for part in (one.strategies, one.any_policy)
            for change in part.values()
        ]
        is_share = all(
            0 <= share <= 1
            for change in changes
            for each in change.values()
            for share in each.values()
        )
        _require(is_share, f"structure.json: {name}: a share is not between 0 and 1")


def write_archive(folder: Path, card: ModelCard, out: Path) -> None:
    """Write the files of a model into one uncompressed zip archive.

    The files are stored, not compressed: zlib and zlib-ng would compress them to different bytes,
    and 8-bit vectors hardly shrink. Names are sorted, with the model's metadata card first; dates
    and permissions are fixed.
    """
    with atomic_file(out) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name in (CARD, *sorted(card.files)):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3  # marks the file as made on Unix, on every system
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, (folder / name).read_bytes())


def unpack(file: Path, folder: Path) -> None:
    """Unpack a model archive into an empty folder, after checking name, kind and size of every file
    in it.

    Raises:
        UnsoundModelError: if the file is not an archive of a model. The contents of the files are
            not checked here.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            _unpack(archive, folder)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
    ):
        raise UnsoundModelError(f"{shown(file)}: is a damaged archive; get it again") from None
    except UnsoundModelError as error:
        raise UnsoundModelError(f"{shown(file)}: {error}") from None


def _unpack(archive: zipfile.ZipFile, folder: Path) -> None:
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        mode = stat.S_IFMT(entry.external_attr >> 16)
        if entry.is_dir() and entry.filename in ("orders/", f"{BIGRAMS}/"):
            continue
        name = shown(entry.filename)
        is_file = mode in (0, stat.S_IFREG) and not entry.is_dir()
        _require(is_file, f"{name}: is a link or a folder; an archive has plain files only")
        is_readable = not entry.flag_bits & 0x1 and entry.compress_type in _PLAIN
        _require(is_readable, f"{name}: is encrypted, or compressed by another method than deflate")
        _require(entry.filename not in entries, f"{name}: occurs twice")
        entries[entry.filename] = entry
    has_card = CARD in entries and entries[CARD].file_size <= CARD_LIMIT
    _require(
        has_card,
        f"{CARD}: missing, or larger than {CARD_LIMIT:,} bytes; is this an archive of a model?",
    )
    card = read_card(archive.read(entries[CARD]))
    # Only names of the format are allowed, so no name points outside the folder, and no file is
    # larger than the card allows.
    check_files(card, {name: entry.file_size for name, entry in entries.items() if name != CARD})
    for name, entry in entries.items():
        (folder / name).parent.mkdir(exist_ok=True)
        # reads no more bytes than the size in the directory of the archive
        with archive.open(entry) as source, (folder / name).open("wb") as target:
            shutil.copyfileobj(source, target)
