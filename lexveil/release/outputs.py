"""The files that a request reads and writes. Outputs appear together and complete, or not at
all.
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

# hidden files that are held open at most; those of a larger folder are known by their inode's
# number alone
HELD = 256
PARTIAL = ".partial-"  # before the name of an output until it is whole
TRIED = (
    ".probing-"  # before a name that is only tried: as long, so that it fits where that one does
)
# what a system says of a name that it does not take
NO_NAME = (errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)
# files that only their owner may read
OPERATORS = ("operator.json", "tokens.parquet", "withheld.csv")
STATEMENT = "statement.txt"
COMPANIONS = ("record.json", STATEMENT, *OPERATORS)
OF_FILE = "; remove it or choose another output"
OF_TABLE = (
    ": it is the record of rows that may still be in the table; run this in another folder, "
    "or move the earlier files "
    "aside"
)


@dataclass(slots=True)
class Outputs:
    """The files of one request while they are written: each file lies beside its final path, under
    a hidden name.

    Files for object storage are written to local files, and uploaded when all are complete.

    Attributes:
        target: the requested file or folder; None for standard output.
        more: further files that may accompany the output.
        operator: the folder of the operator's files, if they do not stand beside the output.
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
    # device and inode of each that stays the same file
    made: dict[Path, tuple[int, int]] = field(default_factory=dict)
    held: list[int] = field(default_factory=list)  # open, so that no other file gets the inode

    def begin(self, final: Path, in_place: bool = True) -> Path:
        """Return the hidden path for the file ``final``; the file there can be read by its owner
        alone.

        Args:
            in_place: whether it is written into that file; else another is renamed to it.
        """
        partial = partial_name(final, self.waiting)
        with write_errors(partial.parent):
            self._make_folder(partial.parent)
        with write_errors(final):
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

    def _make_folder(self, folder: Path) -> None:
        if not folder.exists():
            self.folders += make_folder(folder, 0o700 if folder == self.waiting else 0o777)

    def try_names(self, finals: Sequence[Path]) -> None:
        """Create a file under every name that may be written, to test that this is possible, and
        remove these files again.

        Only the disk itself knows which names it takes, which it takes for one, and whether it may
        be written; this asks it before anything is charged.

        Args:
            finals: the output files, as of ``all_names``.

        Raises:
            RequestError: naming the first file whose name is not taken.
            LexveilError: naming the first that cannot be written.
        """
        tried: dict[tuple[int, int], Path] = {}
        with ExitStack() as made:
            for partial, final in self.all_names(finals) if self.target is not None else ():
                probe = partial.with_name(TRIED + partial.name.removeprefix(PARTIAL))
                with write_errors(final), _names_refused(final):
                    self._make_folder(partial.parent)
                    with suppress(FileExistsError):  # of a run beside this one, or of this one
                        os.close(os.open(probe, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))
                        made.callback(probe.unlink, missing_ok=True)
                    status = probe.lstat()
                other = tried.setdefault((status.st_dev, status.st_ino), final)
                if other is not final:
                    raise RequestError(
                        f"{shown(other)} and {shown(final)} would be one file there; rename one, "
                        "or choose another output"
                    )

    def sha256(self, final: Path) -> str:
        """Return the hash of the written file that will be ``final``. The file is read once, so
        that it must not change afterwards.
        """
        if final not in self.hashes:
            self.hashes[final] = sha256(self.begun[final])
        return self.hashes[final]

    def companion(self, ending: str) -> Path:
        """Return the name of a file that goes with the output."""
        assert self.target is not None
        name = beside(self.target, ending)
        return self.operator / name.name if self.operator and ending in OPERATORS else name

    def is_private(self, final: Path) -> bool:
        """Whether only the operator may read a file."""
        if self.target is None or (self.operator is not None and final.parent == self.operator):
            return True
        return final in {self.companion(ending) for ending in OPERATORS}

    def all_names(self, finals: Sequence[Path]) -> list[tuple[Path, Path]]:
        """Return the hidden and the final name of all that a request may write, whether it will or
        not.
        """
        names = [*finals, *(self.companion(ending) for ending in COMPANIONS), *self.more]
        return [(partial_name(final, self.waiting), final) for final in names]

    def settle(self) -> list[tuple[Path, Path]]:
        """Check that all files are on the disk, and return their hidden and final names, the texts
        last. For object storage, return the names of the record only.

        What is published is readable as the umask has it, the operator's files by their owner
        alone.
        """
        mask = os.umask(0)
        os.umask(mask)
        for final, partial in self.begun.items():
            with write_errors(final), partial.open("rb") as written:
                status = partial.lstat()
                identity = status.st_dev, status.st_ino
                # Another run that writes the same output, an experiment with a known seed, would
                # have it replaced.
                if not is_own(status) or self.made.get(final, identity) != identity:
                    raise LexveilError(
                        f"{shown(final)}: while it was written, somebody linked or replaced "
                        "its hidden file "
                        f"{shown(partial)}; nothing was released. Write into a folder of your own"
                    )
                os.fchmod(written.fileno(), 0o600 if self.is_private(final) else 0o666 & ~mask)
                os.fsync(written.fileno())
        own = (
            {*(self.companion(ending) for ending in COMPANIONS), *self.more}
            if self.target
            else set()
        )
        pairs = [(partial, final) for final, partial in self.begun.items()]
        # it says which objects belong to the output, with their hashes
        if isinstance(self.target, ObjectPath):
            return sorted(pairs, key=lambda pair: pair[1] == self.companion("record.json"))
        return sorted(pairs, key=lambda pair: pair[1] not in own)

    def publish(self) -> None:
        """Rename all files to their final names, the texts last, so that every reader who finds the
        texts finds their record too.
        """
        pairs = self.settle()
        with write_errors(self.target or Path()):
            bring(pairs)
        self.forget()

    def forget(self) -> None:
        """Forget the written files without removing them, because they have their final names."""
        self.begun.clear()
        self.folders.clear()
        self._let_go()

    def _let_go(self) -> None:
        while self.held:
            os.close(self.held.pop())

    def abandon(self) -> None:
        """Remove all files that were begun."""
        self._let_go()
        for partial in self.begun.values():
            erase(partial)
        for folder in reversed(self.folders):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def beside(out: Path, ending: str) -> Path:
    """Return the path of a companion file of an output."""
    return out.with_name(f"{out.name}.{ending}")


