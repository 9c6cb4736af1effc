"""Reading word vectors in the forms they are published in, row by row, every fault named by its place.

* GloVe text: one word a line with its numbers, no header.
* word2vec text and fastText .vec: the same after a header line "words dimensions".
* word2vec binary: that header, then each word, a space, and its float32 numbers (little-endian).
* Parquet: columns word and vector (a list of numbers), and count where it is known.

The first three also gzipped (.gz). Which form a file has is seen from its content, not from its name.
"""

from __future__ import annotations

import gzip
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.embeddings.word_space import WordSpace
from lexveil.errors import RequestError
from lexveil.formats.messages import shown
from lexveil.text.languages import DEFAULT
from lexveil.text.normal_forms import normal_form
from lexveil.types import Vectors

# Number (of a line, of a word of a binary file, of a row of a table), word, vector, count (0 where it is not known).
Entry = tuple[int, bytes, npt.NDArray[np.float32], int]
Form = Literal["glove text", "word2vec text", "word2vec binary", "parquet"]
PLACES: dict[Form, str] = {"word2vec binary": "word", "parquet": "row"}  # of a fault; a line in the others

LINE_LIMIT = 2**20  # bytes
WORD_LIMIT = 2000  # bytes; a longer one means that the file is damaged
CHUNK = 4096  # vectors copied together
DIMENSIONS = (2, 4096)


@dataclass(frozen=True, slots=True)
class WordVectors:
    """What was taken from a file.

    Attributes:
        space: words as normal forms, in the file's order; counts are 0 where the file has none.
        form: what the file is.
        n_read: entries read.
        left_out: entries left out, by reason: repeated (the same word again), same_form (its normal form was there
            before, e.g. The after the), no_token (the tokenizer never makes this word of a text: phrases joined by
            ``_``, words with white space, clitics, masked digits), not_utf8.
    """

    space: WordSpace
    form: Form
    n_read: int
    left_out: dict[str, int]


def read_model(path: Path, max_words: int | None = None, language: str = DEFAULT) -> WordVectors:
    """Read a file of word vectors and bring its words to the tokenizer's normal form.

    A collocation of ours joins words by ``_``. No word that is kept holds one, so none can be taken for a collocation.

    Args:
        path: the file.
        max_words: stop after so many usable words; files list frequent words first.
        language: of the words.

    Raises:
        RequestError: naming the line (binary: the word) of the first fault: another number of dimensions, a number
            that is not finite, truncated, more or fewer words than the header says; or no usable word at all.
    """
    with _opened(path) as stream:
        try:
            if stream.read(4) == b"PAR1":
                dimensions, rows = _table_rows(path)
                return _collect(path, "parquet", None, dimensions, rows, (max_words, language))
            stream.seek(0)
            form, size, dimensions, rows = _rows(stream, path)
            return _collect(path, form, size, dimensions, rows, (max_words, language))
        except (EOFError, OSError, zlib.error, pa.ArrowException):
            raise RequestError(f"{shown(path)}: damaged or truncated; fetch it again") from None


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as plain:
            zipped = plain.read(2) == b"\x1f\x8b"
            plain.seek(0)
            yield cast(IO[bytes], gzip.GzipFile(fileobj=plain)) if zipped else plain
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise RequestError(f"{shown(path)}: cannot be read ({error.strerror})") from None


def _collect(
    path: Path, form: Form, size: int | None, dimensions: int, rows: Iterator[Entry], wanted: tuple[int | None, str]
) -> WordVectors:
    max_words, language = wanted
    tokens: list[str] = []
    taken: set[str] = set()
    surfaces: set[bytes] = set()
    left_out: Counter[str] = Counter()
    counts: list[int] = []
    blocks: list[Vectors] = []
    block = np.empty((CHUNK, dimensions), dtype=np.float32)
    n_read, whole = 0, True
    for number, word, vector, count in rows:
        if not np.isfinite(vector).all():
            raise RequestError(f"{_location(path, form, number)}: a number is not finite")
        n_read += 1
        reason = "repeated" if word in surfaces else _unusable(word, language)
        surfaces.add(word)
        if reason is None and (token := normal_form(word.decode("utf-8"))) in taken:
            reason = "same_form"
        if reason is not None:
            left_out[reason] += 1
            continue
        taken.add(token)
        row = len(tokens) % CHUNK
        if row == 0 and tokens:
            blocks.append(block.copy())
        block[row] = vector
        tokens.append(token)
        counts.append(count)
        if len(tokens) == max_words:
            whole = False
            break
    if whole and size is not None and n_read != size:
        raise RequestError(f"{shown(path)}: the header says {size:,} words, the file has {n_read:,}; fetch it again")
    if not tokens:
        raise RequestError(f"{shown(path)}: none of its {n_read:,} words can be a token of a text")
    blocks.append(block[: (len(tokens) - 1) % CHUNK + 1])
    vectors = np.concatenate(blocks)
    return WordVectors(
        WordSpace(tokens, vectors, np.array(counts, dtype=np.int64)), form, n_read, dict(sorted(left_out.items()))
    )


