"""The one tokenizer: used to count, to train and to privatize, so that the three cannot drift apart.

It is lossless. Every token knows its character span, spans are in order and do not overlap, and between them
stands nothing but white space: text = gaps and tokens interleaved. What is counted and looked up is the token's
normal form (normal_forms.py).

Sentences end at a line break, or after ``.``, ``!``, ``?`` or ``…`` with its closing quotes when white space follows,
unless the full stop belongs to an initial or a common abbreviation. No token crosses a sentence boundary.

The language decides two things and no more: which full stops end no sentence, and at which apostrophes a word is cut
(languages/base.py). A text is cut by the language of the model that it is looked up in, never by its own.

A compiled scanner (scanner.py) reads the UTF-8 bytes of Arrow buffers from left to right, so that no string is made per
token, and numbers the surfaces in a table of its own. The class of every character is taken from the expressions below,
as this interpreter understands them; normal forms that are more than lower-case ASCII come from ``normal_form``, once
per distinct surface.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lexveil.errors import RequestError
from lexveil.text.kernels.characters import (
    AFTER_URL,
    ALPHA,
    BREAK,
    CAPITAL,
    CLOSER,
    DIGIT,
    DOMAIN,
    JOINER,
    LETTER,
    LOCAL,
    MARK,
    NO_URL,
    SPACE,
    STOP,
    WORD,
    Classes,
    Hashes,
    kernel,
)
from lexveil.text.kernels.surfaces import lower, refill
from lexveil.text.languages import DEFAULT, language_of
from lexveil.text.normal_forms import normal_form
from lexveil.text.scanner import N_SENTENCES, N_SURFACES, N_TOKENS, Rules, scan
from lexveil.types import Bytes, Flags, Int32, Int64

T = TypeVar("T", bound=np.generic)

MAX_BYTES = 2**31 - 1  # of text in one call: positions and word numbers are 32 bits wide

# Marks that follow a base letter when text is not composed; ``\w`` leaves them out.
MARKS_AFTER = (
    r"\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u064b-\u065f\u0670\u06d6-\u06dc\u0900-\u0903\u093a-\u094f"
    r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u200c\u200d\u20d0-\u20ff\ufe00-\ufe0f"
)
# The expression of each class of characters.
_PATTERNS = {
    WORD: r"\w",
    ALPHA: r"[^\W\d_]",
    DIGIT: r"\d",
    LETTER: rf"[^\W_]|[{MARKS_AFTER}]",
    JOINER: r"['’\-‐‑]",
    LOCAL: r"[\w.+-]",
    DOMAIN: r"[\w-]",
    MARK: r"[.\-!?*=~_]",
    SPACE: r"\s",
    BREAK: r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]",
    STOP: r"[.!?…]",
    CLOSER: r"[\"'”’)\]]",
    NO_URL: r"[\s<>\"]",
    AFTER_URL: r"[\s<>\"'’”.,;:!?)\]}]",
}


@dataclass(frozen=True, slots=True)
class Tokens:
    """The n tokens of a batch of t texts, in text order.

    Attributes:
        ids: (n,) int32, index into ``words``.
        words: the distinct normal forms, in order of first appearance.
        sentence_sizes: (s,) int32, tokens of each sentence; sentences without tokens are left out.
        sentences_per_text: (t,) int32, how many of the s sentences belong to each text.
    """

    ids: Int32
    words: pa.StringArray
    sentence_sizes: Int32
    sentences_per_text: Int32


def tokenize_texts(texts: pa.StringArray, language: str = DEFAULT) -> Tokens:
    """Tokens of a batch of texts, as numbers.

    Args:
        texts: string or large_string array without nulls, at most 2 GiB of UTF-8.
        language: by whose rules they are cut.

    Raises:
        RequestError: if the array is of another type, too large, not valid UTF-8, or holds nulls.
    """
    return _tokens(*_buffers(texts), _rules(language), keep_spans=False)[0]


def spans_of_texts(texts: pa.StringArray, language: str = DEFAULT) -> tuple[Tokens, Int32]:
    """The same tokens and the place of each.

    Args:
        texts, language: as for ``tokenize_texts``.

    Returns:
        The tokens, and (n, 2) int32: start and end of each token, in characters from the start of its text.

    Raises:
        RequestError: as ``tokenize_texts``.
    """
    data, offsets = _buffers(texts)
    tokens, spans = _tokens(data, offsets, _rules(language), keep_spans=True)
    _to_characters(data, offsets, tokens.sentence_sizes, tokens.sentences_per_text, spans)
    return tokens, spans


def sentences(text: str, language: str = DEFAULT) -> list[list[str]]:
    """Normal forms of one text, sentence by sentence; sentences without tokens are left out."""
    tokens = tokenize_texts(pa.array([text], pa.large_string()), language)
    forms = tokens.words.take(pa.array(tokens.ids)).to_pylist()
    ends = np.cumsum(tokens.sentence_sizes).tolist()
    return [forms[start:end] for start, end in pairwise([0, *ends])]


def is_token(text: str, language: str = DEFAULT) -> bool:
    """Whether a text of this language can hold this as one token; what is elided is one before a word only."""
    if text.isalnum():  # most words, quickly
        return True
    form = normal_form(text)
    return sentences(text, language) == [[form]] or (form[-1] == "'" and form[:-1] in language_of(language).elisions)


def _buffers(texts: pa.StringArray) -> tuple[Bytes, Int64]:
    """The bytes of all texts, one after the other, and the (t + 1,) positions where each starts."""
    if not isinstance(texts, pa.StringArray | pa.LargeStringArray):
        raise RequestError(
            f"texts to tokenize are a {type(texts).__name__} of {getattr(texts, 'type', 'objects')}; "
            "pass one StringArray or LargeStringArray (combine_chunks, cast)"
        )
    if texts.null_count:
        raise RequestError(
            f"{texts.null_count:,} of {len(texts):,} texts to tokenize are null; drop them, or fill them with ''"
        )
    if not len(texts):
        return _fixed(np.zeros(0, np.uint8)), np.zeros(1, np.int64)
    try:
        texts.validate(full=True)  # the scanner trusts positions and multi-byte characters
    except pa.ArrowInvalid as error:
        raise RequestError("texts to tokenize are not valid UTF-8; read them again with their own encoding") from error
    width = np.int32 if isinstance(texts, pa.StringArray) else np.int64
    _, positions, content = texts.buffers()
    offsets = np.frombuffer(positions, width)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    size = int(offsets[-1] - offsets[0])
    if size > MAX_BYTES:
        raise RequestError(
            f"{size:,} bytes of text to tokenize at once; the limit is {MAX_BYTES:,}: pass slices of the array"
        )
    if not size:
        return _fixed(np.zeros(0, np.uint8)), np.zeros(len(texts) + 1, np.int64)
    return _fixed(np.frombuffer(content, np.uint8, size, int(offsets[0]))), offsets - offsets[0]


def _fixed(data: Bytes) -> Bytes:
    """The same array, read-only: Arrow has buffers of both kinds, for each of which all kernels would be compiled."""
    data.flags.writeable = False
    return data


def _tokens(data: Bytes, offsets: Int64, rules: Rules, keep_spans: bool) -> tuple[Tokens, Int32]:
    """Scan and number; the spans are (n, 2) in bytes of ``data``, or (0, 2) if they are not kept.

    The scanner fills arrays that are made here and stops where one is full, because an array that could be replaced
    inside it would be counted in and out of use for every token.
    """
    ids = np.empty(len(data) // 4 + 64, np.int32)
    sizes = np.empty_like(ids)
    spans = np.empty((len(ids) if keep_spans else 0, 2), np.int32)
    per_text = np.zeros(len(offsets) - 1, np.int32)
    hashes = np.empty(1 << 12, np.uint64)
    places = np.empty((len(hashes), 2), np.int32)
    slots = np.full(2 * len(hashes), -1, np.int32)
    state = np.zeros(6, np.int64)
    while not scan(data, offsets, _classes(), rules, state, ids, spans, sizes, per_text, slots, hashes, places):
        if state[N_TOKENS] == len(ids):
            ids, sizes, spans = _longer(ids), _longer(sizes), _longer(spans)
        else:
            hashes, places = _longer(hashes), _longer(places)
            slots = np.full(2 * len(hashes), -1, np.int32)
            refill(slots, hashes[: state[N_SURFACES]])
    # Copies, so that what was not used does not stay in memory.
    n = int(state[N_TOKENS])
    ids, spans, sizes = ids[:n].copy(), spans[: n if keep_spans else 0].copy(), sizes[: state[N_SENTENCES]].copy()
    words, surface_words = _words(data, places[: state[N_SURFACES]])
    return Tokens(ids if surface_words is None else surface_words[ids], words, sizes, per_text), spans


def _longer(array: npt.NDArray[T]) -> npt.NDArray[T]:
    """The array with room for as much again."""
    return np.concatenate((array, np.empty_like(array)))


def _words(data: Bytes, places: Int32) -> tuple[pa.StringArray, Int32 | None]:
    """The distinct normal forms of the surfaces at ``places``, and the form of each surface, None for the same."""
    ends = np.zeros(len(places) + 1, np.int32)
    np.cumsum(places[:, 1] - places[:, 0], out=ends[1:])
    letters = np.empty(int(ends[-1]), np.uint8)
    plain = np.empty(len(places), np.bool_)
    _lower_surfaces(data, places, ends, _classes(), letters, plain)
    words = pa.StringArray.from_buffers(len(places), pa.py_buffer(ends), pa.py_buffer(letters))
    if plain.all():
        return words, None
    forms = [normal_form(surface) for surface in words.filter(pa.array(~plain)).to_pylist()]
    words = pc.replace_with_mask(words, pa.array(~plain), pa.array(forms, pa.string()))
    # Two surfaces may have one form, e.g. don't with a straight and with a curly apostrophe.
    encoded = words.dictionary_encode()
    return encoded.dictionary, encoded.indices.to_numpy()


@functools.cache
def _classes() -> Classes:
    """(1114112,) the classes of every code point, in the Unicode version of this interpreter's ``re``."""
    points = np.arange(0x110000, dtype=np.uint32)
    # Beyond the first plane only letters and digits have a class; of the million other code points there, none is read.
    beyond = re.finditer(r"\w+", _text(points[0x10000:]))
    points = np.concatenate([points[:0x10000], *(points[0x10000 + m.start() : 0x10000 + m.end()] for m in beyond)])
    characters = _text(points)
    found = np.zeros(len(points), dtype=np.uint16)
    for bit, pattern in _PATTERNS.items():
        for run in re.finditer(f"(?:{pattern})+", characters):
            found[run.start() : run.end()] |= bit
    found[[at for at in np.flatnonzero(found & ALPHA).tolist() if characters[at].isupper()]] |= CAPITAL
    classes = np.zeros(0x110000, dtype=np.uint16)
    classes[points] = found
    classes.flags.writeable = False
    return classes


