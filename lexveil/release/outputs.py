"""Management of the files that one request writes. Either all outputs appear together and complete,
or no output appears.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from lexveil.base.errors import LexveilError, RequestError
from lexveil.base.runtime.hashes import sha256
from lexveil.base.runtime.objects import ObjectPath
from lexveil.io.formats.messages import shown
from lexveil.release.ledger.output_files import bring, erase, is_own, make_folder

# largest number of hidden files that stay open; in a larger folder, hidden files are identified by
# their inode number alone
HELD = 256
PARTIAL = ".partial-"  # prefix of the name of an output until it is complete
TRIED = (
    # prefix of the name of a test file; it has the same length, so that the name fits if the hidden
    # name fits
    ".probing-"
)
# error numbers by which a system rejects a name
NO_NAME = (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)
# permissions of files that only their owner may read
OPERATORS = ("operator.json", "tokens.parquet", "withheld.csv")
STATEMENT = "statement.txt"
COMPANIONS = ("record.json", STATEMENT, *OPERATORS)
OF_FILE = "; remove it or choose another output"
OF_TABLE = (
    "; it is the record of rows that may still be in the table, so run this in another "
    "folder, or move the earlier files aside"
)


@dataclass(slots=True)
class Outputs:
    """The output files of one request while they are written. Each file first has a hidden name, in
    the folder of its final path.

    Files for object storage are written to local files, and uploaded when all files are complete.

    Attributes:
        target: the requested file or folder; None for standard output.
        more: further files that may accompany the output.
        operator: the folder of the operator's files, if it is not the folder of the output.
        waiting: the local folder of the files that will be uploaded.
        begun: hidden paths of the files that are being written, by the final path of each file.
        hashes: hashes of files that are complete and do not change any more.
    """

    target: Path | None
    more: tuple[Path, ...] = ()
    operator: Path | None = None
    waiting: Path = Path()
    begun: dict[Path, Path] = field(default_factory=dict)
    folders: list[Path] = field(default_factory=list)
    hashes: dict[Path, str] = field(default_factory=dict)
    # device and inode of each file, which must stay the same
    made: dict[Path, tuple[int, int]] = field(default_factory=dict)
    # open descriptors, so that no other file gets the inode
    held: list[int] = field(default_factory=list)

    def begin(self, final: Path, in_place: bool = True) -> Path:
        """Register an output file, and return the hidden path at which to write it until
        publication. Only its owner can read the hidden file.

        Args:
            in_place: whether the file is written at the hidden path. Otherwise another file is
                renamed to it.
        """
        partial = partial_name(final, self.waiting)
        with write_errors(partial.parent):
            self._make_folder(partial.parent)
        with write_errors(final):
            # Do not write into a file that a killed run left, or into a link that another user
            # created.
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

    def _make_folder(self, folder: Path) -> None:
        if not folder.exists():
            self.folders += make_folder(folder, 0o700 if folder == self.waiting else 0o777)

    def try_names(self, finals: Sequence[Path]) -> None:
        """Test that all output names can be written, by creating a file under each name and
        removing it again.

        Only the disk itself knows which names it accepts, which names it considers equal, and
        whether it is writable. The test takes place before anything is charged.

        Args:
            finals: the output files, as in ``all_names``.

        Raises:
            RequestError: if the disk rejects a name; the message names the first such file.
            LexveilError: if a file cannot be written; the message names the first such file.
        """
        tried: dict[tuple[int, int], Path] = {}
        with ExitStack() as made:
            for partial, final in self.all_names(finals) if self.target is not None else ():
                probe = partial.with_name(TRIED + partial.name.removeprefix(PARTIAL))
                with write_errors(final), _names_refused(final):
                    self._make_folder(partial.parent)
                    with suppress(FileExistsError):  # of a simultaneous run, or of this run
                        os.close(os.open(probe, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))
                        made.callback(probe.unlink, missing_ok=True)
                    status = probe.lstat()
                other = tried.setdefault((status.st_dev, status.st_ino), final)
                if other is not final:
                    raise RequestError(
                        f"{shown(other)} and {shown(final)} would be the same file on this "
                        "disk; rename one, or choose another output"
                    )

    def sha256(self, final: Path) -> str:
        """Return the SHA-256 of a written output file, given its final path. The file is read once,
        so it must not change afterwards.
        """
        if final not in self.hashes:
            self.hashes[final] = sha256(self.begun[final])
        return self.hashes[final]

    def companion(self, ending: str) -> Path:
        """Return the path of a file next to the output, such as the privacy record, with the given
        ending.
        """
        assert self.target is not None
        name = beside(self.target, ending)
        return self.operator / name.name if self.operator and ending in OPERATORS else name

    def is_private(self, final: Path) -> bool:
        """Return whether only the operator may read an output file."""
        if self.target is None or (self.operator is not None and final.parent == self.operator):
            return True
        return final in {self.companion(ending) for ending in OPERATORS}

    def all_names(self, finals: Sequence[Path]) -> list[tuple[Path, Path]]:
        """Return the hidden and the final path of every file that a request may write, even if it
        will not write all of them.
        """
        names = [*finals, *(self.companion(ending) for ending in COMPANIONS), *self.more]
        return [(partial_name(final, self.waiting), final) for final in names]

    def settle(self) -> list[tuple[Path, Path]]:
        """Check that all written files are on the disk, and return their hidden and final paths,
        with the files of texts last. For object storage, return the paths of the privacy record
        only.

        Published files get the permissions of the umask. Only the owner may read the operator's
        files.
        """
        mask = os.umask(0)
        os.umask(mask)
        for final, partial in self.begun.items():
            with write_errors(final), partial.open("rb") as written:
                status = partial.lstat()
                identity = status.st_dev, status.st_ino
                # Detect a replaced file: another run with the same output, such as an experiment
                # with a known seed, could have replaced it.
                if not is_own(status) or self.made.get(final, identity) != identity:
                    raise LexveilError(
                        f"{shown(final)}: somebody linked or replaced the hidden file "
                        f"{shown(partial)} while it was written, so nothing was released; "
                        "write into a folder that only you can write to"
                    )
                os.fchmod(written.fileno(), 0o600 if self.is_private(final) else 0o666 & ~mask)
                os.fsync(written.fileno())
        own = (
            {*(self.companion(ending) for ending in COMPANIONS), *self.more}
            if self.target
            else set()
        )
        pairs = [(partial, final) for final, partial in self.begun.items()]
        # the record lists the objects of the output with their hashes
        if isinstance(self.target, ObjectPath):
            return sorted(pairs, key=lambda pair: pair[1] == self.companion("record.json"))
        return sorted(pairs, key=lambda pair: pair[1] not in own)

    def publish(self) -> None:
        """Rename all files to their final names. The files of texts are renamed last, so that texts
        are never visible without their privacy record.
        """
        pairs = self.settle()
        with write_errors(self.target or Path()):
            bring(pairs)
        self.forget()

    def forget(self) -> None:
        """Stop tracking the written files without removing them, because they have their final
        names.
        """
        self.begun.clear()
        self.folders.clear()
        self._let_go()

    def _let_go(self) -> None:
        while self.held:
            os.close(self.held.pop())

    def abandon(self) -> None:
        """Remove all files that were begun but not published."""
        self._let_go()
        for partial in self.begun.values():
            erase(partial)
        for folder in reversed(self.folders):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def beside(out: Path, ending: str) -> Path:
    """Return the path of a file next to an output, such as the privacy record, with the given
    ending.
    """
    return out.with_name(f"{out.name}.{ending}")


def partial_name(final: Path, waiting: Path = Path()) -> Path:
    """Return the hidden path of an output until the output is complete. It ends like the output's
    name. For object storage the path is in the folder ``waiting``.
    """
    if isinstance(final, ObjectPath):
        digest = blake2b(str(final).encode(), digest_size=16).hexdigest()
        return waiting / f"{PARTIAL}{digest}-{final.name[-32:]}"
    return final.with_name(f"{PARTIAL}{final.name}")


@contextmanager
def writing(
    target: Path | None,
    more: Sequence[Path] = (),
    operator: Path | None = None,
    waiting: Path = Path(),
) -> Iterator[Outputs]:
    """Yield the manager of a request's output files. Afterwards, remove all files that were begun
    but not published.

    Raises:
        LexveilError: if a file cannot be written; it replaces the system's error.
    """
    outputs = Outputs(target, tuple(more), operator, waiting)
    try:
        with write_errors(target or Path("standard output")):
            yield outputs
    finally:
        outputs.abandon()


@contextmanager
def _names_refused(final: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in NO_NAME:
            raise
        raise RequestError(
            f"{shown(final)}: no output can have this name ({error.strerror}); rename the file, or "
            "choose another output"
        ) from None


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Convert an operating system error in the block to a one-line error that names the file.

    Raises:
        LexveilError: if the block raises an error of the operating system.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        where = Path(error.filename) if isinstance(error.filename, str) else path
        if where.name.startswith((PARTIAL, TRIED)):
            where = where.with_name(where.name.removeprefix(PARTIAL).removeprefix(TRIED))
        hint = {
            28: "; free some space",
            13: "; check its permissions",
            30: "; choose a writable folder",
        }
        raise LexveilError(
            f"{shown(where)}: the path cannot be written "
            f"({error.strerror or error}){hint.get(error.errno or 0, '')}; "
            + "; ".join(["nothing was released", *getattr(error, "__notes__", ())])
        ) from None


def check_companions(out: Path, is_table: bool = False) -> None:
    """Check that the files to be written next to an output, such as its privacy record, do not
    exist yet.

    Args:
        is_table: whether the output is a table. Existing files may then belong to rows that are
            still in the table.

    Raises:
        RequestError: if such a file exists; the message names the first one.
    """
    for ending in COMPANIONS:
        with suppress(FileNotFoundError):
            # otherwise a name that is too long would cause an error only after all texts are
            # written
            partial_name(beside(out, ending)).lstat()
        if beside(out, ending).is_symlink() or beside(out, ending).exists():
            raise RequestError(
                f"{shown(beside(out, ending))}: the file exists "
                f"already{(OF_TABLE if is_table else OF_FILE)}"
            )
