"""The files that a request reads and writes. Outputs appear together and complete, or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO

from lexveil.databases.address import Address, is_address, read_address
from lexveil.errors import LexveilError, RequestError
from lexveil.formats.base import Source
from lexveil.formats.input_files import find_sources
from lexveil.formats.messages import shown
from lexveil.formats.readers import Reader
from lexveil.formats.registry import as_source, format_named, known_names
from lexveil.formats.writers import check_output
from lexveil.ledger.output_files import erase, is_own, make_folder
from lexveil.runtime.hashes import sha256
from lexveil.runtime.user_data import is_of_user, make_user_data

STDIN = "-"
HELD = 256  # hidden files that are held open at most; those of a larger folder are known by their inode's number alone
PARTIAL = ".partial-"  # before the name of an output until it is whole
OPERATORS = ("operator.json", "tokens.parquet", "withheld.csv")  # files that only their owner may read
COMPANIONS = ("record.json", *OPERATORS)
OF_FILE = "; remove it or choose another output"
OF_TABLE = (
    ": it is the record of rows that may still be in the table; run this in another folder, or move the earlier files "
    "aside"
)


@dataclass(frozen=True, slots=True)
class Job:
    """One table to rewrite.

    Attributes:
        out: None for a stream.
        name: tells the files of a folder apart.
        stream: where it is written if that is no file: standard output, or what waits for a table of a database.
    """

    reader: Reader
    out: Path | None
    name: str = ""
    stream: IO[bytes] | None = None


@dataclass(slots=True)
class Outputs:
    """The files of one request while they are written: under hidden names beside where they will stand.

    Attributes:
        target: the file or folder that was asked for; None for standard output.
        more: further files that may go with the output.
        operator: the folder of the operator's files, if they do not stand beside the output.
        begun: those that are being written, by the name that each will have.
        hashes: of those that are written and do not change any more.
    """

    target: Path | None
    more: tuple[Path, ...] = ()
    operator: Path | None = None
    begun: dict[Path, Path] = field(default_factory=dict)
    folders: list[Path] = field(default_factory=list)
    hashes: dict[Path, str] = field(default_factory=dict)
    made: dict[Path, tuple[int, int]] = field(default_factory=dict)  # device and inode of each that stays the same file
    held: list[int] = field(default_factory=list)  # open, so that no other file gets the inode

    def begin(self, final: Path, in_place: bool = True) -> Path:
        """Return where to write what will be ``final``: a file that nobody else may read.

        Args:
            in_place: whether it is written into that file; else another is renamed to it.
        """
        if not final.parent.exists():
            with _faults(final.parent):
                self.folders += make_folder(final.parent)
        partial = partial_name(final)
        with _faults(final):
            # What a killed run left, or a link that somebody laid there, is not written into.
            partial.unlink(missing_ok=True)
            descriptor = os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600)
            status = os.fstat(descriptor)
        if in_place:
            self.made[final] = status.st_dev, status.st_ino
        if in_place and len(self.held) < HELD:
            self.held.append(descriptor)
        else:
            os.close(descriptor)
        self.begun[final] = partial
        return partial

    def sha256(self, final: Path) -> str:
        """The hash of what is written and will be ``final``; it is read once, so it must not change any more."""
        if final not in self.hashes:
            self.hashes[final] = sha256(self.begun[final])
        return self.hashes[final]

    def companion(self, ending: str) -> Path:
        """The name of a file that goes with the output."""
        assert self.target is not None
        name = beside(self.target, ending)
        return self.operator / name.name if self.operator and ending in OPERATORS else name

    def is_private(self, final: Path) -> bool:
        """Whether only the operator may read a file."""
        if self.target is None or (self.operator is not None and final.parent == self.operator):
            return True
        return final in {self.companion(ending) for ending in OPERATORS}

    def all_names(self, finals: Sequence[Path]) -> list[tuple[Path, Path]]:
        """The hidden and the final name of all that a request may write, whether it will or not."""
        names = [*finals, *(self.companion(ending) for ending in COMPANIONS), *self.more]
        return [(partial_name(final), final) for final in names]

    def settle(self) -> list[tuple[Path, Path]]:
        """See that all is on the disk; return hidden and final names, the texts last.

        What is published is readable as the umask has it, the operator's files by their owner alone.
        """
        mask = os.umask(0)
        os.umask(mask)
        for final, partial in self.begun.items():
            with _faults(final), partial.open("rb") as written:
                status = partial.lstat()
                identity = status.st_dev, status.st_ino
                # Another run that writes the same output, an experiment with a known seed, would have it replaced.
                if not is_own(status) or self.made.get(final, identity) != identity:
                    raise LexveilError(
                        f"{shown(final)}: while it was written, somebody linked or replaced its hidden file "
                        f"{shown(partial)}; nothing was released. Write into a folder of your own"
                    )
                os.fchmod(written.fileno(), 0o600 if self.is_private(final) else 0o666 & ~mask)
                os.fsync(written.fileno())
        own = {*(self.companion(ending) for ending in COMPANIONS), *self.more} if self.target else set()
        return sorted(((partial, final) for final, partial in self.begun.items()), key=lambda pair: pair[1] not in own)

    def publish(self) -> None:
        """Give all files their names, the texts last: whoever finds them finds their record too."""
        for partial, final in self.settle():
            with _faults(final):
                os.replace(partial, final)
        self.forget()

    def forget(self) -> None:
        """Leave what was begun where it is: it has its name now."""
        self.begun.clear()
        self.folders.clear()
        self._let_go()

    def _let_go(self) -> None:
        while self.held:
            os.close(self.held.pop())

    def abandon(self) -> None:
        """Remove what was begun."""
        self._let_go()
        for partial in self.begun.values():
            erase(partial)
        for folder in reversed(self.folders):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def beside(out: Path, ending: str) -> Path:
    """The name of what goes with an output."""
    return out.with_name(f"{out.name}.{ending}")


def partial_name(final: Path) -> Path:
    """The name of an output until it is whole. It keeps its ending, which says the form."""
    return final.with_name(f"{PARTIAL}{final.name}")


@contextmanager
def writing(target: Path | None, more: Sequence[Path] = (), operator: Path | None = None) -> Iterator[Outputs]:
    """Give the outputs of a request; what was begun and not published is removed.

    Raises:
        LexveilError: if something cannot be written, in place of the system's error.
    """
    outputs = Outputs(target, tuple(more), operator)
    try:
        with _faults(target or Path("standard output")):
            yield outputs
    finally:
        outputs.abandon()


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        where = Path(error.filename) if isinstance(error.filename, str) else path
        if where.name.startswith(PARTIAL):
            where = where.with_name(where.name.removeprefix(PARTIAL))
        hint = {28: "; free some space", 13: "; see to its permissions", 30: "; choose a folder that can be written"}
        raise LexveilError(
            f"{shown(where)}: cannot be written ({error.strerror or error}){hint.get(error.errno or 0, '')}; "
            + "; ".join(["nothing was released", *getattr(error, "__notes__", ())])
        ) from None


@contextmanager
def find_jobs(
    source: Path | str,
    target: Path | str | None,
    text_columns: Sequence[str],
    subject_column: str | None,
    form: str | None,
    sql: str | None,
    spool: Path,
    spans_column: str | None = None,
) -> Iterator[list[Job]]:
    """Find what is to be read and written, and see that it can be.

    Args:
        source: a file, a folder, the address of a database, or "-" for standard input.
        target: the file or folder to write, "-" for standard output, or None for a table of a database.
        form: how standard input is written, as the ending of a name: jsonl, csv.gz, ...
        sql: the query of a database.
        spool: the folder where standard input and rows of a database are kept meanwhile.
        spans_column: the column that says what a detector found.

    Raises:
        RequestError: if it cannot; nothing is touched then.
    """
    is_stream = source == STDIN or is_address(source)
    is_folder = not is_stream and os.path.isdir(source)  # noqa: PTH112  # no error for a name too long
    if target == STDIN and is_folder:
        raise RequestError(f"{shown(source)}: a folder cannot go to standard output; give -o FOLDER")
    with find_readers(source, text_columns, subject_column, form, spool, sql, spans_column) as readers:
        reader = readers[0]
        if target is None:
            if is_folder or reader.source.format.name != "parquet":
                raise RequestError("only the rows of a query or of a Parquet file, which have types, go into a table")
            with _faults(spool), _temporary(spool) as waiting:
                yield [Job(reader, None, stream=waiting)]
            return
        if not is_folder:
            yield [Job(reader, _target(target, None if is_stream else Path(source), reader.source))]
            return
        out = Path(target)
        with _names(out):
            _check_folder(out, Path(source))
        names = [name_in(source, reader.source.path) for reader in readers]
        yield [Job(reader, out / name, name) for reader, name in zip(readers, names, strict=True)]


def name_in(folder: Path | str, file: Path) -> str:
    """The name of a file of a folder."""
    # Links are followed, so a file may lie elsewhere; where it was found is what names it.
    return os.path.relpath(file, folder)


@contextmanager
def find_readers(
    source: Path | str,
    text_columns: Sequence[str],
    subject_column: str | None,
    form: str | None,
    spool: Path,
    sql: str | None = None,
    spans_column: str | None = None,
) -> Iterator[list[Reader]]:
    """Find what is to be read; arguments as of ``find_jobs``.

    Raises:
        RequestError: if it cannot be read.
    """
    if sql is not None and not is_address(source):
        raise RequestError("--sql: only for a database; IN is its address, such as postgresql://host/database")
    if source != STDIN and form is not None:
        raise RequestError(f"--format {form}: only for standard input; the name of a file says how it is read")
    if source == STDIN:
        with _standard_input(form or "jsonl", spool) as (source_of_stdin, reopen, descriptor):
            yield [Reader(source_of_stdin, text_columns, subject_column, reopen, descriptor, spans_column=spans_column)]
        return
    if is_address(source):
        with _query(str(source), sql, spool) as (place, rows, reopen, descriptor, kinds):
            database = place.engine, kinds
            yield [Reader(rows, text_columns, subject_column, reopen, descriptor, *database, spans_column)]
        return
    files = find_sources([Path(source)])
    yield [Reader(file, text_columns, subject_column, spans_column=spans_column) for file in files]


def _target(target: Path | str, source: Path | None, form: Source) -> Path | None:
    if target == STDIN:
        if not form.format.is_streamable:
            raise RequestError(f"{form.format.title} cannot go to standard output; give -o FILE.{form.format.name}")
        return None
    out = Path(target)
    with _names(out):
        check_output(out, source, form, as_source(out))
        check_companions(out)
    return out


@contextmanager
def _names(out: Path) -> Iterator[None]:
    """Names that the system does not take, or does not let us look up, are a wrong request."""
    try:
        yield
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise RequestError(f"{shown(out)}: no output can have this name ({why}); choose another") from None


def check_companions(out: Path, is_table: bool = False) -> None:
    """See that no file stands where those that go with an output will.

    Args:
        is_table: whether the output is a table, so that earlier files may go with rows that are still in it.

    Raises:
        RequestError: naming the first that does.
    """
    for ending in COMPANIONS:
        with suppress(FileNotFoundError):
            partial_name(beside(out, ending)).lstat()  # else a name that is too long is met only when all is written
        if os.path.lexists(beside(out, ending)):
            raise RequestError(f"{shown(beside(out, ending))}: exists already{OF_TABLE if is_table else OF_FILE}")


def _check_folder(out: Path, source: Path) -> None:
    if out.is_symlink() and not out.exists():
        raise RequestError(f"{shown(out)}: the link leads nowhere; remove it or choose another name")
    real, inside = out.resolve(), source.resolve()
    if real == inside or inside in real.parents or real in inside.parents:
        raise RequestError(f"{shown(out)}: input and output folder must lie outside each other; choose another")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RequestError(f"{shown(out)}: exists already; remove it or choose another name")
    if not out.parent.is_dir():
        raise RequestError(f"{shown(out.parent)}: there is no such folder; make it first")
    check_companions(out)


@contextmanager
def _standard_input(form: str, folder: Path) -> Iterator[tuple[Source, Callable[[], IO[bytes]], int]]:
    """Standard input in a file without a name, which ends with this process: it is read twice."""
    named = as_source(Path(f"stdin.{form}"))
    if named is None:
        raise RequestError(f"--format {form}: not known; give {known_names()}")
    source = Source(Path("standard input"), named.format, named.compression, "stdin")
    with _faults(folder), _temporary(folder) as spool:
        while block := sys.stdin.buffer.read(2**20):
            spool.write(block)
        spool.flush()
        yield source, lambda: _again(spool), spool.fileno()


@contextmanager
def _query(
    address: str, sql: str | None, folder: Path
) -> Iterator[tuple[Address, Source, Callable[[], IO[bytes]], int, Mapping[str, str]]]:
    """The rows of a query in a file without a name, which ends with this process."""
    from lexveil.databases.base import QUERY
    from lexveil.databases.query import spool_query

    place = read_address(address)
    if sql is None:
        raise RequestError(f"{place.shown}: a database takes --sql 'SELECT ...', which says what is read of it")
    with _faults(folder), _temporary(folder) as spool:
        kinds = spool_query(place, sql, spool)
        spool.flush()
        rows = Source(Path(QUERY), format_named("parquet"), "", "query")
        yield place, rows, lambda: _again(spool), spool.fileno(), kinds


@contextmanager
def _temporary(folder: Path) -> Iterator[BinaryIO]:
    """A file without a name, which nobody else can open."""
    if is_of_user(folder):
        make_user_data()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        yield file


def _again(spool: BinaryIO) -> IO[bytes]:
    spool.seek(0)
    return os.fdopen(os.dup(spool.fileno()), "rb")