def _text(points: npt.NDArray[np.uint32]) -> str:
    return points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


@functools.cache
def _rules(language: str) -> Rules:
    """What the scanner needs of a language: its words as numbers, a byte for each letter."""
    known = language_of(language)
    words = (known.abbreviations, known.elisions, known.trailing, known.leading)
    numbers = [sorted(int.from_bytes(word.encode("latin-1"), "big") for word in some) for some in words]
    flags = [ord(known.alone) if known.alone else 0, int(known.has_ordinals)]
    first, second, third, fourth, last = (_numbers(some) for some in (*numbers, flags))
    return first, second, third, fourth, last


def _numbers(values: list[int]) -> Hashes:
    array = np.array(values, dtype=np.uint64)
    array.flags.writeable = False
    return array


@kernel
def _lower_surfaces(
    data: Bytes, places: Int32, ends: Int32, classes: Classes, letters: Bytes, plain: Flags
) -> None:  # pragma: no cover - compiled
    """Write surfaces one after the other, ASCII letters in lower case, and whether each is then its normal form.

    It is for ASCII without ``_``, unless marks are repeated: only a letter or digit first, or a single character, is
    known not to be such a run.
    """
    for surface in range(len(places)):
        at, stop = places[surface]
        to = ends[surface]
        same = data[at] < 128 and (stop - at == 1 or (classes[data[at]] & WORD) != 0)
        for i in range(at, stop):
            letters[to] = lower(data[i])
            same &= data[i] < 128 and data[i] != 95
            to += 1
        plain[surface] = same


@kernel
def _to_characters(
    data: Bytes, offsets: Int64, sizes: Int32, per_text: Int32, spans: Int32
) -> None:  # pragma: no cover - compiled
    """Turn spans in bytes of all texts into spans in characters of each, in place."""
    sentence = token = 0
    for text in range(len(per_text)):
        at = offsets[text]
        bits = np.uint8(0)
        for i in range(at, offsets[text + 1]):
            bits |= data[i]
        characters = 0
        for _ in range(per_text[text]):
            for _ in range(sizes[sentence]):
                for side in range(2):
                    to = np.int64(spans[token, side])
                    if bits < 128:
                        characters += to - at
                    else:
                        for i in range(at, to):
                            characters += data[i] & 0xC0 != 0x80
                    at = to
                    spans[token, side] = characters
                token += 1
            sentence += 1
