"""JSON lines read and written as bytes, by compiled code, where that is worth it; json_lines.py stays the definition.

A line that the compiled code does not know (nested values, escaped keys, any fault) is read as before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lexveil.errors import RequestError
from lexveil.formats import chunks as limits
from lexveil.formats.arrow_tables import ArrowRows
from lexveil.formats.base import TableRequest
from lexveil.formats.chunks import Chunk, Texts
from lexveil.formats.kernels import json_lines as kernels
from lexveil.formats.kernels.json_writing import count_escapes, write_rows
from lexveil.text.strings import letters_of
from lexveil.types import Bytes, Flags, Int64

BLOCK = limits.CHARACTERS + limits.CHARACTERS // 4  # bytes of lines looked at together: about a chunk

# What Python reads of a line: its texts, its subject and where each text lies, in bytes; None of a blank line.
Slow = Callable[[int, bytes], tuple[list[str | None], str | None, Sequence[tuple[int, int]]] | None]


@dataclass(frozen=True, slots=True, repr=False)
class Lines:
    """The lines of a chunk, and where the texts lie in them.

    Attributes:
        data: the lines one after the other.
        bounds: (n, 2) bytes of each row's line.
        spans: (n, k, 2) bytes of each of its texts, as JSON.
    """

    data: Bytes
    bounds: Int64
    spans: Int64

    def __getitem__(self, row: int) -> tuple[list[str], list[int]]:
        """What is between the texts of a row, and the column of each text, in the order of the line."""
        order = np.argsort(self.spans[row, :, 0]).tolist()
        (begin, end), spans = self.bounds[row].tolist(), self.spans[row].tolist()
        edges = [begin, *(edge for column in order for edge in spans[column]), end]
        parts = zip(edges[::2], edges[1::2], strict=True)
        return [self.data[start:stop].tobytes().decode() for start, stop in parts], order

    def with_texts(self, texts: ArrowRows, rows: Int64) -> bytes:
        """Chosen rows with other texts."""
        columns = [letters_of(column) for column in texts.columns]
        letters = columns[0][0] if len(columns) == 1 else np.concatenate([part for part, _ in columns])
        letters.flags.writeable = False  # as those of Arrow are, or the kernel would be compiled twice
        shifts = np.cumsum([0, *(len(part) for part, _ in columns)]).tolist()
        offsets = [part + shift for (_, part), shift in zip(columns, shifts, strict=False)]
        begins, ends = np.concatenate([part[:-1] for part in offsets]), np.concatenate([part[1:] for part in offsets])
        valid = np.concatenate([column.is_valid().to_numpy(zero_copy_only=False) for column in texts.columns])
        lines = int((self.bounds[rows, 1] - self.bounds[rows, 0]).sum())
        size = lines + len(letters) + 5 * count_escapes(letters) + (1 + 4 * len(columns)) * len(rows)
        out = np.empty(size, np.uint8)
        written = write_rows(self.data, self.bounds, self.spans, rows, letters, begins, ends, valid, out)
        return out[:written].tobytes()


def written(lines: Any, texts: Texts, rows: Sequence[int]) -> bytes | None:
    """Chosen rows with other texts; None if they were not read here."""
    if not isinstance(lines, Lines):
        return None
    if not isinstance(texts, ArrowRows):
        texts = ArrowRows([pa.array(column, pa.large_string()) for column in zip(*texts, strict=True)])
    return lines.with_texts(texts, np.array(rows, np.int64))


class _Gathered:
    """Rows on their way into a chunk."""

    def __init__(self, first: int, n_texts: int) -> None:
        self.first, self.rows, self.characters, self.size = first, 0, 0, 0
        self.places: list[int] = []
        self.subjects: list[str] = []
        self.data: list[Bytes] = []
        self.bounds: list[Int64] = []
        self.spans: list[Int64] = []
        self.columns: list[list[pa.LargeStringArray]] = [[] for _ in range(n_texts)]

    @property
    def is_full(self) -> bool:
        """Whether the chunk ends here; as ``gather`` has it."""
        return self.rows >= limits.ROWS or self.characters >= limits.CHARACTERS

    def add(self, data: Bytes, bounds: Int64, spans: Int64, columns: Sequence[pa.LargeStringArray]) -> None:
        """Add rows that lie in ``data`` one after the other."""
        self.data.append(data)
        self.bounds.append(bounds + self.size)
        self.spans.append(spans + self.size)
        self.size += len(data)
        self.rows += len(bounds)
        for parts, column in zip(self.columns, columns, strict=True):
            parts.append(column)

    def chunk(self, has_subjects: bool, for_writing: bool) -> Chunk:
        """All of them."""
        texts = ArrowRows([parts[0] if len(parts) == 1 else pa.concat_arrays(parts) for parts in self.columns])
        lines = None
        if for_writing:
            data = np.concatenate(self.data)
            data.flags.writeable = False  # as what is read from Arrow, or kernels would be compiled twice
            lines = Lines(data, np.concatenate(self.bounds), np.concatenate(self.spans))
        return Chunk(self.first, self.places, texts, self.subjects if has_subjects else None, lines)


class ByteReader:
    """Reads lines into chunks.

    Args:
        request: what is read of them.
        slow: reads a line that the compiled code does not know.
        locate: where a line is, for messages.
        for_writing: whether to keep what is needed to write the lines back.
    """

    def __init__(self, request: TableRequest, slow: Slow, locate: Callable[[int], str], for_writing: bool) -> None:
        self.request, self.slow, self.locate, self.for_writing = request, slow, locate, for_writing
        names = [name.encode() for name in (*request.texts, *([] if request.subject is None else [request.subject]))]
        self.names = np.frombuffer(b"".join(names), np.uint8)
        self.ends = np.cumsum([0, *map(len, names)])
        self.sizes = np.zeros(len(names), np.int64)

    def chunks(self, lines: Iterator[bytes], number: int) -> Iterator[Chunk]:
        """All chunks of a file.

        Args:
            lines: of the file, from the first row on.
            number: of the first of them.

        Raises:
            RequestError: naming the first fault.
        """
        gathered = _Gathered(1, len(self.request.texts))
        waiting, size, ended, fault = list[bytes](), 0, False, None
        while True:
            try:
                while size < BLOCK and len(waiting) < limits.ROWS and not ended:
                    line = next(lines, None)
                    ended = line is None
                    if line is not None:
                        waiting.append(line)
                        size += len(line)
            except RequestError as error:
                fault, ended = error, True  # once the lines before it are read
            if not waiting:
                break
            used = self._read(waiting, number, gathered)
            number += used
            size -= sum(map(len, waiting[:used]))
            del waiting[:used]
            if gathered.is_full:
                yield gathered.chunk(self.request.subject is not None, self.for_writing)
                gathered = _Gathered(gathered.first + gathered.rows, len(self.request.texts))
        if fault is not None:
            raise fault
        if gathered.rows:
            yield gathered.chunk(self.request.subject is not None, self.for_writing)

    def _read(self, waiting: Sequence[bytes], number: int, gathered: _Gathered) -> int:
        """Read lines until a chunk is full; how many it took."""
        joined = b"".join(waiting)
        data, starts = np.frombuffer(joined, np.uint8), np.cumsum([0, *map(len, waiting)])
        k, n_names = len(self.request.texts), len(self.sizes)
        spans = np.empty((len(waiting), n_names, 2), np.int64)
        kinds = np.empty((len(waiting), n_names), np.int8)
        until = np.array([0, limits.ROWS - gathered.rows, limits.CHARACTERS])
        done = np.array([0, 0, gathered.characters])
        readable = _is_utf8(joined)
        while done[kernels.LINES] < len(waiting):
            line, row = done[: kernels.CHARACTERS].tolist()
            why = kernels.UNKNOWN
            if readable:
                why = kernels.scan(
                    data, starts, k, limits.TEXT_LIMIT, self.names, self.ends, until, done, spans, kinds, self.sizes
                )
            stop, last = done[: kernels.CHARACTERS].tolist()
            gathered.characters = int(done[kernels.CHARACTERS])
            if stop > line:
                self._add(data, starts[line : stop + 1], number + line, spans[row:last], kinds[row:last], gathered)
            if why != kernels.UNKNOWN:
                break
            rows = gathered.rows
            self._add_slowly(waiting[stop], number + stop, gathered)
            done[:] = stop + 1, last + gathered.rows - rows, gathered.characters
            if gathered.is_full:
                break
        return int(done[kernels.LINES])

    def _add(
        self, data: Bytes, starts: Int64, number: int, spans: Int64, kinds: kernels.Kinds, gathered: _Gathered
    ) -> None:
        """Add lines that were understood, one row each."""
        begin, k = int(starts[0]), len(self.request.texts)
        gathered.places += range(number, number + len(spans))
        if self.request.subject is not None:
            for line, (start, end) in enumerate(spans[:, k].tolist(), number):
                value = json.loads(data[start:end].tobytes())
                gathered.subjects.append(self.request.subject_of(value, self.locate(line)))
        columns = []
        for column in range(k):
            own, kind = spans[:, column].copy(), kinds[:, column].copy()
            out, offsets = np.empty(int((own[:, 1] - own[:, 0]).sum()), np.uint8), np.empty(len(own) + 1, np.int64)
            kernels.read_strings(data, own, kind, out, offsets)
            columns.append(_strings(out[: offsets[-1]], offsets, kind == kernels.NULL))
        bounds = np.stack([starts[:-1], starts[1:]], axis=1) - begin
        gathered.add(data[begin : int(starts[-1])], bounds, spans[:, :k] - begin, columns)

    def _add_slowly(self, raw: bytes, number: int, gathered: _Gathered) -> None:
        """Add a line that only Python knows, if it is not blank."""
        if (found := self.slow(number, raw)) is None:
            return
        texts, subject, spans = found
        gathered.places.append(number)
        gathered.subjects.append(subject or "")
        gathered.characters += sum(len(text) for text in texts if text is not None)
        placed = np.array(spans, np.int64).reshape(1, -1, 2)
        columns = [pa.array([text], pa.large_string()) for text in texts]
        gathered.add(np.frombuffer(raw, np.uint8), np.array([[0, len(raw)]]), placed, columns)


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _strings(letters: Bytes, offsets: Int64, null: Flags) -> pa.LargeStringArray:
    """Strings one after the other, without those that are null."""
    validity = None
    if null.any():
        validity = pa.py_buffer(np.packbits(~null, bitorder="little"))
    return pa.LargeStringArray.from_buffers(len(null), pa.py_buffer(offsets), pa.py_buffer(letters.copy()), validity)
