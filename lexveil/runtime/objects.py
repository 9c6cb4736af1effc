"""Object storage: addresses as paths, read and written by the file systems that Arrow brings along.

An ``ObjectPath`` answers what the library asks of paths, so that files and folders are found and
opened in one way wherever they lie. Nothing is renamed there: what is written waits in a local
file, and appears by one upload. Credentials come from where the tools of each provider look for
them, never from an address; what a library says of an error is not repeated, for it could quote
them.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PosixPath, PurePosixPath
from typing import Any, Self, cast

from lexveil.errors import RequestError

ADDRESS = re.compile(r"(s3|gs|abfss?)://", re.IGNORECASE)
FORMS = "s3://BUCKET/NAME, gs://BUCKET/NAME or abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/NAME"
READ = 4 * 2**20  # bytes asked for at a time: some tenths of a second of a fast line
WRITTEN = 32 * 2**20  # bytes of an upload that are under way at a time, in parts
FOLDER = -1  # in place of a size
DENIED = re.compile(
    r"AWS Error "
    r"(ACCESS_DENIED|INVALID_(ACCESS|CLIENT|SIGNATURE)|SIGNATURE|UNRECOGNIZED|MISSING_AUTH)"
    r"|HTTP status 40[13]|PERMISSION_DENIED|UNAUTHENTICATED|Authorization|Authentication|Credential"
)


class ObjectPath(PosixPath):
    """An object, or what stands before the / in names of objects: a folder, made with the first
    object in it.
    """

    __slots__ = ("_known",)
    _known: int  # its size, or FOLDER, where a listing told it

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)

    def __fspath__(self) -> str:
        return str(self)

    @property
    def is_bucket(self) -> bool:
        """Whether it is a bucket, which has nothing beside it."""
        return len(self.parts) < 3

    def _place(self) -> tuple[Any, str]:
        """Its file system, and what that calls it."""
        scheme, bucket, *names = self.parts
        return _filesystem(scheme, bucket), "/".join([bucket.partition("@")[0], *names])

    def _size(self) -> int | None:
        """Bytes, or FOLDER; None if there is nothing."""
        if (known := getattr(self, "_known", None)) is not None:
            return cast(int, known)
        with _told(self):
            filesystem, key = self._place()
            return _size_of(filesystem.get_file_info(key))

    def exists(self) -> bool:
        """Whether there is an object of this name, or one below it."""
        return self._size() is not None

    def is_dir(self) -> bool:
        """Whether there are objects below it."""
        return self._size() == FOLDER

    def is_file(self) -> bool:
        """Whether it is an object."""
        return self._size() not in (None, FOLDER)

    def is_symlink(self) -> bool:
        """There are no links."""
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:  # noqa: ARG002
        """Its size, and whether it is a folder."""
        if (size := self._size()) is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such object", self)
        return os.stat_result(
            (stat.S_IFDIR if size == FOLDER else stat.S_IFREG, 0, 0, 0, 0, 0, max(size, 0), 0, 0, 0)
        )

    def samefile(self, other: Path | str) -> bool:  # type: ignore[override]
        """Whether it is the same object."""
        return self == other

    def absolute(self) -> Self:
        """Itself."""
        return self

    def resolve(self, strict: bool = False) -> Self:  # noqa: ARG002
        """Itself."""
        return self

    def iterdir(self) -> Generator[Self, None, None]:
        """What is directly below it; of each is known what it is, without asking again."""
        from pyarrow.fs import FileSelector

        with _told(self):
            filesystem, key = self._place()
            # Of one level, Arrow does not list Google's folders that have no object of their own.
            found = filesystem.get_file_info(
                FileSelector(key, recursive=filesystem.type_name == "gcs")
            )
        sizes = dict[str, int]()
        for info in found:
            name, *below = PurePosixPath(info.path).relative_to(key).parts
            sizes[name] = FOLDER if below else _size_of(info) or 0
        for name, size in sizes.items():
            child = self / name
            child._known = size
            yield child

    def open(self, *_: Any, **__: Any) -> Any:
        """Its bytes, to read and to search."""
        return io.BufferedReader(_Content(self), READ)

    def mkdir(self, *_: Any, **__: Any) -> None:
        """Make an empty object that stands for the folder, and for those above it: so missing
        rights show early.
        """
        with _told(self):
            filesystem, key = self._place()
            filesystem.create_dir(key)

    def unlink(self, missing_ok: bool = False) -> None:  # noqa: ARG002
        """Remove the object."""
        with _told(self):
            filesystem, key = self._place()
            filesystem.delete_file(key)

    def upload(self, file: Path) -> None:
        """Let the content of a file appear as this object: not there until all of it is.

        What is interrupted may leave a truncated object, for Arrow cannot abort an upload;
        ``unlink`` it then.
        """
        with file.open("rb") as content, _told(self):
            filesystem, key = self._place()
            with filesystem.open_output_stream(key, compression=None) as stream:
                while block := content.read(WRITTEN):
                    stream.write(block)
                    if filesystem.type_name == "s3":
                        # waits for the parts, which would else wait in memory; elsewhere they do
                        # not
                        stream.flush()


def as_path(path: Path | str) -> Path:
    """A path, or an address of object storage as one.

    Raises:
        RequestError: if an address is none, or has credentials or options in it; it is not quoted
            then.
    """
    if isinstance(path, Path) or (found := ADDRESS.match(path)) is None:
        return path if isinstance(path, Path) else Path(path)
    bucket, _, name = path[found.end() :].partition("/")
    account = bucket.partition("@")[2] if found[1].lower().startswith("abfs") else bucket
    if "?" in path or ":" in bucket or "@" in account:
        raise RequestError(
            "the address of object storage has a ?, or something before an @, which may be a "
            "credential; give it "
            f"without, as {FORMS}: credentials and options come from the environment"
        )
    if not bucket or not account:
        raise RequestError(f"this is no address of object storage; write {FORMS}")
    return ObjectPath(f"{found[1].lower()}://{bucket}", name)


@cache
def _filesystem(scheme: str, bucket: str) -> Any:
    """The file system of a bucket, with the credentials of the environment."""
    from pyarrow.fs import FileSystem

    # A small object takes one request and not three; parts of Azure do not wait in memory.
    options = {"s3:": "?allow_delayed_open=true", "gs:": ""}.get(scheme, "?background_writes=false")
    return FileSystem.from_uri(f"{scheme}//{bucket}{options}")[0]


def _size_of(info: Any) -> int | None:
    from pyarrow.fs import FileType

    return {FileType.NotFound: None, FileType.Directory: FOLDER}.get(info.type, info.size)


@contextmanager
def _told(path: ObjectPath) -> Iterator[None]:
    """Say what fails in words of ours.

    Raises:
        OSError: without the message of the library.
    """
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        message = str(error)
        if DENIED.search(message):
            number, why = errno.EACCES, "no permission, or no valid credentials in the environment"
        elif isinstance(error, FileNotFoundError) or "NO_SUCH" in message or "not found" in message:
            number, why = errno.ENOENT, "there is no such bucket or object"
        else:
            number, why = errno.EIO, "it cannot be reached, or refuses that"
        raise OSError(number, why, path) from None


class _Content(io.RawIOBase):
    """The bytes of an object; each read is a request of its own, so that none has to stay open for
    hours.
    """

    def __init__(self, path: ObjectPath) -> None:
        self.path = path
        with _told(path):
            filesystem, key = path._place()
            self.file = filesystem.open_input_file(key)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            with _told(self.path):
                return int(self.file.readinto(buffer))
        except OSError as error:  # not what a damaged file raises
            raise RequestError(
                f"{self.path}: cannot be read any more ({error.strerror}); try again"
            ) from None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return int(self.file.seek(offset, whence))

    def tell(self) -> int:
        return int(self.file.tell())

    def close(self) -> None:
        if not self.closed and hasattr(self, "file"):
            self.file.close()
        super().close()