def _unusable(word: bytes, language: str) -> str | None:
    """Why a text can never contain this word as one token; None if it can."""
    try:
        text = word.decode("utf-8")
    except UnicodeDecodeError:
        return "not_utf8"
    from lexveil.text.tokenize import is_token

    # Written alone it must come out of the tokenizer as one token, and as the one that is stored.
    return None if is_token(text, language) else "no_token"


def _location(path: Path, form: Form, number: int) -> str:
    return f"{shown(path)}, {PLACES.get(form, 'line')} {number:,}"


def _rows(stream: IO[bytes], path: Path) -> tuple[Form, int | None, int, Iterator[Entry]]:
    """The form, the number of words that a header names, the dimensions, and the rows."""
    first = stream.readline(LINE_LIMIT)
    if not first.strip():
        raise RequestError(f"{shown(path)}: its first line is empty; word vectors in text or binary form are wanted")
    if header := re.fullmatch(rb"\s*(\d{1,10})[ \t]+(\d{1,5})\s*", first):
        size, dimensions = int(header[1]), int(header[2])
        _check_dimensions(path, dimensions)
        # A text's first word and numbers fill one line; a binary's bytes do not read as numbers.
        line = stream.readline(LINE_LIMIT)
        if not line:
            raise RequestError(f"{shown(path)}: the header says {size:,} words, the file has 0; fetch it again")
        _, numbers = _split(line, dimensions)
        if numbers is not None:
            return "word2vec text", size, dimensions, _text_rows(line, 2, stream, path, "word2vec text", dimensions)
        return "word2vec binary", size, dimensions, _binary_rows(line, stream, path, size, dimensions)
    dimensions = len(first.split()) - 1
    if dimensions < 1 or _split(first, dimensions)[1] is None:
        raise RequestError(f"{shown(path)}, line 1: neither a header nor a word with its numbers")
    _check_dimensions(path, dimensions)
    return "glove text", None, dimensions, _text_rows(first, 1, stream, path, "glove text", dimensions)


def _check_dimensions(path: Path, dimensions: int) -> None:
    low, high = DIMENSIONS
    if not low <= dimensions <= high:
        raise RequestError(f"{shown(path)}, line 1: {dimensions} dimensions; between {low} and {high} are possible")


def _text_rows(line: bytes, number: int, stream: IO[bytes], path: Path, form: Form, dimensions: int) -> Iterator[Entry]:
    while line:
        if len(line) == LINE_LIMIT:
            raise RequestError(f"{_location(path, form, number)}: longer than a word and its numbers can be")
        word, vector = _split(line, dimensions)
        if vector is None:
            if line.strip():
                raise RequestError(f"{_location(path, form, number)}: {_fault(line, dimensions)}")
            if stream.read(1):
                raise RequestError(f"{_location(path, form, number)}: an empty line")
            return
        yield number, word, vector, 0
        line = stream.readline(LINE_LIMIT)
        number += 1


def _split(line: bytes, dimensions: int) -> tuple[bytes, npt.NDArray[np.float32] | None]:
    """A word and its numbers; None where they are not ``dimensions`` numbers."""
    word, _, rest = line.rstrip().replace(b"\t", b" ").partition(b" ")
    numbers = _numbers(rest)
    if numbers is not None and len(numbers) == dimensions:
        return word, numbers
    # A word with spaces inside, as some GloVe files have them; were its end a number, it would be a line too long.
    parts = line.rstrip().replace(b"\t", b" ").rsplit(b" ", dimensions)
    if len(parts) == dimensions + 1 and _numbers(parts[0].rsplit(b" ", 1)[-1]) is None:
        numbers = _numbers(b" ".join(parts[1:]))
        if numbers is not None and len(numbers) == dimensions:
            return parts[0], numbers
    return word, None


