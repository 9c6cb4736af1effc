"""The tokenizer of tokenize.py over Arrow buffers: the same tokens, sentences and normal forms, by a compiled scanner.

tokenize.py stays the definition; nothing here decides what a token is. The class of every character is taken from
its expressions, as this interpreter understands them, and normal forms that are more than lower-case ASCII come from
its ``normal_form``, once per distinct surface. The scanner reads UTF-8 bytes from left to right, so that no string is
made per token, and numbers the surfaces in a table of its own.

Why left to right is the same as the expressions:

* Every alternative of the token expression ends where a run of one class of characters ends, and what must follow it
  is never of that class; so giving characters back cannot help, and the longest run is the only candidate. The one
  exception, the last character of a URL, is searched from the end of the run. An e-mail address starts at a run of at
  most 64 characters that ``@`` follows; a longer run has no ``@`` within reach.
* No token holds white space and every sentence ends in white space or with the text, so tokens can be found without
  knowing sentences. A match of the boundary expression always ends where a run of white space ends, and there is at
  most one for each run; what stands before the run and what is in it decide whether the sentence ends.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lexveil.errors import RequestError
from lexveil.text.tokenize import _ABBREVIATIONS, _JOINER, _LETTER, normal_form
from lexveil.types import Bytes, Flags, Int32, Int64

Classes = npt.NDArray[np.uint16]
Hashes = npt.NDArray[np.uint64]
T = TypeVar("T", bound=np.generic)
F = TypeVar("F", bound=Callable[..., Any])

MAX_BYTES = 2**31 - 1  # of text in one call: positions and word numbers are 32 bits wide

# The classes of characters that the expressions of tokenize.py are made of, one bit each.
WORD, ALPHA, DIGIT, LETTER, JOINER, LOCAL, DOMAIN, MARK = 1, 2, 4, 8, 16, 32, 64, 128
SPACE, BREAK, STOP, CLOSER, CAPITAL, NO_URL, AFTER_URL = 256, 512, 1024, 2048, 4096, 8192, 16384
_PATTERNS = {
    WORD: r"\w",
    ALPHA: r"[^\W\d_]",
    DIGIT: r"\d",
    LETTER: _LETTER,
    JOINER: _JOINER,
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

# What the scanner keeps between two calls: the text and the byte it is at, tokens of the open sentence, and counts.
_TEXT, _AT, _SIZE, _N, _SENTENCES, _SURFACES = range(6)


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


def _kernel(function: F) -> F:
    """Compile a function that makes no array, without counting the uses of arrays.

    Numba counts every array in and out of use at every call, which would more than double the time of the scanner.
    Its own string routines are compiled like this.
    """
    options: dict[str, Any] = {"cache": True, "_nrt": False}  # its type hints leave the second out
    return cast(F, numba.njit(**options)(function))


def tokenize_texts(texts: pa.StringArray) -> Tokens:
    """Tokens of a batch of texts: those of ``tokenize.sentences``, as numbers.

    Args:
        texts: string or large_string array without nulls, at most 2 GiB of UTF-8.

    Raises:
        RequestError: if the array is of another type, too large, not valid UTF-8, or holds nulls.
    """
    return _tokens(*_buffers(texts), keep_spans=False)[0]


def spans_of_texts(texts: pa.StringArray) -> tuple[Tokens, Int32]:
    """The same tokens and the place of each: those of ``tokenize.token_spans``.

    Args:
        texts: as for ``tokenize_texts``.

    Returns:
        The tokens, and (n, 2) int32: start and end of each token, in characters from the start of its text.

    Raises:
        RequestError: as ``tokenize_texts``.
    """
    data, offsets = _buffers(texts)
    tokens, spans = _tokens(data, offsets, keep_spans=True)
    _to_characters(data, offsets, tokens.sentence_sizes, tokens.sentences_per_text, spans)
    return tokens, spans


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
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
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
        return np.zeros(0, np.uint8), np.zeros(len(texts) + 1, np.int64)
    return np.frombuffer(content, np.uint8, size, int(offsets[0])), offsets - offsets[0]


def _tokens(data: Bytes, offsets: Int64, keep_spans: bool) -> tuple[Tokens, Int32]:
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
    while not _scan(
        data, offsets, _classes(), _abbreviations(), state, ids, spans, sizes, per_text, slots, hashes, places
    ):
        if state[_N] == len(ids):
            ids, sizes, spans = _longer(ids), _longer(sizes), _longer(spans)
        else:
            hashes, places = _longer(hashes), _longer(places)
            slots = np.full(2 * len(hashes), -1, np.int32)
            _refill(slots, hashes[: state[_SURFACES]])
    # Copies, so that what was not used does not stay in memory.
    n = int(state[_N])
    ids, spans, sizes = ids[:n].copy(), spans[: n if keep_spans else 0].copy(), sizes[: state[_SENTENCES]].copy()
    words, surface_words = _words(data, places[: state[_SURFACES]])
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
def _abbreviations() -> Hashes:
    """The abbreviations as numbers: a byte for each letter. None is longer than seven letters."""
    packed = np.array(sorted(int.from_bytes(word.encode("ascii"), "big") for word in _ABBREVIATIONS), dtype=np.uint64)
    packed.flags.writeable = False
    return packed


@_kernel
def _scan(
    data: Bytes,
    offsets: Int64,
    classes: Classes,
    abbreviations: Hashes,
    state: Int64,
    ids: Int32,
    spans: Int32,
    sizes: Int32,
    per_text: Int32,
    slots: Int32,
    hashes: Hashes,
    places: Int32,
) -> bool:  # pragma: no cover - compiled
    """Find and number tokens until all texts are read, or until an array is full.

    Surfaces that differ only in the case of ASCII letters share a number: their normal forms are the same.

    Args:
        state: where to go on, and where it stopped: see ``_TEXT`` to ``_SURFACES``; zeros to begin with.
        ids: (capacity,) number of each token's surface.
        spans: (capacity, 2) bytes of ``data`` where each token starts and ends, or (0, 2) if they are not wanted.
        sizes: (capacity,) tokens by sentence.
        per_text: (t,) sentences by text, zeros to begin with.
        slots: number of a surface by its hash, -1 if free; open addressing; a power of two, twice ``len(hashes)``.
        hashes, places: (capacity of surfaces,) hash, and (., 2) first place in ``data``.

    Returns:
        Whether all texts were read.
    """
    n, n_sentences, n_surfaces = state[_N], state[_SENTENCES], state[_SURFACES]
    at, size = state[_AT], state[_SIZE]
    for text in range(state[_TEXT], len(offsets) - 1):
        begin, end = offsets[text], offsets[text + 1]
        at_sign = begin - 1
        while at < end:
            code, width = _decode(data, at)
            if classes[code] & SPACE:
                gap = at
                broken = False
                while at < end:
                    code, width = _decode(data, at)
                    if not classes[code] & SPACE:
                        break
                    broken |= (classes[code] & BREAK) != 0
                    at += width
                if size and _ends_sentence(data, begin, gap, broken, classes, abbreviations):
                    sizes[n_sentences] = size
                    n_sentences += 1
                    per_text[text] += 1
                    size = 0
                continue
            if n == len(ids) or n_surfaces == len(hashes):
                state[_TEXT], state[_AT], state[_SIZE] = text, at, size
                state[_N], state[_SENTENCES], state[_SURFACES] = n, n_sentences, n_surfaces
                return False

            if at_sign < at:
                at_sign = at
                while at_sign < end and data[at_sign] != 64:
                    at_sign += 1
            # 64 characters before an @ are at most 256 bytes.
            stop = _token_end(data, at, end, classes, at_sign < end and at_sign - at <= 256)
            value = _hash(data, at, stop)
            slot = _slot(data, at, stop, value, slots, hashes, places)
            surface = slots[slot]
            if surface < 0:
                surface = n_surfaces
                n_surfaces += 1
                slots[slot] = surface
                hashes[surface] = value
                places[surface, 0], places[surface, 1] = at, stop
            ids[n] = surface
            if len(spans):
                spans[n, 0], spans[n, 1] = at, stop
            n += 1
            size += 1
            at = stop
        if size:
            sizes[n_sentences] = size
            n_sentences += 1
            per_text[text] += 1
            size = 0
    state[_N], state[_SENTENCES], state[_SURFACES] = n, n_sentences, n_surfaces
    return True


@_kernel
def _decode(data: Bytes, at: int) -> tuple[np.int64, int]:  # pragma: no cover - compiled
    """Code point of the character at a byte, and its size in bytes. The text is valid UTF-8."""
    first = np.int64(data[at])
    if first < 0x80:
        return first, 1
    second = np.int64(data[at + 1]) & 0x3F
    if first < 0xE0:
        return (first & 0x1F) << 6 | second, 2
    third = np.int64(data[at + 2]) & 0x3F
    if first < 0xF0:
        return (first & 0x0F) << 12 | second << 6 | third, 3
    return (first & 0x07) << 18 | second << 12 | third << 6 | (np.int64(data[at + 3]) & 0x3F), 4


@_kernel
def _before(data: Bytes, at: int) -> int:  # pragma: no cover - compiled
    """First byte of the character that ends before ``at``."""
    at -= 1
    while data[at] & 0xC0 == 0x80:
        at -= 1
    return at


@_kernel
def _run(data: Bytes, at: int, end: int, classes: Classes, wanted: int) -> int:  # pragma: no cover - compiled
    """Where the run of characters of the wanted class that starts at ``at`` ends; ``at`` if there is none."""
    while at < end:
        code, width = _decode(data, at)
        if not classes[code] & wanted:
            break
        at += width
    return at


@_kernel
def _token_end(data: Bytes, at: int, end: int, classes: Classes, mail: bool) -> int:  # pragma: no cover - compiled
    """Where the token that starts at ``at`` ends: the alternatives of tokenize.py, in their order.

    Args:
        end: end of the text.
        mail: whether an ``@`` follows in the text.
    """
    code, width = _decode(data, at)
    first = classes[code]
    after = at + width
    if code == 104 or code == 119:  # h, w  # noqa: PLR1714 - a set would be made anew
        stop = _url_end(data, at, end, classes)
        if stop > at:
            return stop
    if mail and first & LOCAL:
        stop = _mail_end(data, at, end, classes)
        if stop > at:
            return stop
    if code == 64 or code == 35:  # @, #  # noqa: PLR1714
        if _run(data, after, end, classes, ALPHA) > after:
            return _run(data, after, end, classes, WORD)
        return after
    if first & LETTER:
        if first & DIGIT:
            stop = _number_end(data, at, end, classes)
            if stop > at:
                return stop
        if first & ALPHA and after < end and data[after] == 46:
            stop = _initials_end(data, at, end, classes)
            if stop > at:
                return stop
        while True:
            after = _run(data, after, end, classes, LETTER)
            if after == end:
                return after
            code, width = _decode(data, after)
            if not classes[code] & JOINER:
                return after
            stop = _run(data, after + width, end, classes, LETTER)
            if stop == after + width:
                return after
            after = stop
    if first & MARK:
        while after < end and data[after] == code:
            after += 1
    return after


@_kernel
def _url_end(data: Bytes, at: int, end: int, classes: Classes) -> int:  # pragma: no cover - compiled
    """End of the URL that starts at ``at``; ``at`` if there is none."""
    if end - at >= 4 and data[at] == 119 and data[at + 1] == 119 and data[at + 2] == 119 and data[at + 3] == 46:
        body = at + 4
    elif (
        end - at >= 7 and data[at] == 104 and data[at + 1] == 116 and data[at + 2] == 116 and data[at + 3] == 112
    ):  # http
        body = at + 5 if data[at + 4] == 115 else at + 4
        if end - body < 3 or data[body] != 58 or data[body + 1] != 47 or data[body + 2] != 47:
            return at
        body += 3
    else:
        return at
    stop = body
    while stop < end:
        code, width = _decode(data, stop)
        if classes[code] & NO_URL:
            break
        stop += width
    while stop > body:
        last = _before(data, stop)
        if not classes[_decode(data, last)[0]] & AFTER_URL:
            return stop
        stop = last
    return at


@_kernel
def _mail_end(data: Bytes, at: int, end: int, classes: Classes) -> int:  # pragma: no cover - compiled
    """End of the e-mail address that starts at ``at``; ``at`` if there is none."""
    stop = at
    for _ in range(64):
        if stop == end:
            return at
        code, width = _decode(data, stop)
        if not classes[code] & LOCAL:
            break
        stop += width
    if stop == end or data[stop] != 64:
        return at
    last = _run(data, stop + 1, end, classes, DOMAIN)
    if last == stop + 1:
        return at
    found = at
    while last < end and data[last] == 46:
        stop = _run(data, last + 1, end, classes, DOMAIN)
        if stop == last + 1:
            break
        last = found = stop
    return found


@_kernel
def _number_end(data: Bytes, at: int, end: int, classes: Classes) -> int:  # pragma: no cover - compiled
    """End of the digits with separators between them that start at ``at``; ``at`` if there is no separator."""
    found = at
    stop = _run(data, at, end, classes, DIGIT)
    while stop < end and (data[stop] == 46 or data[stop] == 44 or data[stop] == 58):  # . , :
        last = _run(data, stop + 1, end, classes, DIGIT)
        if last == stop + 1:
            break
        stop = found = last
    return found


@_kernel
def _initials_end(data: Bytes, at: int, end: int, classes: Classes) -> int:  # pragma: no cover - compiled
    """End of the letters with a full stop after each that start at ``at``; ``at`` if there are fewer than two."""
    count = 0
    stop = at
    while stop < end:
        code, width = _decode(data, stop)
        if not classes[code] & ALPHA or stop + width == end or data[stop + width] != 46:
            break
        stop += width + 1
        count += 1
    return stop if count > 1 else at


@_kernel
def _ends_sentence(
    data: Bytes, begin: int, gap: int, broken: bool, classes: Classes, abbreviations: Hashes
) -> bool:  # pragma: no cover - compiled
    """Whether a sentence ends with the white space that starts at ``gap``.

    Args:
        begin: start of the text.
        broken: whether a line break is in the white space.
    """
    at = gap
    code = np.int64(0)
    while at > begin:
        at = _before(data, at)
        code, _ = _decode(data, at)
        if not classes[code] & CLOSER:
            break
    if not classes[code] & STOP:
        return broken
    if code != 46:
        return True
    # The full stop at ``at``: not after an initial or an abbreviation, whatever white space follows.
    packed = np.uint64(0)
    count = 0
    word = at
    while word > begin and count < 8:
        last = _before(data, word)
        code, _ = _decode(data, last)
        if not classes[code] & ALPHA:
            break
        word = last
        packed |= np.uint64(code | 32 if code < 128 else 255) << np.uint64(8 * count)
        count += 1
    if count == 0:
        return True
    if count == 1:
        code, _ = _decode(data, word)
        return not classes[code] & CAPITAL or code == 73
    for abbreviation in abbreviations:  # noqa: SIM110 - a generator cannot be compiled
        if abbreviation == packed:
            return False
    return True


@_kernel
def _lower(byte: np.uint8) -> np.uint8:  # pragma: no cover - compiled
    """ASCII letters in lower case, other bytes as they are."""
    return byte + np.uint8(32) if 65 <= byte <= 90 else byte


@_kernel
def _hash(data: Bytes, at: int, stop: int) -> np.uint64:  # pragma: no cover - compiled
    """FNV-1a over the lower-cased bytes, its high bits folded into the low ones that choose a slot."""
    value = np.uint64(0xCBF29CE484222325)
    for i in range(at, stop):
        value = (value ^ np.uint64(_lower(data[i]))) * np.uint64(0x100000001B3)
    return value ^ value >> np.uint64(32)


@_kernel
def _slot(
    data: Bytes, at: int, stop: int, value: np.uint64, slots: Int32, hashes: Hashes, places: Int32
) -> np.int64:  # pragma: no cover - compiled
    """The slot of a surface, or the free one where it belongs. Equal means byte for byte, not only by hash."""
    mask = len(slots) - 1
    slot = np.int64(value & np.uint64(mask))
    while True:
        surface = slots[slot]
        if surface < 0:
            return slot
        if hashes[surface] == value:
            start = np.int64(places[surface, 0])
            if places[surface, 1] - start == stop - at:
                i = 0
                while i < stop - at and _lower(data[start + i]) == _lower(data[at + i]):
                    i += 1
                if i == stop - at:
                    return slot
        slot = (slot + 1) & mask


@_kernel
def _refill(slots: Int32, hashes: Hashes) -> None:  # pragma: no cover - compiled
    """Put surfaces 0, 1, ... into a table of free slots."""
    mask = len(slots) - 1
    for surface in range(len(hashes)):
        slot = np.int64(hashes[surface] & np.uint64(mask))
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = surface


@_kernel
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
            letters[to] = _lower(data[i])
            same &= data[i] < 128 and data[i] != 95
            to += 1
        plain[surface] = same


@_kernel
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
