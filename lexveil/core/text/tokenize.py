"""The tokenizer. Counting, training and privatizing all use it, so that the three always agree.

Tokenization is lossless. Every token has its character span, spans are in order and do not overlap,
and there is only white space between them. A token is counted and looked up by its normal form
(normal_forms.py).

Sentences end at a line break, or after ``.``, ``!``, ``?`` or ``…`` with its closing quotes when
white space follows, unless the full stop belongs to an initial or a common abbreviation. No token
crosses a sentence boundary.

The language determines only two things: which full stops end no sentence, and at which apostrophes
a word is cut (languages/base.py). It is the language of the model, never the language of the text.

A compiled scanner (scanner.py) reads the UTF-8 bytes of Arrow buffers from left to right, so that
no Python string is created per token, and Arrow numbers the tokens. The class of every character
comes from the expressions in kernels/characters.py, evaluated by this interpreter. If a normal form
is not simply the lower-case ASCII surface, ``normal_form`` computes it, once per distinct surface.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lexveil.base.errors import RequestError
from lexveil.base.types import Bytes, Int32, Int64
from lexveil.core.text.kernels.characters import Hashes, character_classes, uncounted
from lexveil.core.text.languages import DEFAULT, language_of
from lexveil.core.text.normal_forms import normal_form
from lexveil.core.text.scanner import Rules, scan
from lexveil.core.text.strings import letters_of

MAX_BYTES = 2**31 - 1  # most bytes of text in one call: positions and word numbers have 32 bits
# Lower-case surfaces that are their own normal form: ASCII without ``_`` that is not a run of one
# mark. A surface that begins with a letter or a digit, or is a single character, is not such a run.
PLAIN = r"^(?s:[a-z0-9][\x00-\x5e\x60-\x7f]*|[\x00-\x5e\x60-\x7f])$"


@dataclass(frozen=True, slots=True)
class TokenizedTexts:
    """Tokenized batch of t texts, with n tokens in text order.

    Attributes:
        ids: (n,) int32, index into ``words``.
        words: the distinct normal forms, in order of first appearance.
        sentence_sizes: (s,) int32, tokens of each sentence; sentences without tokens are left out.
        sentences_per_text: (t,) int32, how many of the s sentences belong to each text.
        spans: (n, 2) int32, start and end of each token, in characters from the start of its text;
            (0, 2) if spans were not requested.
    """

    ids: Int32
    words: pa.StringArray
    sentence_sizes: Int32
    sentences_per_text: Int32
    spans: Int32

    @property
    def forms(self) -> list[str]:
        """The distinct normal forms as Python strings."""
        forms: list[str] = self.words.to_pylist()
        return forms


def tokenize_texts(
    texts: pa.StringArray, language: str = DEFAULT, *, spans: bool = False
) -> TokenizedTexts:
    """Tokenize a batch of texts and number their words.

    Args:
        texts: string or large_string array without nulls, at most 2 GiB of UTF-8.
        language: code of the language whose rules apply.
        spans: whether to return the character span of each token.

    Raises:
        RequestError: if the array has another type, is too large, is not valid UTF-8, or contains
            nulls.
    """
    data, offsets = _buffers(texts)
    per_text = np.empty(len(texts), np.int32)
    for room in (
        len(data) // 3 + 64,
        len(data),
    ):  # least bytes per token: few texts have shorter tokens
        places = np.empty((room, 2), np.int32)
        sizes = np.empty(room, np.int32)
        n = scan(data, offsets, character_classes(), _rules(language), places, sizes, per_text)
        if n >= 0:
            break
    # a copy releases the unused part of the buffer
    places = places[:n]
    sizes = sizes[: per_text.sum()].copy()
    ids, words = _words(data, places)
    places = (
        _in_characters(data, offsets, sizes, per_text, places)
        if spans
        else np.empty((0, 2), np.int32)
    )
    return TokenizedTexts(ids, words, sizes, per_text, places)


def sentences(text: str, language: str = DEFAULT) -> list[list[str]]:
    """Tokenize one text: return the normal forms of its tokens, sentence by sentence; sentences
    without tokens are left out.
    """
    tokens = tokenize_texts(pa.array([text], pa.large_string()), language)
    forms = tokens.words.take(pa.array(tokens.ids)).to_pylist()
    ends = np.cumsum(tokens.sentence_sizes).tolist()
    return [forms[start:end] for start, end in pairwise([0, *ends])]


def is_token(text: str, language: str = DEFAULT) -> bool:
    """Return whether a text is exactly one token in this language. An elided word, which is a token
    only before another word, counts as one.
    """
    if text.isalnum():  # fast path for most words
        return True
    form = normal_form(text)
    return sentences(text, language) == [[form]] or (
        form[-1] == "'" and form[:-1] in language_of(language).elisions
    )


def _buffers(texts: pa.StringArray) -> tuple[Bytes, Int64]:
    """Return the UTF-8 bytes of all texts, one after the other, and (t + 1,) the position of the
    first byte of each text.
    """
    if not isinstance(texts, pa.StringArray | pa.LargeStringArray):
        raise RequestError(
            f"texts to tokenize are a {type(texts).__name__} of "
            f"{getattr(texts, 'type', 'objects')}; "
            "pass one StringArray or LargeStringArray (combine_chunks, cast)"
        )
    if texts.null_count:
        raise RequestError(
            f"{texts.null_count:,} of {len(texts):,} texts to tokenize are null; drop them, "
            "or fill them with ''"
        )
    try:
        texts.validate(full=True)  # the scanner does not check positions and multi-byte characters
    except pa.ArrowInvalid as error:
        raise RequestError(
            "texts to tokenize are not valid UTF-8; read them again with their own encoding"
        ) from error
    letters, offsets = letters_of(texts.cast(pa.large_string()))
    data = letters[offsets[0] : offsets[-1]]
    if len(data) > MAX_BYTES:
        raise RequestError(
            f"{len(data):,} bytes of text to tokenize at once; the limit is {MAX_BYTES:,}: "
            "pass slices of the array"
        )
    # Arrow has read-only and writable buffers; numba would compile the kernels for each kind
    data.flags.writeable = False
    return data, offsets - offsets[0]


def _words(data: Bytes, spans: Int32) -> tuple[Int32, pa.StringArray]:
    """Number the words: return the index of each token's normal form, and the distinct normal
    forms in order of first appearance.
    """
    ends = np.zeros(len(spans) + 1, np.int32)
    np.cumsum(spans[:, 1] - spans[:, 0], out=ends[1:])
    letters = np.empty(int(ends[-1]), np.uint8)
    _lower(data, spans, letters)
    surfaces = pa.StringArray.from_buffers(
        len(spans), pa.py_buffer(ends), pa.py_buffer(letters)
    ).dictionary_encode()
    ids = surfaces.indices.to_numpy()
    words = surfaces.dictionary
    plain = pc.match_substring_regex(words, PLAIN)
    if pc.all(plain, min_count=0).as_py():
        return ids, words
    others = pc.invert(plain)
    forms = [normal_form(surface) for surface in words.filter(others).to_pylist()]
    # Two surfaces may have one form, e.g. don't with a straight and with a curly apostrophe.
    words = pc.replace_with_mask(words, others, pa.array(forms, pa.string())).dictionary_encode()
    return words.indices.to_numpy()[ids], words.dictionary


@functools.cache
def _rules(language: str) -> Rules:
    """Return the tokenizer rules of a language for the scanner. They encode words as numbers, one
    byte per letter.
    """
    known = language_of(language)

    def packed(words: frozenset[str]) -> Hashes:
        numbers = np.array(
            sorted(int.from_bytes(word.encode("latin-1"), "big") for word in words), dtype=np.uint64
        )
        numbers.flags.writeable = False
        return numbers

    return Rules(
        packed(known.abbreviations),
        packed(known.elisions),
        packed(known.trailing),
        packed(known.leading),
        ord(known.alone or "\0"),
        known.has_ordinals,
    )


@uncounted
def _lower(data: Bytes, spans: Int32, letters: Bytes) -> None:  # pragma: no cover - compiled
    """Write the bytes of all tokens one after the other into ``letters``, with ASCII letters in
    lower case.
    """
    to = 0
    for token in range(len(spans)):
        for i in range(spans[token, 0], spans[token, 1]):
            letters[to] = data[i] + np.uint8(32) if 65 <= data[i] <= 90 else data[i]
            to += 1


def _in_characters(
    data: Bytes, offsets: Int64, sizes: Int32, per_text: Int32, spans: Int32
) -> Int32:
    """Convert token spans from bytes of the buffer to characters of each text."""
    starts = offsets[:-1].astype(np.int32)
    if data.max(initial=0) >= 128:
        before = np.zeros(len(data) + 1, np.int32)  # number of characters before each byte
        np.cumsum((data & 0xC0) != 0x80, dtype=np.int32, out=before[1:])
        starts = before[starts]
        spans = before[spans]
    in_characters: Int32 = spans - np.repeat(np.repeat(starts, per_text), sizes)[:, None]
    return in_characters
