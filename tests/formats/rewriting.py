"""A file that is read and written back with other texts in its column ``text``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from lexveil.formats.readers import Reader, open_writer
from lexveil.formats.registry import as_source


def rewritten(
    file: Path, text: Callable[[int], str] = lambda row: "word", is_kept: Callable[[int], bool] = lambda row: True
) -> Path:
    """The file that comes of it; texts and what is kept follow from the number of the row, from 1."""
    source, out, writer = as_source(file), file.with_name(f"out{''.join(file.suffixes)}"), None
    assert source is not None
    reader = Reader(source, ("text",))
    for chunk in reader.chunks():
        writer = writer or open_writer(reader, out)
        rows = range(chunk.first, chunk.first + len(chunk))
        writer.write(chunk, [[text(row)] for row in rows], np.array([is_kept(row) for row in rows], dtype=np.bool_))
    assert writer is not None
    writer.__exit__(None, None, None)
    return out
