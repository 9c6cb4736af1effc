"""The compiled scanner behind tokenize.py: UTF-8 bytes to tokens, sentences and numbers, from left to right.

Why left to right is the same as the expressions of tests/text/reference_tokenizer.py:

* Every alternative of the token expression ends where a run of one class of characters ends, and what must follow it
  is never of that class; so giving characters back cannot help, and the longest run is the only candidate. The one
  exception, the last character of a URL, is searched from the end of the run. What a language cuts at apostrophes ends
  after a whole run of letters and the apostrophe, and what follows it is looked at, not taken. An e-mail address
  starts at a run of at most 64 characters that ``@`` follows; a longer run has no ``@`` within reach.
* No token holds white space and every sentence ends in white space or with the text, so tokens can be found without
  knowing sentences. A match of the boundary expression always ends where a run of white space ends, and there is at
  most one for each run; what stands before the run and what is in it decide whether the sentence ends.
"""

from __future__ import annotations

import numpy as np

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
    before,
    decode,
    kernel,
    run,
)
from lexveil.text.kernels.surfaces import find_slot, hash_of
from lexveil.text.languages.base import LONGEST
from lexveil.types import Bytes, Int32, Int64

# Of a language: abbreviations, elisions, trailing, leading, and what is no word; see ``languages.base.Language``.
Rules = tuple[Hashes, Hashes, Hashes, Hashes, Hashes]

ABBREVIATIONS, ELISIONS, TRAILING, LEADING, FLAGS = range(5)
ALONE, ORDINALS = range(2)

# What the scanner keeps between two calls: the text and the byte it is at, tokens of the open sentence, and counts.
_TEXT, _AT, _SIZE, N_TOKENS, N_SENTENCES, N_SURFACES = range(6)


