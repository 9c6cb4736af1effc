"""Subject keys: the keys under which the ledger adds up the epsilon spent on rows.

All commands share one rule, because two spellings of one subject would otherwise have two budgets:

* A row with a named subject has the name as its key. The name is converted to text
  (``lexveil.io.formats.values``: a float32 gets the fewest digits that identify it). Invisible
  characters are removed (Unicode's category Cf and property Default_Ignorable_Code_Point, and C1
  controls), the text is put in the normal form NFKC, white space is trimmed, and every run of white
  space becomes one space. A decimal number in JSON's notation without exponent is reduced to its
  value: ``7``, ``7.0`` and ``7.00`` are one subject, and so are ``-0`` and ``0``. ``007`` and
  ``+7`` are not such numbers, and stay as they are. A date and time in ISO 8601 gets a T, its
  seconds and no zeros at the end of a fraction; ``Z`` becomes ``+00:00``; midnight without a zone
  becomes the date. Capitals and punctuation are significant: ``c7`` and ``C7`` are two subjects.
* A row without a named subject has a key made from its texts: the normal forms of their tokens,
  after the same treatment of characters. They are tokenized by the rules of English for every
  model. Capitals, white space and Unicode form do not matter, nor does a column without any token:
  a text has one key in whichever column it is.

The two kinds never coincide, because a subject's name contains no NUL. A service may separate the
subjects of its clients (``keys_of_client``): then the client's name is a part of every key, also of
keys made from texts. ``KEYS_RULE`` is the version of this rule. A ledger stores the version with
which it was made, and accepts no release under another version.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

TEXT = "\0text:"  # prefix of the hash of a row's texts

_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?",
    re.ASCII,
)
_NUMBER = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?", re.ASCII)
# Earlier versions: 1 used texts and names as written; in 2 the key of a text depended on further
# empty columns; in 3 all clients of a service shared the key of a text, a float32 had another key
# than its number, and midnight another key than its date.
KEYS_RULE = "4"
# Invisible code points of Unicode 15.1: category Cf, property Default_Ignorable_Code_Point, and C1
# controls that are not white space. They are listed here, because the Unicode version of libraries
# differs.
UNSEEN = (
    (0x80, 0x84),
    (0x86, 0x9F),
    (0xAD, 0xAD),
    (0x34F, 0x34F),
    (0x600, 0x605),
    (0x61C, 0x61C),
    (0x6DD, 0x6DD),
    (0x70F, 0x70F),
    (0x890, 0x891),
    (0x8E2, 0x8E2),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
_UNSEEN = "[%s]" % "".join(r"\x{%x}-\x{%x}" % pair for pair in UNSEEN)  # noqa: UP031
# greatest number of subjects that are compared with each other, which takes some 50 MB
MAX_COMPARED = 2**18


def subject_key(name: str) -> str:
    """Return the ledger key of a data subject, given the subject's name; ``""`` if the name has no
    visible character.
    """
    if not name.isascii():
        name = unicodedata.normalize("NFKC", "".join(c for c in name if not is_unseen(c)))
    name = " ".join(name.split())
    if (number := _NUMBER.fullmatch(name)) is not None:
        sign, whole, fraction = number.groups()
        fraction = (fraction or "").rstrip("0")
        name = f"{whole}.{fraction}" if fraction else whole
        return name if name == "0" else sign + name
    return name if (time := _TIME.fullmatch(name)) is None else _time_of_day(time)


def _time_of_day(match: re.Match[str]) -> str:
    """Convert a matched date and time to one standard form; return only the date if the time is
    midnight and no time zone is given.
    """
    day, minutes, seconds, fraction, zone = match.groups()
    fraction = (fraction or "").rstrip("0")
    time = f"{minutes}:{seconds or '00'}" + (f".{fraction}" if fraction else "")
    if zone is None:
        return day if time == "00:00:00" else f"{day}T{time}"
    zone = "+00:00" if zone == "Z" else zone
    return f"{day}T{time}{zone if ':' in zone else f'{zone[:3]}:{zone[3:]}'}"


def keys_of_client(client: str, keys: Sequence[str]) -> list[str]:
    """Return the ledger keys of one client's subjects, for a service in which each client has
    separate keys. Two clients never share a key, whether the key was made from a name or from
    texts.

    Args:
        client: the client's name, without a slash.
    """
    return [
        f"{TEXT}{client}/{key.removeprefix(TEXT)}" if key.startswith(TEXT) else f"{client}/{key}"
        for key in keys
    ]


def is_unseen(character: str) -> bool:
    """Return whether a character is invisible in displayed text."""
    return any(first <= ord(character) <= last for first, last in UNSEEN)


def text_keys(rows: Sequence[Sequence[str | None]]) -> list[str]:
    """Return a ledger key for each row without a named subject, made from the row's texts.

    Args:
        rows: the texts of each row, one for each column, None for null; no text contains a NUL or
            an unpaired surrogate.
    """
    return keys_of_columns(
        [pa.array(column, pa.large_string()) for column in zip(*rows, strict=True)]
    )


def keys_of_columns(columns: Sequence[pa.LargeStringArray]) -> list[str]:
    """Return a ledger key for each row without a named subject, made from the row's texts, given
    each text column as one array.
    """
    import pyarrow.compute as pc

    if not columns:
        return []
    forms = [_normal_texts(column) for column in columns]
    if len(forms) > 1:
        # PyArrow's own option to skip nulls would drop rows in which all values are null.
        joined = pc.replace_substring_regex(
            pc.binary_join_element_wise(*forms, "\0"), r"\x00+", "\0"
        )
        forms = [pc.utf8_trim(joined, "\0")]
    data, offsets = _bytes_of(forms[0])
    sha256 = hashlib.sha256
    return [TEXT + sha256(data[start:end]).hexdigest() for start, end in pairwise(offsets.tolist())]


def _normal_texts(texts: pa.LargeStringArray) -> pa.StringArray:
    """Return the normal forms of each text's tokens, joined by spaces; null is treated as a text
    without tokens.
    """
    import pyarrow.compute as pc

    from lexveil.core.text.tokenize import tokenize_texts

    present = pc.fill_null(texts, "")
    if not pc.all(pc.string_is_ascii(present), min_count=0).as_py():
        present = pc.utf8_normalize(pc.replace_substring_regex(present, _UNSEEN, ""), "NFKC")
    tokens = tokenize_texts(pc.utf8_lower(present))
    sentence_ends = np.concatenate([[0], np.cumsum(tokens.sentence_sizes, dtype=np.int64)])
    offsets = sentence_ends[
        np.concatenate([[0], np.cumsum(tokens.sentences_per_text, dtype=np.int64)])
    ]
    words = tokens.words.take(pa.array(tokens.ids))
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), words), " ")


def _bytes_of(array: pa.StringArray) -> tuple[memoryview, npt.NDArray[np.int32]]:
    """Return the UTF-8 bytes of all texts, one after the other, and (n + 1,) the position of the
    first byte of each text.
    """
    _, positions, content = array.buffers()
    offsets = np.frombuffer(positions, np.int32)[array.offset : array.offset + len(array) + 1]
    return memoryview(content or b""), offsets


class NearCollisions:
    """Counter of data subjects whose keys differ only in capitals and punctuation: probably one
    person with two budgets.

    The counter stores only hashes, under this process's hash key, and compares the first
    ``MAX_COMPARED`` subjects.
    """

    def __init__(self) -> None:
        # hash of the key without capitals and punctuation, and hash of the key
        self._hashes: set[tuple[int, int]] = set()

    def add(self, keys: Sequence[str]) -> None:
        """Add the subject keys of further rows."""
        if len(self._hashes) < MAX_COMPARED:
            self._hashes |= {(hash(_folded(key)), hash(key)) for key in keys}

    def count(self) -> int:
        """Return the number of subjects whose key resembles another subject's key."""
        sizes = Counter(folded for folded, _ in self._hashes)
        return sum(size for size in sizes.values() if size > 1)


def _folded(key: str) -> str:
    return "".join(character for character in key.casefold() if character.isalnum())
