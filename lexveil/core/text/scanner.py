"""The compiled scanner behind tokenize.py. It converts UTF-8 bytes to tokens, sentences and
numbers, from left to right.

Scanning from left to right gives the same tokens as the regular expressions in
tests/text/reference_tokenizer.py:

* Every alternative of the token expression ends where a run of one class of characters ends, and
  the character that must follow is never of that class. So backtracking cannot help, and the
  longest run is the only candidate. The one exception is the last character of a URL, which is
  searched from the end of the run. A language's cut at an apostrophe ends after a whole run of
  letters and the apostrophe; the next character is examined but not consumed. An e-mail address
  starts at a run of at most 64 characters that ``@`` follows; a longer run has no ``@`` within
  reach.
* No token contains white space, and every sentence ends in white space or with the text, so tokens
  can be found without knowing sentences. A match of the boundary expression always ends where a run
  of white space ends, and there is at most one match for each run. The run and the characters
  before it decide whether the sentence ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lexveil.base.types import Bytes, Int32, Int64
from lexveil.core.text.kernels import characters
from lexveil.core.text.kernels.characters import Classes, Hashes, before, decode, run, uncounted
from lexveil.core.text.languages.base import LONGEST_ABBREVIATION

Letters = tuple[int, ...]
WWW, HTTP, HTTPS = (tuple(letters) for letters in (b"www.", b"http://", b"https://"))


class Rules(NamedTuple):
    """Tokenizer rules of a language, with words packed as numbers; see
    ``languages.base.Language``.
    """

    abbreviations: Hashes
    elisions: Hashes
    trailing: Hashes
    leading: Hashes
    alone: int
    has_ordinals: bool


@uncounted
def scan(
    data: Bytes,
    offsets: Int64,
    classes: Classes,
    rules: Rules,
    spans: Int32,
    sizes: Int32,
    per_text: Int32,
) -> int:  # pragma: no cover - compiled
    """Scan texts in UTF-8 and write their tokens and sentences into the output arrays.

    Args:
        offsets: (t + 1,) the first byte of each text in ``data``.
        spans: (room, 2), output: first byte and end byte of each token in ``data``.
        sizes: (room,), output: number of tokens of each sentence.
        per_text: (t,), output: number of sentences of each text.

    Returns:
        The number of tokens; -1 if ``spans`` is too small for them.
    """
    # A tuple of arrays is passed by value, which costs more than scanning a token, so only
    # languages that cut at apostrophes pass it.
    abbreviations = rules.abbreviations
    alone = rules.alone
    has_ordinals = rules.has_ordinals
    cuts = len(rules.elisions) + len(rules.trailing) + len(rules.leading) > 0
    n = n_sentences = 0
    for text in range(len(per_text)):
        begin = offsets[text]
        end = offsets[text + 1]
        first = n_sentences
        at = begin
        at_sign = begin - 1
        size = 0
        while at < end:
            code, width = decode(data, at)
            if classes[code] & characters.SPACE:
                gap = at
                broken = False
                while at < end:
                    code, width = decode(data, at)
                    if not classes[code] & characters.SPACE:
                        break
                    broken |= (classes[code] & characters.BREAK) != 0
                    at += width
                if size and _ends_sentence(
                    data, begin, gap, broken, classes, abbreviations, alone, has_ordinals
                ):
                    sizes[n_sentences] = size
                    n_sentences += 1
                    size = 0
                continue
            if n == len(spans):
                return -1
            if at_sign < at:
                at_sign = at
                while at_sign < end and data[at_sign] != 64:
                    at_sign += 1
            # 64 characters before an @ are at most 256 bytes.
            stop = _cut_end(data, at, end, classes, rules) if cuts else at
            if stop == at:
                stop = _token_end(data, at, end, classes, at_sign < end and at_sign - at <= 256)
            spans[n, 0] = at
            spans[n, 1] = stop
            n += 1
            size += 1
            at = stop
        if size:
            sizes[n_sentences] = size
            n_sentences += 1
        per_text[text] = n_sentences - first
    return n


@uncounted
def _token_end(
    data: Bytes, at: int, end: int, classes: Classes, mail: bool
) -> int:  # pragma: no cover - compiled
    """Return the end position of the token that starts at ``at``. The alternatives of tokenize.py
    are tried in their order.

    Args:
        end: end of the text.
        mail: whether an ``@`` follows in the text.
    """
    code, width = decode(data, at)
    first = classes[code]
    after = at + width
    if code == 104 or code == 119:  # h, w  # noqa: PLR1714
        stop = _url_end(data, at, end, classes)
        if stop > at:
            return stop
    if mail and first & characters.LOCAL:
        stop = _mail_end(data, at, end, classes)
        if stop > at:
            return stop
    if code == 64 or code == 35:  # @, #  # noqa: PLR1714
        if run(data, after, end, classes, characters.ALPHA) > after:
            return run(data, after, end, classes, characters.WORD)
        return after
    if first & characters.LETTER:
        if first & characters.DIGIT:
            stop = _number_end(data, at, end, classes)
            if stop > at:
                return stop
        if first & characters.ALPHA and after < end and data[after] == 46:
            stop = _initials_end(data, at, end, classes)
            if stop > at:
                return stop
        return _word_end(data, run(data, after, end, classes, characters.LETTER), end, classes)
    if first & characters.MARK:
        while after < end and data[after] == code:
            after += 1
    return after


@uncounted
def _word_end(
    data: Bytes, stop: int, end: int, classes: Classes
) -> int:  # pragma: no cover - compiled
    """Return the end position of a word whose first run of letters ends at ``stop``. Further
    letters may follow after joiners such as hyphens.
    """
    while stop < end:
        code, width = decode(data, stop)
        after = run(data, stop + width, end, classes, characters.LETTER)
        if not classes[code] & characters.JOINER or after == stop + width:
            break
        stop = after
    return stop


@uncounted
def _cut_end(
    data: Bytes, at: int, end: int, classes: Classes, rules: Rules
) -> int:  # pragma: no cover - compiled
    """Return the end position of the token at ``at`` if the language cuts the token at an
    apostrophe; ``at`` otherwise.

    These tokens begin with letters and an apostrophe, or with an apostrophe. No earlier alternative
    of the token expression begins like that.
    """
    code, width = decode(data, at)
    if code == 39 or code == 0x2019:  # noqa: PLR1714
        stop = run(data, at + width, end, classes, characters.LETTER)
        if not _is_in(rules.leading, _packed(data, at + width, stop)):
            return at
        return _word_end(data, stop, end, classes)  # 's-Hertogenbosch
    stop = run(data, at, end, classes, characters.LETTER)
    if stop == end:
        return at
    code, width = decode(data, stop)
    if code != 39 and code != 0x2019:  # noqa: PLR1714
        return at
    after = stop + width
    follows = after < end and (classes[decode(data, after)[0]] & characters.LETTER) != 0
    words = rules.elisions if follows else rules.trailing
    return after if _is_in(words, _packed(data, at, stop)) else at


@uncounted
def _is_in(words: Hashes, packed: np.uint64) -> bool:  # pragma: no cover - compiled
    """Return whether a list of words contains a word; the words are packed as numbers."""
    for word in words:  # noqa: SIM110
        if word == packed:
            return True
    return False


@uncounted
def _folded(code: np.int64) -> np.uint64:  # pragma: no cover - compiled
    """Convert a letter to one byte: the lower-case letter in Latin-1, or 1 for any other letter.
    No Latin-1 letter has the value 1.
    """
    if code < 128 or 0xC0 <= code <= 0xDE:
        return np.uint64(code | 32)
    return np.uint64(code if code < 256 else 1)


@uncounted
def _packed(data: Bytes, at: int, stop: int) -> np.uint64:  # pragma: no cover - compiled
    """Pack the letters from ``at`` to ``stop`` into a number, one byte each. Return 0, which
    represents no word, if there are more than ``LONGEST_ABBREVIATION`` letters.
    """
    packed = np.uint64(0)
    count = 0
    while at < stop:
        code, width = decode(data, at)
        packed = packed << np.uint64(8) | _folded(code)
        count += 1
        if count > LONGEST_ABBREVIATION:
            return np.uint64(0)
        at += width
    return packed


@uncounted
def _begins(
    data: Bytes, at: int, end: int, letters: Letters
) -> bool:  # pragma: no cover - compiled
    """Return whether the text at position ``at`` begins with these letters."""
    if end - at < len(letters):
        return False
    for i in range(len(letters)):  # noqa: SIM110
        if data[at + i] != letters[i]:
            return False
    return True


@uncounted
def _url_end(
    data: Bytes, at: int, end: int, classes: Classes
) -> int:  # pragma: no cover - compiled
    """Return the end position of the URL that starts at ``at``; ``at`` if no URL starts there."""
    if _begins(data, at, end, WWW):
        body = at + len(WWW)
    elif _begins(data, at, end, HTTP):
        body = at + len(HTTP)
    elif _begins(data, at, end, HTTPS):
        body = at + len(HTTPS)
    else:
        return at
    stop = body
    while stop < end:
        code, width = decode(data, stop)
        if classes[code] & characters.NO_URL:
            break
        stop += width
    while stop > body:
        last = before(data, stop)
        if not classes[decode(data, last)[0]] & characters.AFTER_URL:
            return stop
        stop = last
    return at


@uncounted
def _mail_end(
    data: Bytes, at: int, end: int, classes: Classes
) -> int:  # pragma: no cover - compiled
    """Return the end position of the e-mail address that starts at ``at``; ``at`` if no address
    starts there.
    """
    stop = at
    for _ in range(64):
        if stop == end:
            return at
        code, width = decode(data, stop)
        if not classes[code] & characters.LOCAL:
            break
        stop += width
    if stop == end or data[stop] != 64:
        return at
    last = run(data, stop + 1, end, classes, characters.DOMAIN)
    if last == stop + 1:
        return at
    last_end = at
    while last < end and data[last] == 46:
        stop = run(data, last + 1, end, classes, characters.DOMAIN)
        if stop == last + 1:
            break
        last = last_end = stop
    return last_end


@uncounted
def _number_end(
    data: Bytes, at: int, end: int, classes: Classes
) -> int:  # pragma: no cover - compiled
    """Return the end position of the number that starts at ``at`` and has separators between its
    digits; ``at`` if the number has no separator.
    """
    last_end = at
    stop = run(data, at, end, classes, characters.DIGIT)
    while stop < end and (data[stop] == 46 or data[stop] == 44 or data[stop] == 58):  # . , :
        last = run(data, stop + 1, end, classes, characters.DIGIT)
        if last == stop + 1:
            break
        stop = last_end = last
    return last_end


@uncounted
def _initials_end(
    data: Bytes, at: int, end: int, classes: Classes
) -> int:  # pragma: no cover - compiled
    """Return the end position of the initials that start at ``at`` (letters, each with a full
    stop); ``at`` if fewer than two initials start there.
    """
    count = 0
    stop = at
    while stop < end:
        code, width = decode(data, stop)
        if not classes[code] & characters.ALPHA or stop + width == end or data[stop + width] != 46:
            break
        stop += width + 1
        count += 1
    return stop if count > 1 else at


@uncounted
def _ends_sentence(
    data: Bytes,
    begin: int,
    gap: int,
    broken: bool,
    classes: Classes,
    abbreviations: Hashes,
    alone: int,
    has_ordinals: bool,
) -> bool:  # pragma: no cover - compiled
    """Return whether the white space that starts at ``gap`` ends a sentence.

    Args:
        begin: start of the text.
        broken: whether the white space contains a line break.
    """
    at = gap
    code = np.int64(0)
    while at > begin:
        at = before(data, at)
        code, _ = decode(data, at)
        if not classes[code] & characters.CLOSER:
            break
    if not classes[code] & characters.STOP:
        return broken
    if code != 46:
        return True
    # The full stop at ``at`` ends no sentence after an initial or an abbreviation, even before a
    # line break.
    count = 0
    word = at
    while word > begin and count < LONGEST_ABBREVIATION:
        last = before(data, word)
        if not classes[decode(data, last)[0]] & characters.ALPHA:
            break
        word = last
        count += 1
    if count == 0:
        return not has_ordinals or not _is_ordinal(data, begin, at, classes)
    if count == 1:
        code, _ = decode(data, word)
        if classes[code] & characters.CAPITAL:
            return bool(code == alone)
    return not _is_in(abbreviations, _packed(data, word, at))


@uncounted
def _is_ordinal(
    data: Bytes, begin: int, at: int, classes: Classes
) -> bool:  # pragma: no cover - compiled
    """Return whether one or two digits, after white space or the start of the text, end at
    ``at``.
    """
    code = np.int64(0)
    for count in range(3):
        if at == begin:
            return count > 0
        at = before(data, at)
        code, _ = decode(data, at)
        if not classes[code] & characters.DIGIT:
            return count > 0 and (classes[code] & characters.SPACE) != 0
    return False