@kernel
def scan(
    data: Bytes,
    offsets: Int64,
    classes: Classes,
    rules: Rules,
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
        state: where to go on, and where it stopped: see ``_TEXT`` to ``N_SURFACES``; zeros to begin with.
        ids: (capacity,) number of each token's surface.
        spans: (capacity, 2) bytes of ``data`` where each token starts and ends, or (0, 2) if they are not wanted.
        sizes: (capacity,) tokens by sentence.
        per_text: (t,) sentences by text, zeros to begin with.
        slots: number of a surface by its hash, -1 if free; open addressing; a power of two, twice ``len(hashes)``.
        hashes, places: (capacity of surfaces,) hash, and (., 2) first place in ``data``.

    Returns:
        Whether all texts were read.
    """
    # A tuple of arrays is handed on by value, which costs more than a token: only languages that cut do it.
    abbreviations, flags = rules[ABBREVIATIONS], rules[FLAGS]
    cuts = len(rules[ELISIONS]) + len(rules[TRAILING]) + len(rules[LEADING]) > 0
    n, n_sentences, n_surfaces = state[N_TOKENS], state[N_SENTENCES], state[N_SURFACES]
    at, size = state[_AT], state[_SIZE]
    for text in range(state[_TEXT], len(offsets) - 1):
        begin, end = offsets[text], offsets[text + 1]
        at_sign = begin - 1
        while at < end:
            code, width = decode(data, at)
            if classes[code] & SPACE:
                gap = at
                broken = False
                while at < end:
                    code, width = decode(data, at)
                    if not classes[code] & SPACE:
                        break
                    broken |= (classes[code] & BREAK) != 0
                    at += width
                if size and _ends_sentence(data, begin, gap, broken, classes, abbreviations, flags):
                    sizes[n_sentences] = size
                    n_sentences += 1
                    per_text[text] += 1
                    size = 0
                continue
            if n == len(ids) or n_surfaces == len(hashes):
                state[_TEXT], state[_AT], state[_SIZE] = text, at, size
                state[N_TOKENS], state[N_SENTENCES], state[N_SURFACES] = n, n_sentences, n_surfaces
                return False

            if at_sign < at:
                at_sign = at
                while at_sign < end and data[at_sign] != 64:
                    at_sign += 1
            # 64 characters before an @ are at most 256 bytes.
            stop = _cut_end(data, at, end, classes, rules) if cuts else at
            if stop == at:
                stop = _token_end(data, at, end, classes, at_sign < end and at_sign - at <= 256)
            value = hash_of(data, at, stop)
            slot = find_slot(data, at, stop, value, slots, hashes, places)
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
    state[N_TOKENS], state[N_SENTENCES], state[N_SURFACES] = n, n_sentences, n_surfaces
    return True


@kernel
def _token_end(data: Bytes, at: int, end: int, classes: Classes, mail: bool) -> int:  # pragma: no cover - compiled
    """Where the token that starts at ``at`` ends: the alternatives of tokenize.py, in their order.

    Args:
        end: end of the text.
        mail: whether an ``@`` follows in the text.
    """
    code, width = decode(data, at)
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
        if run(data, after, end, classes, ALPHA) > after:
            return run(data, after, end, classes, WORD)
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
            after = run(data, after, end, classes, LETTER)
            if after == end:
                return after
            code, width = decode(data, after)
            if not classes[code] & JOINER:
                return after
            stop = run(data, after + width, end, classes, LETTER)
            if stop == after + width:
                return after
            after = stop
    if first & MARK:
        while after < end and data[after] == code:
            after += 1
    return after


@kernel
def _cut_end(data: Bytes, at: int, end: int, classes: Classes, rules: Rules) -> int:  # pragma: no cover - compiled
    """End of the token at ``at`` that the language cuts at an apostrophe; ``at`` if there is none.

    No alternative that stands before these begins like them: with letters and an apostrophe, or with one.
    """
    code, width = decode(data, at)
    if code == 39 or code == 0x2019:  # noqa: PLR1714 - a set would be made anew
        stop = run(data, at + width, end, classes, LETTER)
        if not _is_in(rules[LEADING], _packed(data, at + width, stop)):
            return at
        while stop < end:  # 's-Hertogenbosch
            code, width = decode(data, stop)
            if not classes[code] & JOINER:
                break
            after = run(data, stop + width, end, classes, LETTER)
            if after == stop + width:
                break
            stop = after
        return stop
    stop = run(data, at, end, classes, LETTER)
    if stop == end:
        return at
    code, width = decode(data, stop)
    if code != 39 and code != 0x2019:  # noqa: PLR1714
        return at
    after = stop + width
    follows = after < end and (classes[decode(data, after)[0]] & LETTER) != 0
    words = rules[ELISIONS] if follows else rules[TRAILING]
    return after if _is_in(words, _packed(data, at, stop)) else at


@kernel
def _is_in(words: Hashes, packed: np.uint64) -> bool:  # pragma: no cover - compiled
    """Whether a packed word is one of these."""
    for word in words:  # noqa: SIM110 - a generator cannot be compiled
        if word == packed:
            return True
    return False


@kernel
def _folded(code: np.int64) -> np.uint64:  # pragma: no cover - compiled
    """A letter as one byte: Latin-1 in lower case; 1, which is no letter, for any other."""
    if code < 128 or 0xC0 <= code <= 0xDE:
        return np.uint64(code | 32)
    return np.uint64(code if code < 256 else 1)


@kernel
def _packed(data: Bytes, at: int, stop: int) -> np.uint64:  # pragma: no cover - compiled
    """The letters from ``at`` to ``stop`` as a number, a byte for each; 0, which is no word, if there are too many."""
    packed = np.uint64(0)
    count = 0
    while at < stop:
        code, width = decode(data, at)
        packed = packed << np.uint64(8) | _folded(code)
        count += 1
        if count > LONGEST:
            return np.uint64(0)
        at += width
    return packed


@kernel
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
        code, width = decode(data, stop)
        if classes[code] & NO_URL:
            break
        stop += width
    while stop > body:
        last = before(data, stop)
        if not classes[decode(data, last)[0]] & AFTER_URL:
            return stop
        stop = last
    return at


@kernel
def _mail_end(data: Bytes, at: int, end: int, classes: Classes) -> int:  # pragma: no cover - compiled
    """End of the e-mail address that starts at ``at``; ``at`` if there is none."""
    stop = at
    for _ in range(64):
        if stop == end:
            return at
        code, width = decode(data, stop)
        if not classes[code] & LOCAL:
            break
        stop += width
    if stop == end or data[stop] != 64:
        return at
    last = run(data, stop + 1, end, classes, DOMAIN)
    if last == stop + 1:
        return at
    found = at
    while last < end and data[last] == 46:
        stop = run(data, last + 1, end, classes, DOMAIN)
        if stop == last + 1:
            break
        last = found = stop
    return found


@kernel
def _number_end(data: Bytes, at: int, end: int, classes: Classes) -> int:  # pragma: no cover - compiled
    """End of the digits with separators between them that start at ``at``; ``at`` if there is no separator."""
    found = at
    stop = run(data, at, end, classes, DIGIT)
    while stop < end and (data[stop] == 46 or data[stop] == 44 or data[stop] == 58):  # . , :
        last = run(data, stop + 1, end, classes, DIGIT)
        if last == stop + 1:
            break
        stop = found = last
    return found


@kernel
def _initials_end(data: Bytes, at: int, end: int, classes: Classes) -> int:  # pragma: no cover - compiled
    """End of the letters with a full stop after each that start at ``at``; ``at`` if there are fewer than two."""
    count = 0
    stop = at
    while stop < end:
        code, width = decode(data, stop)
        if not classes[code] & ALPHA or stop + width == end or data[stop + width] != 46:
            break
        stop += width + 1
        count += 1
    return stop if count > 1 else at


@kernel
def _ends_sentence(
    data: Bytes, begin: int, gap: int, broken: bool, classes: Classes, abbreviations: Hashes, flags: Hashes
) -> bool:  # pragma: no cover - compiled
    """Whether a sentence ends with the white space that starts at ``gap``.

    Args:
        begin: start of the text.
        broken: whether a line break is in the white space.
    """
    at = gap
    code = np.int64(0)
    while at > begin:
        at = before(data, at)
        code, _ = decode(data, at)
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
    while word > begin and count < LONGEST:
        last = before(data, word)
        code, _ = decode(data, last)
        if not classes[code] & ALPHA:
            break
        word = last
        packed |= _folded(code) << np.uint64(8 * count)
        count += 1
    if count == 0:
        return flags[ORDINALS] == 0 or not _is_ordinal(data, begin, at, classes)
    if count == 1:
        code, _ = decode(data, word)
        if classes[code] & CAPITAL:
            return bool(np.uint64(code) == flags[ALONE])
    return not _is_in(abbreviations, packed)


@kernel
def _is_ordinal(data: Bytes, begin: int, at: int, classes: Classes) -> bool:  # pragma: no cover - compiled
    """Whether one or two digits stand before ``at``, and white space or nothing before them."""
    code = np.int64(0)
    for count in range(3):
        if at == begin:
            return count > 0
        at = before(data, at)
        code, _ = decode(data, at)
        if not classes[code] & DIGIT:
            return count > 0 and (classes[code] & SPACE) != 0
    return False