def _numbers(text: bytes) -> npt.NDArray[np.float32] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            wide = np.fromstring(text.decode("ascii"), dtype=np.float64, sep=" ")
        except (DeprecationWarning, ValueError):
            return None
    if not text.strip():
        return None
    with np.errstate(over="ignore"):
        return wide.astype(np.float32)  # what is too large becomes infinite, and is refused as such


def _fault(line: bytes, dimensions: int) -> str:
    fields = line.split()[1:]
    if len(fields) == dimensions:
        wrong = next((i for i, field in enumerate(fields, 1) if _numbers(field) is None), 0)
        return f"value {wrong} is not a number"
    return f"{len(fields)} numbers; the lines before have {dimensions}"


def _binary_rows(start: bytes, stream: IO[bytes], path: Path, size: int, dimensions: int) -> Iterator[Entry]:
    width = 4 * dimensions
    kept = start

    def fill(least: int) -> bool:
        nonlocal kept
        while len(kept) < least:
            more = stream.read(max(2**20, least - len(kept)))
            if not more:
                return False
            kept += more
        return True

    position = 0
    for number in range(1, size + 1):
        # Cut off what was used only now and then, or the copying would cost more than the reading.
        if len(kept) - position < width + WORD_LIMIT:
            kept, position = kept[position:], 0
            fill(width + WORD_LIMIT)
        while kept[position : position + 1] == b"\n":  # the original program ends every vector by one
            position += 1
        end = kept.find(b" ", position, position + WORD_LIMIT)
        if end < 0 or len(kept) < end + 1 + width:
            what = "truncated" if end >= 0 or len(kept) - position < WORD_LIMIT else "no end of the word is found"
            where = _location(path, "word2vec binary", number)
            raise RequestError(f"{where} of {size:,}: {what}; fetch the file again")
        vector = np.frombuffer(kept, dtype="<f4", count=dimensions, offset=end + 1)
        yield number, kept[position:end], vector, 0
        position = end + 1 + width
    if kept[position:].strip(b"\n") or stream.read(1):
        raise RequestError(f"{shown(path)}: more follows after the {size:,} words that the header names")


def _table_rows(path: Path) -> tuple[int, Iterator[Entry]]:
    """The dimensions of a Parquet file's vectors, and its rows."""
    table = pq.ParquetFile(path)
    schema = table.schema_arrow
    kinds = {field.name: field.type for field in schema}
    if not pa.types.is_string(kinds.get("word")) or not _is_vector(kinds.get("vector")):
        raise RequestError(f"{shown(path)}: a table without the columns word (text) and vector (list of numbers)")
    if "count" in kinds and not pa.types.is_integer(kinds["count"]):
        raise RequestError(f"{shown(path)}: the column count does not hold whole numbers")
    if not table.metadata.num_rows:
        raise RequestError(f"{shown(path)}: a table without rows")
    first = next(table.iter_batches(1, columns=["vector"])).column(0)[0].as_py()
    dimensions = len(first or ())
    _check_dimensions(path, dimensions)
    return dimensions, _batches(
        table, path, dimensions, [name for name in ("word", "vector", "count") if name in kinds]
    )


def _is_vector(kind: pa.DataType | None) -> bool:
    if kind is None or not (pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)):
        return False
    return bool(pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type))


def _batches(table: pq.ParquetFile, path: Path, dimensions: int, columns: list[str]) -> Iterator[Entry]:
    number = 0
    for batch in table.iter_batches(CHUNK, columns=columns):
        words, vectors = (batch.column(name).to_pylist() for name in ("word", "vector"))
        counts = batch.column("count").to_pylist() if "count" in columns else [0] * len(words)
        for word, vector, count in zip(words, vectors, counts, strict=True):
            number += 1
            if word is None or count is None or count < 0 or vector is None or None in vector:
                raise RequestError(f"{_location(path, 'parquet', number)}: a word, a number or a count is missing")
            if len(vector) != dimensions:
                raise RequestError(
                    f"{_location(path, 'parquet', number)}: {len(vector)} numbers; the rows before have {dimensions}"
                )
            with np.errstate(over="ignore"):
                yield number, word.encode(), np.array(vector, dtype=np.float32), count
