"""Properties that must hold for any bytes of a file, and for any text that is tokenized."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np

from lexveil.base.errors import RequestError
from lexveil.io.formats import base, chunks, compression, lines
from lexveil.io.formats.chunks import Texts
from lexveil.io.formats.messages import NoColumnError
from lexveil.io.formats.readers import Reader, SpooledRows, open_table, open_writer
from lexveil.io.formats.registry import as_source

ENDINGS = (
    *(
        f"{kind}{packing}"
        for kind in ("jsonl", "csv", "tsv", "txt")
        for packing in ("", ".gz", ".zst")
    ),
    "parquet",
)
# What messages are made of, and what they name: the columns that are asked for.
_SOURCE = (
    " ".join(file.read_text(encoding="utf-8") for file in Path(base.__file__).parent.glob("*.py"))
    + " text id f"
)


@contextmanager
def small_limits() -> Iterator[None]:
    """Set the limits of readers so low that short inputs meet them, and several chunks."""
    with (
        mock.patch.object(lines, "LINE_LIMIT", 2**12),
        mock.patch.object(compression, "RATIO_FROM", 2**14),
        mock.patch.object(chunks, "ROWS_OF_A_CHUNK", 3),
        mock.patch.object(base, "TEXT_LIMIT", 2**10),
    ):
        yield


def _reader(content: bytes, ending: str, subjects: str | None = None) -> Reader:
    source = as_source(Path(f"f.{ending}"))
    assert source is not None
    return Reader(source, ("text",), subjects, spool=SpooledRows(lambda: io.BytesIO(content), -1))


def read(content: bytes, ending: str, subjects: str | None = None) -> Texts | None:
    """The texts that a file of these bytes holds, None if it is refused; anything else but a
    refusal is raised."""
    try:
        return [row for chunk in _reader(content, ending, subjects).chunks() for row in chunk.texts]
    except RequestError as error:
        check_message(_without_names(error), content)
        return None


def _without_names(error: RequestError) -> str:
    """A message without the names of columns, which it may have."""
    message = str(error)
    for name in error.columns if isinstance(error, NoColumnError) else ():
        message = message.replace(f"`{name}`", "")
    return message


def check_message(message: str, content: bytes) -> None:
    """Check that a message is one line and quotes no word of a file; words of the library's own
    sources are allowed.
    """
    assert "\n" not in message
    ours = {*re.findall(r"\w+", _SOURCE)}
    quoted = {word for word in re.findall(r"\w{3,}", message) if not word.isdigit()} - ours
    assert not any(word.encode() in content for word in quoted), message


def check_file(content: bytes, ending: str) -> bool:
    """Check that a file is read or refused, with the same result twice, and that writing it back
    gives the same content.

    Returns:
        Whether the file was read.
    """
    source = as_source(Path(f"f.{ending}"))
    assert source is not None
    try:
        with open_table(source, "text", (), io.BytesIO(content)) as table:
            for row in table.rows:
                assert row.line >= row.number or source.format.name == "parquet"
    except RequestError as error:
        check_message(_without_names(error), content)
    read(content, ending, "id")
    texts = read(content, ending)
    if texts is None:
        return False
    reader = _reader(content, ending)
    out = io.BytesIO()
    writer = None
    try:
        for chunk in reader.chunks():
            writer = writer or open_writer(reader, out)
            writer.write(chunk, [list(row) for row in chunk.texts], np.ones(len(chunk), dtype=bool))
    finally:
        if writer is not None:
            writer.__exit__(None, None, None)
    assert read(out.getvalue(), ending) == texts
    return True
