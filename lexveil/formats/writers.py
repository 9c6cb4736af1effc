"""Writing a user's table back in its own format: the text columns replaced, everything else and its order unchanged.

Of JSON the bytes between texts stay as they are, number for number; of CSV and TSV every other field keeps its
characters; of Parquet every column keeps its type.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO

from lexveil.errors import RequestError
from lexveil.formats.base import Formulas, Source, Writer
from lexveil.formats.messages import shown
from lexveil.formats.readers import Reader

__all__ = ["Formulas", "Writer", "check_output", "open_writer"]


def open_writer(reader: Reader, out: Path | IO[bytes], formulas: Formulas = "keep") -> Writer:
    """Return what writes the chunks of ``reader``, which must have begun to read, to a file or an open stream.

    It takes a text for each column of ``TableRequest.rewritten``.
    """
    return reader.source.format.writer(reader.table, reader.request.rewritten, out, formulas)


def check_output(out: Path, source: Path | None, form: Source, named: Source | None) -> None:
    """See that ``out`` can be written before any work is done.

    Args:
        out: the file to write.
        source: the input, if it is a file.
        form: how it is read.
        named: how the name of ``out`` says that it is to be read.

    Raises:
        RequestError: if it is the input, a link, exists and is not empty, has no folder, or has another ending.
    """
    if source is not None and out.exists() and out.samefile(source):
        raise RequestError(f"{shown(out)}: the output would replace the input; give it another name")
    if out.is_symlink():
        raise RequestError(f"{shown(out)}: is a link; remove it or name the file to write")
    if out.is_dir():
        raise RequestError(f"{shown(out)}: is a folder; name the file to write")
    if out.exists() and out.stat().st_size:
        raise RequestError(f"{shown(out)}: exists already; remove it or choose another name")
    if not out.parent.is_dir():
        raise RequestError(f"{shown(out.parent)}: there is no such folder; make it first")
    if named is None or (named.format, named.compression) != (form.format, form.compression):
        raise RequestError(f"{shown(out)}: the output has the input's form, so its name must end like the input's")
