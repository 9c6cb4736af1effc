"""What a packaged model must be before anything is made with it; values in, the first fault out. Nothing is read here.

A model is made by somebody else. It may be damaged, made by another program, or made to do harm; it is never code, and
its sizes are bounded by its card before one byte of it is unpacked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from lexveil.accounting.budgets import SEGMENTATION_OF
from lexveil.artifacts.packaged_model import CARD, FORMAT, ORDERS, SCALES, TRAINED_SCALES, ModelCard
from lexveil.artifacts.structure import MeasuredStructure
from lexveil.errors import RequestError
from lexveil.formats.messages import shown
from lexveil.text.collocation_index import MAX_WORDS
from lexveil.text.normal_forms import has_letters, normal_form

Array = npt.NDArray[Any]

RESERVED = ("own", "none", "word", "gst", "mst")  # names that mean something else where a model is named
DIMENSIONS = (2, 4096)
CARD_LIMIT = 2**20  # bytes
TOTAL_LIMIT = 2**31  # bytes of a whole model
LARGEST = 1e9  # of a coordinate: squares of distances must stay finite in single precision
MAX_LENGTH = 3  # words of a collocation


class UnsoundModel(RequestError):
    """A model that is not what a model must be."""


def read_card(content: bytes) -> ModelCard:
    """The card, if it is one of this format.

    Raises:
        UnsoundModel: naming the first field that is wrong.
    """
    try:
        given = json.loads(content)
    except (ValueError, RecursionError):
        raise UnsoundModel(f"{CARD}: not JSON") from None
    version = given.get("format") if isinstance(given, dict) else None
    if type(version) is int and version != FORMAT:
        raise UnsoundModel(
            f"{CARD}: format {version}; this version of Lexveil reads format {FORMAT}. "
            "Update Lexveil, or get the model in that format"
        )
    try:
        card = ModelCard.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "as a whole"
        raise UnsoundModel(f"{CARD}: {shown(field)}: {first['msg'].lower()}") from None
    _check_card(card)
    return card


def _check_card(card: ModelCard) -> None:
    if card.name in RESERVED:
        raise UnsoundModel(f"{CARD}: name: {card.name} means something else; none of {', '.join(RESERVED)} is possible")
    if not card.license.strip():
        raise UnsoundModel(f"{CARD}: license: empty; it must say under which licence the model may be used")
    if not 2 <= card.n_tokens <= MAX_WORDS:
        raise UnsoundModel(f"{CARD}: n_tokens: {card.n_tokens:,}; between 2 and {MAX_WORDS:,} are possible")
    if card.n_words < 2 or card.n_words + card.n_bigrams + card.n_trigrams != card.n_tokens:
        raise UnsoundModel(f"{CARD}: n_words, n_bigrams and n_trigrams do not add up to n_tokens, or there is no word")
    low, high = DIMENSIONS
    if not low <= card.dimensions <= high:
        raise UnsoundModel(f"{CARD}: dimensions: {card.dimensions}; between {low} and {high} are possible")
    if not 0 <= card.average_words < float("inf"):
        raise UnsoundModel(f"{CARD}: average_words: not a finite number of words")


def size_limits(card: ModelCard) -> dict[str, int]:
    """The files beside the card that a model has, and the bytes that each may have at most."""
    n, header = card.n_tokens, 4096
    return {
        "words.txt": 256 * n,
        "counts.npy": 4 * n + header,
        "pmi.npy": 4 * n + header,
        "vectors.npy": n * card.dimensions + header,
        SCALES: 4 * n + header,
        TRAINED_SCALES: 4 * n + header,
        ORDERS["word"]: 8 * card.n_words + header,
        ORDERS["all"]: 8 * n + header,
        "structure.json": 2**20,
        "NOTICE.md": 2**22,
    }


def check_files(card: ModelCard, sizes: Mapping[str, int]) -> None:
    """See that the files beside the card are those of a model, each named in it, and none larger than it can be.

    Args:
        sizes: bytes by path inside the model, without the card.
    """
    limits = size_limits(card)
    if TRAINED_SCALES not in card.files:  # which a model need not have
        del limits[TRAINED_SCALES]
    for there, wanted, what in (
        (sizes, limits, "no file of a model"),
        (limits, sizes, "missing"),
        (limits, card.files, f"{CARD} names no sha256 of it"),
        (card.files, limits, f"{CARD} names it, and it is no file of a model"),
    ):
        if odd := sorted(set(there) - set(wanted)):
            raise UnsoundModel(f"{shown(odd[0])}: {what}")
    for name, size in sizes.items():
        if size > limits[name]:
            raise UnsoundModel(
                f"{name}: {size:,} bytes; a model of {card.n_tokens:,} tokens has {limits[name]:,} at most"
            )
    if sum(sizes.values()) > TOTAL_LIMIT:
        raise UnsoundModel(f"more than {TOTAL_LIMIT:,} bytes")


def check_tokens(card: ModelCard, content: bytes) -> list[str]:
    """The tokens of words.txt, each one that the tokenizer makes of a text, or 2 or 3 such words joined by ``_``."""
    from lexveil.text.tokenize import is_token

    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnsoundModel(f"words.txt: not UTF-8 at byte {error.start:,}") from None
    tokens = text.split("\n")
    if tokens.pop():
        raise UnsoundModel("words.txt: its last line has no end; it is truncated")
    if len(tokens) != card.n_tokens:
        raise UnsoundModel(f"words.txt: {len(tokens):,} tokens; {CARD} says {card.n_tokens:,}")
    seen: set[str] = set()
    known: dict[str, bool] = {}
    for line, token in enumerate(tokens, 1):
        words = token.split("_")
        if token in seen:
            raise UnsoundModel(f"words.txt, line {line:,}: a token that was there before")
        seen.add(token)
        if len(words) > MAX_LENGTH:
            raise UnsoundModel(f"words.txt, line {line:,}: {len(words)} words; a collocation has {MAX_LENGTH} at most")
        for word in words:
            if word not in known:
                known[word] = normal_form(word) == word and is_token(word, card.language)
            if not known[word] or (len(words) > 1 and not has_letters(word)):
                raise UnsoundModel(f"words.txt, line {line:,}: not a token as the tokenizer makes them of a text")
    lengths = np.bincount([token.count("_") + 1 for token in tokens], minlength=MAX_LENGTH + 1).tolist()
    if lengths[1:] != [card.n_words, card.n_bigrams, card.n_trigrams]:
        raise UnsoundModel(f"words.txt: {lengths[1:]} tokens of 1, 2 and 3 words, which is not what {CARD} says")
    return tokens


def check_array(name: str, array: Array, dtype: str, shape: tuple[int, ...]) -> None:
    """See that an array has the type and the shape that the format gives it."""
    if array.dtype != np.dtype(dtype) or array.shape != shape:
        raise UnsoundModel(
            f"{name}: {array.dtype} of shape {array.shape}; it must be {np.dtype(dtype)} of shape {shape}"
        )


def check_numbers(tokens: Sequence[str], counts: Array, pmi: Array) -> None:
    """See that counts, (V,), fall, PMI, (V,), is finite, and single words have none."""
    if (counts[1:] > counts[:-1]).any():
        first = int(np.argmax(counts[1:] > counts[:-1]))
        raise UnsoundModel(
            f"counts.npy: count {first + 2:,} is larger than the one before; tokens stand by falling count"
        )
    if not counts[-1]:
        raise UnsoundModel("counts.npy: a count of 0; every token of a model was seen")
    if not np.isfinite(pmi).all():
        raise UnsoundModel(f"pmi.npy: number {int(np.argmin(np.isfinite(pmi))) + 1:,} is not finite")
    if pmi[["_" not in token for token in tokens]].any():
        raise UnsoundModel("pmi.npy: a single word has a PMI; it must be 0")


def check_scales(name: str, vectors: Array, scales: Array) -> None:
    """See that rows (V, p) of int8 times scales (V,) are vectors of finite, moderate lengths."""
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise UnsoundModel(f"{name}: every scale must be finite and greater than 0")
    largest = max(
        float((np.abs(vectors[start : start + 8192].astype(np.int16)).max(axis=1) * scales[start : start + 8192]).max())
        for start in range(0, len(vectors), 8192)
    )
    if largest > LARGEST:
        raise UnsoundModel(f"{name}: a coordinate of {largest:g}; {LARGEST:g} is the largest")


def check_order(name: str, orders: Array, size: int) -> None:
    """See that orders, (2, n), are permutations of the n tokens, in the smallest type that holds them."""
    check_array(name, orders, "<u2" if size <= 2**16 else "<u4", (2, size))
    for number, order in enumerate(orders, 1):
        if not np.array_equal(np.sort(order), np.arange(size)):
            raise UnsoundModel(f"{name}: order {number} is not a permutation of the {size:,} tokens")


def check_structure(content: bytes) -> None:
    """See that structure.json has measurements by segmentation, or none."""
    try:
        given = json.loads(content)
        if not isinstance(given, dict):
            raise ValueError
        measured = {name: MeasuredStructure.model_validate(one) for name, one in given.items()}
    except (ValueError, RecursionError):  # pydantic's ValidationError is a ValueError
        raise UnsoundModel("structure.json: not measurements by segmentation") from None
    for name, one in measured.items():
        strategies = {strategy for strategy, segmentation in SEGMENTATION_OF.items() if segmentation == name}
        if not strategies or one.segmentation != name:
            raise UnsoundModel(f"structure.json: {shown(name)}: not the measurement of a segmentation")
        if any(set(part) != strategies for part in (one.policies, one.strategies, one.any_policy)):
            raise UnsoundModel(f"structure.json: {name}: not all of the strategies {', '.join(sorted(strategies))}")
        if not all(0 <= share <= 1 for share in _shares((one.strategies, one.any_policy))):
            raise UnsoundModel(f"structure.json: {name}: a share that does not lie between 0 and 1")


def _shares(parts: Iterable[Mapping[str, Any]]) -> Iterable[float]:
    for part in parts:
        for change in part.values():
            for share in change.to_dict().values():
                yield from share.values()
