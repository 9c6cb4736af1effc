"""Readers for published file formats of word vectors. They read row by row, and an error names the
place of a fault.

* GloVe text: one word per line with its numbers, no header.
* word2vec text and fastText .vec: GloVe text after a header line "words dimensions".
* word2vec binary: the same header, then each word, a space, and its float32 numbers
  (little-endian).
* Parquet: columns word and vector (a list of numbers), and count if it is known.
* gensim's KeyedVectors (.kv), with FILE.vectors.npy beside it (``lexveil.lab.data.keyed_vectors``).

The first three forms may also be gzipped (.gz). The content of a file decides its form, not its
name.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.base.errors import RequestError
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.core.text.languages import DEFAULT
from lexveil.core.text.normal_forms import has_letters, normal_form
from lexveil.io.formats.compression import MAGIC, open_bytes
from lexveil.io.formats.messages import shown
from lexveil.lab.data.keyed_vectors import MAGIC as PICKLED
from lexveil.lab.data.keyed_vectors import read_keyed_vectors

# Number (of a line, of a word in a binary file, or of a row), word, vector, count (0 if it is not
# known).
Entry = tuple[int, bytes, npt.NDArray[np.float32], int]
Form = Literal["glove text", "word2vec text", "word2vec binary", "parquet", "gensim"]
# unit that names the place of a fault; the text forms name lines
PLACES: dict[Form, str] = {"word2vec binary": "word", "parquet": "row", "gensim": "word"}
JOINT = "_"  # joins the words of a collocation
LONGEST_COLLOCATION = 3  # words

LINE_LIMIT = 2**20  # bytes
WORD_LIMIT = 2000  # largest number of bytes of a word; a longer one means that the file is damaged
ROWS_AT_A_TIME = 4096  # rows of Parquet read at once
DIMENSIONS = (2, 4096)


@dataclass(frozen=True, slots=True)
class WordVectors:
    """Word vectors that were read from a file.

    Attributes:
        space: words as normal forms, in the file's order; counts are 0 if the file has none.
        form: format of the file.
        n_read: number of entries read.
        left_out: number of entries left out, by reason: repeated (the same word again), same_form
            (an earlier word has the same normal form, for example The after the), no_token (the
            tokenizer never produces this word: white space, clitics, masked digits, or phrases
            joined by ``_`` if collocations are not read), not_listed (a word of the entry is not in
            the list of words), not_utf8.
    """

    space: WordSpace
    form: Form
    n_read: int
    left_out: dict[str, int]


@dataclass(slots=True)
class VectorFile:
    """An opened file of word vectors with its number of dimensions.

    Attributes:
        size: number of words according to the header; None without a header.
    """

    path: Path
    form: Form
    dimensions: int
    size: int | None = None

    def __post_init__(self) -> None:
        low, high = DIMENSIONS
        if not low <= self.dimensions <= high:
            raise self.fault(
                1, f"{self.dimensions} dimensions; the number must be between {low} and {high}"
            )

    def fault(self, number: int, what: str) -> RequestError:
        """Return an error that names the file and one of its lines, words or rows."""
        return RequestError(
            f"{shown(self.path)}, {PLACES.get(self.form, 'line')} {number:,}: {what}"
        )


def read_model(
    path: Path,
    max_words: int | None = None,
    language: str = DEFAULT,
    *,
    with_collocations: bool = False,
    listed: frozenset[str] | None = None,
) -> WordVectors:
    """Read a file of word vectors, and convert its words to the tokenizer's normal form.

    Lexveil joins the words of a collocation by ``_``. A single word that contains ``_`` is left
    out, so that no word can be confused with a collocation.

    Args:
        path: the file.
        max_words: largest number of usable words to read; files list frequent words first. None
            reads all.
        language: language of the words.
        with_collocations: whether phrases of two or three words joined by ``_`` are taken as
            collocations.
        listed: a public list of words: a token is taken if all its words are in the list; None
            takes all.

    Raises:
        RequestError: if the file has a fault (the message names its line, or its word in a binary
            file): a wrong number of dimensions, a number that is not finite, a truncated file, more
            or fewer words than the header states; or if no word is usable.
    """
    try:
        with open_bytes(path, "") as plain:
            start = plain.read(4)
        with open_bytes(path, "gz" if start.startswith(MAGIC["gz"]) else "") as stream:
            if start == b"PAR1":
                file, entries = _parquet(path)
            elif start.startswith(PICKLED):
                file, entries = _keyed_vectors(path)
            else:
                file, entries = _text_or_binary(stream, path)

            def unusable(word: bytes) -> str | None:
                return _unusable(word, language, with_collocations, listed)

            return _collect(file, entries, max_words, unusable)
    except (OSError, pa.ArrowException):
        raise RequestError(f"{shown(path)}: damaged or truncated; fetch it again") from None


def _collect(
    file: VectorFile,
    entries: Iterator[Entry],
    max_words: int | None,
    unusable: Callable[[bytes], str | None],
) -> WordVectors:
    tokens: dict[str, None] = {}
    surfaces: set[bytes] = set()
    left_out: Counter[str] = Counter()
    vectors = list[npt.NDArray[np.float32]]()
    counts = list[int]()
    n_read = 0
    for number, word, vector, count in entries:
        if not np.isfinite(vector).all():
            raise file.fault(number, "a number is not finite")
        n_read += 1
        reason = "repeated" if word in surfaces else unusable(word)
        surfaces.add(word)
        token = ""
        if reason is None:
            token = JOINT.join(map(normal_form, word.decode("utf-8").split(JOINT)))
            reason = "same_form" if token in tokens else None
        if reason is not None:
            left_out[reason] += 1
            continue
        tokens[token] = None
        vectors.append(vector)
        counts.append(count)
        if len(tokens) == max_words:
            break
    else:
        if file.size not in (None, n_read):
            raise RequestError(
                f"{shown(file.path)}: the header states {file.size:,} words, but the file has "
                f"{n_read:,}"
            )
    if not tokens:
        raise RequestError(
            f"{shown(file.path)}: the tokenizer produces none of its {n_read:,} words"
        )
    space = WordSpace(
        [*tokens], np.array(vectors, dtype=np.float32), np.array(counts, dtype=np.int64)
    )
    return WordVectors(space, file.form, n_read, dict(sorted(left_out.items())))


def _unusable(
    word: bytes, language: str, with_collocations: bool, listed: frozenset[str] | None
) -> str | None:
    """Return the reason why a word of a vector file cannot be used; None if the word can be used.

    The tokenizer must turn each word of a token, if it is written alone, into one token, and this
    must be the token that is stored.
    """
    from lexveil.core.text.tokenize import is_token

    try:
        text = word.decode("utf-8")
    except UnicodeDecodeError:
        return "not_utf8"
    parts = text.split(JOINT) if with_collocations else [text]
    is_short = len(parts) <= LONGEST_COLLOCATION
    if not (is_short and all(part and is_token(part, language) for part in parts)):
        return "no_token"
    if len(parts) > 1 and not all(has_letters(part) for part in parts):
        return "no_token"  # the tokenizer never joins a number into a collocation
    if listed is not None and not all(normal_form(part) in listed for part in parts):
        return "not_listed"
    return None


def _keyed_vectors(path: Path) -> tuple[VectorFile, Iterator[Entry]]:
    words, vectors, counts = read_keyed_vectors(path)
    file = VectorFile(path, "gensim", vectors.shape[1], len(words))
    numbered = enumerate(zip(words, vectors, counts.tolist(), strict=True), 1)
    return file, (
        (number, word.encode("utf-8", "surrogatepass"), vector, count)
        for number, (word, vector, count) in numbered
    )


def _text_or_binary(stream: Any, path: Path) -> tuple[VectorFile, Iterator[Entry]]:
    lines = iter(lambda: stream.readline(LINE_LIMIT), b"")
    first = next(lines, b"")
    if not first.strip():
        raise RequestError(
            f"{shown(path)}: its first line is empty; give word vectors in text or binary form"
        )
    if header := re.fullmatch(rb"\s*(\d{1,10})[ \t]+(\d{1,5})\s*", first):
        file = VectorFile(path, "word2vec text", int(header[2]), int(header[1]))
        second = next(lines, b"")
        # A line of a text file has a word and its numbers; the bytes of a binary file do not parse
        # as numbers.
        if not second or _split(second, file.dimensions) is not None:
            return file, _text_rows(file, itertools.chain([second] if second else [], lines), 2)
        file.form = "word2vec binary"
        return file, _binary_rows(file, second, stream)
    file = VectorFile(path, "glove text", max(DIMENSIONS[0], len(first.split()) - 1))
    if _split(first, file.dimensions) is None:
        raise file.fault(1, "neither a header nor a word with at least two numbers")
    return file, _text_rows(file, itertools.chain([first], lines), 1)


def _text_rows(file: VectorFile, lines: Iterable[bytes], start: int) -> Iterator[Entry]:
    blank = 0
    for number, line in enumerate(lines, start):
        if len(line) == LINE_LIMIT:
            raise file.fault(number, "longer than a word and its numbers can be")
        if not line.strip():
            blank = blank or number
            continue
        entry = _split(line, file.dimensions)
        if blank or entry is None:  # blank lines are allowed at the end only
            raise file.fault(
                blank or number,
                f"not a word and {file.dimensions} numbers, as in the lines before",
            )
        yield number, *entry, 0


def _split(line: bytes, dimensions: int) -> tuple[bytes, npt.NDArray[np.float32]] | None:
    """Split a line of a text file into a word and its vector; return None if the rest of the line
    is not ``dimensions`` numbers.

    Words contain spaces in some GloVe files. If such a word ended in a number, the line would have
    too many numbers.
    """
    word, *numbers = line.rsplit(None, dimensions) if line[:1].strip() else [b"", *line.split()]
    vector = _numbers(numbers)
    if vector is None or len(vector) != dimensions or _numbers(word.split()[1:][-1:]) is not None:
        return None
    return word, vector


def _numbers(texts: list[bytes]) -> npt.NDArray[np.float32] | None:
    """Parse strings as float32 numbers. Return None if ``texts`` is empty, or if one of them is not
    a number. A number that is too large becomes infinite, and the caller must check for this.
    """
    try:
        with np.errstate(over="ignore"):
            return np.array(texts).astype(np.float64).astype(np.float32) if texts else None
    except ValueError:
        return None


def _binary_rows(file: VectorFile, start: bytes, stream: Any) -> Iterator[Entry]:
    width = 4 * file.dimensions
    buffer = bytearray(start)
    assert file.size is not None
    for number in range(1, file.size + 1):
        if len(buffer) < width + WORD_LIMIT:
            buffer += stream.read(2**20)
        while (
            buffer[:1] == b"\n"
        ):  # the original program of word2vec ends every vector with a line feed
            del buffer[:1]
        end = buffer.find(b" ", 0, WORD_LIMIT)
        if end < 0 or len(buffer) < end + 1 + width:
            is_truncated = end >= 0 or len(buffer) < WORD_LIMIT
            problem = "truncated" if is_truncated else "the end of the word is missing"
            raise file.fault(number, f"{problem}, of {file.size:,} words; fetch the file again")
        vector = np.frombuffer(bytes(buffer[end + 1 : end + 1 + width]), dtype="<f4")
        yield number, bytes(buffer[:end]), vector, 0
        del buffer[: end + 1 + width]
    if buffer.strip(b"\n") or stream.read(1):
        raise file.fault(file.size, "more bytes follow after the words that the header states")


def _parquet(path: Path) -> tuple[VectorFile, Iterator[Entry]]:
    table = pq.ParquetFile(path)
    kinds = {field.name: field.type for field in table.schema_arrow}
    if not pa.types.is_string(kinds.get("word")) or not _is_vector(kinds.get("vector")):
        raise RequestError(
            f"{shown(path)}: the table lacks the columns word (text) and vector (list of numbers)"
        )
    if "count" in kinds and not pa.types.is_integer(kinds["count"]):
        raise RequestError(f"{shown(path)}: the column count must hold whole numbers")
    if not table.metadata.num_rows:
        raise RequestError(f"{shown(path)}: the table has no rows")
    first = next(table.iter_batches(1, columns=["vector"])).column(0)[0].as_py()
    file = VectorFile(path, "parquet", len(first or ()))
    columns = [name for name in ("word", "vector", "count") if name in kinds]
    return file, _table_rows(file, table.iter_batches(ROWS_AT_A_TIME, columns=columns))


def _is_vector(kind: pa.DataType | None) -> bool:
    if kind is None or not (pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)):
        return False
    return bool(pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type))


def _table_rows(file: VectorFile, batches: Iterable[pa.RecordBatch]) -> Iterator[Entry]:
    rows = (row for batch in batches for row in batch.to_pylist())
    for number, row in enumerate(rows, 1):
        word = row["word"]
        vector = row["vector"]
        count = row.get("count", 0)
        if word is None or count is None or count < 0 or vector is None or None in vector:
            raise file.fault(number, "a word, a number or a count is missing")
        if len(vector) != file.dimensions:
            raise file.fault(
                number, f"{len(vector)} numbers, but {file.dimensions} in the rows before"
            )
        with np.errstate(over="ignore"):
            yield number, word.encode(), np.array(vector, dtype=np.float32), count
