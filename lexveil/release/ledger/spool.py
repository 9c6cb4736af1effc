"""Temporary storage of Arrow batches in a file without a name, which disappears with its process.
The batches can be read repeatedly, in constant memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator

import pyarrow as pa


class Spool:
    """Temporary file of Arrow batches that are written once and read repeatedly."""

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch] = ()) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._writer = pa.ipc.new_stream(self._file, schema)
        for batch in batches:
            self.add(batch)

    def add(self, batch: pa.RecordBatch) -> None:
        """Write the next batch. All batches must be written before reading begins."""
        self._writer.write_batch(batch)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield all batches, from the first. Only one iteration can run at a time."""
        self._writer.close()
        self._file.seek(0)
        with pa.ipc.open_stream(self._file) as reader:
            yield from reader