def partial_name(final: Path, waiting: Path = Path()) -> Path:
    """Return the hidden name of an output until it is complete, in folder ``waiting`` for object
    storage. The hidden name has the same ending.
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
    """Yield the outputs of a request, and afterwards remove all files that were begun but not
    published.

    Raises:
        LexveilError: if something cannot be written, in place of the system's error.
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
    """Convert an error of the operating system to a one-line error that names the file.

    Raises:
        LexveilError: in place of the system's error.
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
            13: "; see to its permissions",
            30: "; choose a folder that can be written",
        }
        raise LexveilError(
            f"{shown(where)}: cannot be written "
            f"({error.strerror or error}){hint.get(error.errno or 0, '')}; "
            + "; ".join(["nothing was released", *getattr(error, "__notes__", ())])
        ) from None


def check_companions(out: Path, is_table: bool = False) -> None:
    """Check that no file stands where the files that go with an output will be written.

    Args:
        is_table: whether the output is a table, so that earlier files may go with rows that are
            still in it.

    Raises:
        RequestError: naming the first file that stands there.
    """
    for ending in COMPANIONS:
        with suppress(FileNotFoundError):
            # else a name that is too long is met only when all is written
            partial_name(beside(out, ending)).lstat()
        if beside(out, ending).is_symlink() or beside(out, ending).exists():
            raise RequestError(
                f"{shown(beside(out, ending))}: exists already{OF_TABLE if is_table else OF_FILE}"
            )
