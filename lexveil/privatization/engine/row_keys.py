"""The keys of rows by their texts, from tokens that are known already: those of ``accounting.subject_keys``.

A key is made of the tokens of a text in lower case, without what shows nothing and in the form NFKC. Of a
normalization-invariant text these are its own tokens: its characters are ASCII, or such as that treatment leaves alone
wherever they stand, and it has no URL that begins in capitals, which is one only in lower case.
"""

from __future__ import annotations

import functools
import hashlib
import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lexveil.accounting.subject_keys import TEXT, is_unseen, text_keys
from lexveil.formats.chunks import Texts
from lexveil.privatization.engine.batch import Batch
from lexveil.text.encode import Encoded
from lexveil.text.strings import Strings, letters_of
from lexveil.types import Flags

# Where no character joins what stands before it: Latin letters, and signs from punctuation to arrows.
_INVARIANT = ((0x80, 0x300), (0x2000, 0x2C00))


def keys_of(batch: Batch, encoded: Encoded) -> list[str]:
    """The keys of the documents of a batch.

    Args:
        encoded: their tokens.
    """
    rows, texts = batch.rows, batch.texts
    if not isinstance(texts, Strings) or not isinstance(encoded.forms, Strings):
        return text_keys(rows)
    from lexveil.text.kernels.rendering import find_calm, write

    data, starts = letters_of(texts.array)
    invariant = np.zeros(len(texts), np.bool_)
    find_calm(data, starts, invariant_characters(), invariant)
    letters, places = letters_of(encoded.forms.array)
    bounds = np.append(encoded.first_word, len(encoded.word))[encoded.offsets()]
    out = np.empty(int(np.diff(places)[encoded.word].sum()) + len(encoded.word), np.uint8)
    ends = np.zeros(len(bounds), np.int64)
    write(encoded.word, bounds, np.zeros(len(encoded.forms), np.int8), letters, places, out, ends)
    joined, edges, width = memoryview(out.data), ends.tolist(), int(batch.column.max(initial=0)) + 1
    parts: list[list[bytes | memoryview]] = [[b""] * len(rows) for _ in range(max(width, _width(rows)))]
    for text, (document, column) in enumerate(zip(batch.document.tolist(), batch.column.tolist(), strict=True)):
        parts[column][document] = joined[edges[text] : edges[text + 1]]
    forms = parts[0] if len(parts) == 1 else map(b"\0".join, zip(*parts, strict=True))
    sha256 = hashlib.sha256
    keys = [TEXT + sha256(form).hexdigest() for form in forms]
    others = np.unique(batch.document[~invariant]).tolist()
    for document, key in zip(others, text_keys([rows[document] for document in others]), strict=True):
        keys[document] = key
    return keys


def _width(rows: Texts) -> int:
    return len(rows[0]) if len(rows) else 1


@functools.cache
def invariant_characters() -> Flags:
    """(0x2C00,) by code point, whether a text of such characters stays as it is."""
    invariant = np.zeros(max(end for _, end in _INVARIANT), np.bool_)
    invariant[:0x80] = True
    points = [point for start, end in _INVARIANT for point in range(start, end)]
    characters = pa.array(map(chr, points), pa.large_string())
    same = pc.equal(pc.utf8_lower(pc.utf8_normalize(characters, "NFKC")), characters).to_pylist()
    for point, is_same in zip(points, same, strict=True):
        character = chr(point)
        stays = is_same and unicodedata.normalize("NFKC", character) == character == character.lower()
        invariant[point] = stays and not unicodedata.combining(character) and not is_unseen(character)
    invariant.flags.writeable = False
    return invariant
