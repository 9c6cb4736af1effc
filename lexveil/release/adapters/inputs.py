"""Find the inputs to read (files, folders, standard input, the rows of a query), and the paths of
their outputs.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, BinaryIO

from lexveil.base.errors import RequestError, option
from lexveil.base.logs import logger
from lexveil.base.runtime.objects import ObjectPath, as_path
from lexveil.base.runtime.user_data import is_of_user, make_user_data
from lexveil.io.artifacts.model import Model
from lexveil.io.databases.address import is_address, read_address
from lexveil.io.formats.base import Source
from lexveil.io.formats.delimited import Delimited
from lexveil.io.formats.input_files import find_sources
from lexveil.io.formats.lines import LineFormat
from lexveil.io.formats.messages import is_name, is_of_persons, is_utf8, names, shown
from lexveil.io.formats.readers import Reader, SpooledRows, check_output, require_folder
from lexveil.io.formats.registry import as_source, format_named, known_names
from lexveil.io.formats.text_columns import USUAL, SeveralTextColumnsError
from lexveil.io.request import FileRequest
from lexveil.release.outputs import check_companions, write_errors

LOG = logger(__name__)

STDIN = "-"
# bytes of input below which worker processes cost more than they save; a larger number of bytes
# justifies any number of workers
SMALL_FILE = 2**21


def workers_for(request: FileRequest, n_bytes: int, model: Model) -> int:
    """Return the number of processes to use for an input of ``n_bytes`` bytes."""
    return request.workers or (1 if n_bytes < SMALL_FILE else model.configuration.machine.workers)


@dataclass(frozen=True, slots=True)
class Job:
    """One table to rewrite: an input file and the output that it is written to.

    Attributes:
        out: the file to write; None for a stream.
        name: the name of the table among the files of a folder.
        stream: the target of an output that is not a file: standard output, or the object that
            writes a table of a database.
    """

    reader: Reader
    out: Path | None
    name: str = ""
    stream: IO[bytes] | None = None


@contextmanager
def find_jobs(
    source: Path | str, target: Path | str | None, request: FileRequest, spool: Path
) -> Iterator[list[Job]]:
    """Find the files to read and the files to write, check that all of them can be opened, and
    yield them as one list.

    Args:
        source: a file, a folder, the address of a database, or "-" for standard input.
        target: the file or folder to write, "-" for standard output, or None for a table of a
            database.
        spool: the folder that temporarily stores standard input or the rows of a database.

    Raises:
        RequestError: if a file cannot be opened; nothing is changed then.
    """
    is_stream = source == STDIN or is_address(source)
    is_folder = is_a_folder(source)
    if target == STDIN and is_folder:
        raise RequestError(
            f"{shown(source)}: a folder cannot be written to standard output; give -o FOLDER"
        )
    with find_readers(source, request, spool) as readers:
        reader = readers[0]
        if target is None:
            if is_folder or reader.source.format.name != "parquet":
                raise RequestError(
                    "only the rows of a query or of a Parquet file, which have types, can "
                    "be written to a table"
                )
            with write_errors(spool), _temporary(spool) as waiting:
                yield [Job(reader, None, stream=waiting)]
            return
        if not is_folder:
            yield [
                Job(reader, _target(target, None if is_stream else as_path(source), reader.source))
            ]
            return
        out = as_path(target)
        with _names(out):
            _check_folder(out, as_path(source))
        names = [name_in(source, reader.source.path) for reader in readers]
        yield [Job(reader, out / name, name) for reader, name in zip(readers, names, strict=True)]


def is_a_folder(source: Path | str) -> bool:
    """Return whether the source is a folder whose files are read one by one. No error is raised
    here if the folder cannot be opened.
    """
    with suppress(OSError):  # the name may be too long, or the storage may refuse the request
        return source != STDIN and not is_address(source) and as_path(source).is_dir()
    return False


def name_in(folder: Path | str, file: Path) -> str:
    """Return the name of a file relative to its folder, as privacy records state it.

    Raises:
        RequestError: if the name is not UTF-8. Privacy records are UTF-8 and contain the names of
            files.
    """
    # Links are followed, so the file may lie in another folder. Its name is the path at which it
    # was found.
    name = os.path.relpath(file, folder)
    if not is_utf8(name):
        raise RequestError(
            f"{shown(file)}: the name is not UTF-8, but the record names the files of a "
            "folder; rename the file"
        )
    return name


@contextmanager
def find_readers(source: Path | str, request: FileRequest, spool: Path) -> Iterator[list[Reader]]:
    """Find the files to read, and yield them as one list. The arguments are those of ``find_jobs``.

    Raises:
        RequestError: if the source cannot be read.
    """
    columns = request.text_column, request.subject_column, request.spans_column
    form = request.form
    sql = request.sql
    if sql is not None and not is_address(source):
        raise RequestError(
            f"{option('sql')} is only for a database; give its address as IN, such as "
            "postgresql://host/database"
        )
    if source != STDIN and form is not None:
        raise RequestError(
            f"{option('form')} {form} is only for standard input; the name of a file "
            "determines its format"
        )
    with ExitStack() as stack:
        if source != STDIN and not is_address(source):
            readers = [Reader(file, *columns) for file in find_sources([as_path(source)])]
        # in a file without a name, which ends with this process, because the rows are read twice
        else:
            stack.enter_context(write_errors(spool))
            file = stack.enter_context(_temporary(spool))
            rows = SpooledRows(lambda: _again(file), file.fileno())
            if source == STDIN:
                origin = _spool_stdin(form or "jsonl", file)
            else:
                origin, engine, kinds = _spool_rows(str(source), sql, file)
                rows = replace(rows, engine=engine, kinds=kinds)
            file.flush()
            readers = [Reader(origin, *columns, rows)]
        for reader in readers:
            reader.source = _insisted(reader.source, request)
            reader.tell = _tell_dialect
        if not request.text_column:
            _find_text_column(readers)
        yield readers


def _insisted(source: Source, request: FileRequest) -> Source:
    """Return an input file with the text settings that the user requested, such as its encoding.

    Raises:
        RequestError: if the format of the file has no such setting.
    """
    if request.delimiter is not None and not isinstance(source.format, Delimited):
        raise RequestError(
            f"{source.shown}: {option('delimiter')} is only for CSV and TSV; remove it"
        )
    if request.encoding is not None and not isinstance(source.format, LineFormat):
        raise RequestError(
            f"{source.shown}: {option('encoding')} is only for text formats; remove it"
        )
    return replace(source, delimiter=request.delimiter, encoding=request.encoding)


def _tell_dialect(remark: str) -> None:
    LOG.info(
        f"{remark}; the output is written in the same way; --delimiter and --encoding "
        "(delimiter=, encoding=) set other values"
    )


def _find_text_column(readers: Sequence[Reader]) -> None:
    """Choose the text column by type and name, if all files have exactly one column that could
    contain texts.

    Raises:
        SeveralTextColumnsError: if there are several such columns.
    """
    found = dict.fromkeys(column for reader in readers for column in reader.text_columns_by_name())
    where = readers[0].source.shown
    if USUAL in found:  # a later check refuses files without the column
        found = {USUAL: None}
    if len(found) > 1:
        raise SeveralTextColumnsError(
            where,
            list(found),
            _named(found, readers),
            are_names=all(map(is_name, _columns_of(readers))),
        )
    for reader in readers:
        reader.text_columns = list(found)
    if list(found) != [USUAL]:
        LOG.info(
            f"the texts are in column {_named(found, readers)}, according to its name; "
            "--text-column (text_column=) names another column"
        )


def tell_columns(readers: Sequence[Reader], request: FileRequest) -> None:
    """Warn the operator, before any epsilon is spent, which columns are published unchanged and
    which columns may identify the person of a row.

    Args:
        readers: the readers of the input files, which were checked already, so that their columns
            are known.
    """
    others = other_columns(readers)
    paths = dict.fromkeys(path for reader in readers for path in reader.table.paths)
    if others:
        but = f" (except for {names(paths)})" if paths else ""
        LOG.warning(
            f"published unchanged, with any names in them: {_named(others, readers)}{but}; remove "
            "columns that must not be published, or rewrite them too"
        )
    persons = [name for name in others if is_of_persons(name)]
    if persons and request.subject_column is None and request.is_release:
        LOG.warning(
            "each text has its own budget; --subject-column (subject_column=) gives all "
            f"texts of a person one budget, perhaps by {_named(persons, readers)}"
        )


def other_columns(readers: Sequence[Reader]) -> list[str]:
    """Return the names of the columns that are published unchanged."""
    others = dict[str, None]()
    for reader in readers:
        if reader.source.format.has_columns:
            others |= dict.fromkeys(
                name for name in reader.table.columns if name not in reader.request.rewritten
            )
    return list(others)


def _named(columns: Iterable[str], readers: Sequence[Reader]) -> str:
    """Return column names as a list in words for a message. A name of several words is replaced by
    the column's number, because without a header the "name" may be a text of the data.
    """
    every = _columns_of(readers)
    if all(map(is_name, every)):
        return names(columns)
    return (
        ", ".join(f"no. {every.index(column) + 1}" for column in columns)
        + " (not each name is a single word)"
    )


def _columns_of(readers: Sequence[Reader]) -> list[str]:
    """Return the names of the columns of all files, without duplicates."""
    return list(dict.fromkeys(column for reader in readers for column in reader.table.columns))


def _spool_stdin(form: str, file: BinaryIO) -> Source:
    named = as_source(Path(f"stdin.{form}"))
    if named is None:
        raise RequestError(
            f"{option('form')} {form} is not a known format; choose from {known_names()}"
        )
    if sys.stdin is None:
        raise RequestError(
            "standard input is closed; connect it to a file or to the output of a program"
        )
    if sys.stdin.isatty():
        LOG.info("reading standard input; Ctrl-D ends it")
    size = 2**20
    n_read = 2**20
    # a shorter read is the end; reading again would require a second Ctrl-D on a terminal
    while n_read == size:
        try:
            content = sys.stdin.buffer.read(size)
        except OSError as error:
            raise RequestError(f"standard input cannot be read ({error.strerror})") from None
        n_read = file.write(content)
    return Source(Path("standard input"), named.format, named.compression, "stdin")


def _spool_rows(
    address: str, sql: str | None, file: BinaryIO
) -> tuple[Source, str, Mapping[str, str]]:
    """Run a query, write its rows to a temporary file, and return this file as a source, the name
    of the database engine, and the engine's type of each column.
    """
    from lexveil.io.databases.base import QUERY, spool_query

    database = read_address(address)
    if sql is None:
        raise RequestError(
            f"{database.shown}: a database needs {option('sql')} 'SELECT ...', which "
            "selects the rows to read"
        )
    kinds = spool_query(database, sql, file)
    return Source(Path(QUERY), format_named("parquet"), "", "query"), database.engine, kinds


def _target(target: Path | str, source: Path | None, form: Source) -> Path | None:
    if target == STDIN:
        if sys.stdout is None:
            raise RequestError(
                "standard output is closed; connect it to a file or to a program that reads it"
            )
        if not form.format.is_streamable:
            raise RequestError(
                f"{form.format.title} cannot be written to standard output; give -o "
                f"FILE.{form.format.name}"
            )
        return None
    out = as_path(target)
    with _names(out):
        check_output(out, source, form, as_source(out))
        check_companions(out)
    return out


@contextmanager
def _names(out: Path) -> Iterator[None]:
    """Raise a RequestError, instead of an operating system error, if the path of an output is
    rejected or may not be accessed.
    """
    if isinstance(out, ObjectPath) and out.is_bucket:
        raise RequestError(
            f"{shown(out)}: the address is a bucket; give the name of an object in it"
        )
    if not is_utf8(str(out)):
        raise RequestError(
            f"{shown(out)}: an output cannot have this name, which is not UTF-8; choose another"
        )
    try:
        yield
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise RequestError(
            f"{shown(out)}: an output cannot have this name ({why}); choose another"
        ) from None


def _check_folder(out: Path, source: Path) -> None:
    if out.is_symlink() and not out.exists():
        raise RequestError(
            f"{shown(out)}: the target of the link does not exist; remove the link or "
            "choose another name"
        )
    real = out.resolve()
    inside = source.resolve()
    if real == inside or inside in real.parents or real in inside.parents:
        raise RequestError(
            f"{shown(out)}: the output folder must not be inside the input folder, nor the "
            "input folder inside it; choose another folder"
        )
    if out.exists() and (not out.is_dir() or _has_files(out)):
        raise RequestError(
            f"{shown(out)}: the output exists already; remove it or choose another name"
        )
    require_folder(out if isinstance(out, ObjectPath) else out.parent)
    check_companions(out)


def _has_files(folder: Path) -> bool:
    """Return whether a folder contains any file. Object storage may keep empty folders after failed
    uploads.
    """
    return any(
        entry.is_symlink() or not entry.is_dir() or _has_files(entry) for entry in folder.iterdir()
    )


def make_spool(folder: Path) -> None:
    """Create the temporary folder that stores files until they are uploaded or published."""
    if is_of_user(folder):
        make_user_data()
    folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def _temporary(folder: Path) -> Iterator[BinaryIO]:
    """Yield a temporary file without a name in ``folder``, so that no other process can open it."""
    make_spool(folder)
    with tempfile.TemporaryFile(dir=folder) as file:
        yield file


def _again(spool: BinaryIO) -> IO[bytes]:
    spool.seek(0)
    return os.fdopen(os.dup(spool.fileno()), "rb")
