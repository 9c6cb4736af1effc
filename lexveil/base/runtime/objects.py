"""Object storage (such as S3): addresses that behave as paths, read and written by the file systems
of Arrow.

An ``ObjectPath`` has the methods of paths that the library uses, so that the same code finds and
opens files and objects. Objects cannot be renamed, so an output is written to a local file and then
uploaded in one step. Credentials come from the places where the tools of each provider look, never
from an address. Messages do not repeat the error text of a library, because it could quote
credentials.
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

from lexveil.base.errors import RequestError

ADDRESS = re.compile(r"(s3|gs|abfss?)://", re.IGNORECASE)
FORMS = "s3://BUCKET/NAME, gs://BUCKET/NAME or abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/NAME"
READ = 4 * 2**20  # bytes per read request: some tenths of a second on a fast line
WRITTEN = 32 * 2**20  # bytes of an upload in progress at once, in parts
FOLDER = -1  # size that marks a folder
DENIED = re.compile(
    r"AWS Error "
    r"(ACCESS_DENIED|INVALID_(ACCESS|CLIENT|SIGNATURE)|SIGNATURE|UNRECOGNIZED|MISSING_AUTH)"
    r"|HTTP status 40[13]|PERMISSION_DENIED|UNAUTHENTICATED|Authorization|Authentication|Credential"
)


class ObjectPath(PosixPath):
    """Path of an object in object storage, or of a folder. A folder is a prefix of object names up
    to a /; it exists as soon as one object in it exists.
    """

    __slots__ = ("_known",)
    _known: int  # size, or FOLDER, from a listing

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)

    def __fspath__(self) -> str:
        return str(self)

    @property
    def is_bucket(self) -> bool:
        """Whether the path is a whole bucket. No file can be written next to a bucket."""
        return len(self.parts) < 3

    def _place(self) -> tuple[Any, str]:
        """Return Arrow's file system for the path, and the path's key in that file system."""
        scheme, bucket, *names = self.parts
        return _filesystem(scheme, bucket), "/".join([bucket.partition("@")[0], *names])

    def _size(self) -> int | None:
        """Return the size of the object in bytes, or FOLDER for a folder; return None if nothing
        exists at the path.
        """
        if (known := getattr(self, "_known", None)) is not None:
            return cast(int, known)
        with _told(self):
            filesystem, key = self._place()
            return _size_of(filesystem.get_file_info(key))

    def exists(self) -> bool:
        """Return whether an object of this name exists, or any object below it."""
        return self._size() is not None

    def is_dir(self) -> bool:
        """Return whether any object exists below the path."""
        return self._size() == FOLDER

    def is_file(self) -> bool:
        """Return whether the path is an object."""
        return self._size() not in (None, FOLDER)

    def is_symlink(self) -> bool:
        """Return False, because object storage has no links."""
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:  # noqa: ARG002
        """Return the size of the object, and whether the path is a folder, as the result of
        ``os.stat``.
        """
        if (size := self._size()) is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such object", self)
        return os.stat_result(
            (stat.S_IFDIR if size == FOLDER else stat.S_IFREG, 0, 0, 0, 0, 0, max(size, 0), 0, 0, 0)
        )

    def samefile(self, other: Path | str) -> bool:  # type: ignore[override]
        """Return whether another path is the same object."""
        return self == other

    def absolute(self) -> Self:
        """Return this path unchanged, because addresses are absolute."""
        return self

    def resolve(self, strict: bool = False) -> Self:  # noqa: ARG002
        """Return this path unchanged, because object storage has no links."""
        return self

    def iterdir(self) -> Generator[Self, None, None]:
        """Yield the paths directly below this path. The listing also contains their sizes, which
        are cached in the paths, so that no further request is needed.
        """
        from pyarrow.fs import FileSelector

        with _told(self):
            filesystem, key = self._place()
            # In a listing of one level, Arrow omits Google's folders without their own object.
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
        """Open the object for reading and seeking."""
        return io.BufferedReader(_Content(self), READ)

    def mkdir(self, *_: Any, **__: Any) -> None:
        """Create an empty object for the folder and each parent folder, so that missing permissions
        are noticed early.
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
        """Upload a local file as this object, which appears when the upload is complete.

        An interrupted upload may leave a truncated object, because Arrow cannot abort an upload;
        remove the object by ``unlink`` in that case.
        """
        with file.open("rb") as content, _told(self):
            filesystem, key = self._place()
            with filesystem.open_output_stream(key, compression=None) as stream:
                while block := content.read(WRITTEN):
                    stream.write(block)
                    if filesystem.type_name == "s3":
                        # Wait for the upload of parts, which would otherwise accumulate in memory.
                        # Other stores do not need this.
                        stream.flush()


def as_path(path: Path | str) -> Path:
    """Return an ``ObjectPath`` for an address of object storage, and a local path for anything
    else.

    Raises:
        RequestError: if an address is malformed, or contains credentials or options; the message
            then does not quote the address.
    """
    if isinstance(path, Path) or (found := ADDRESS.match(path)) is None:
        return path if isinstance(path, Path) else Path(path)
    bucket, _, name = path[found.end() :].partition("/")
    account = bucket.partition("@")[2] if found[1].lower().startswith("abfs") else bucket
    if "?" in path or ":" in bucket or "@" in account:
        raise RequestError(
            "the address of object storage has a ?, or something before an @, which may be a "
            f"credential; remove that part and write {FORMS}: credentials and options come from "
            "the environment"
        )
    if not bucket or not account:
        raise RequestError(f"this is not an address of object storage; write {FORMS}")
    return ObjectPath(f"{found[1].lower()}://{bucket}", name)


@cache
def _filesystem(scheme: str, bucket: str) -> Any:
    """Return the file system of a bucket, with the credentials of the environment."""
    from pyarrow.fs import FileSystem

    # A small object needs one request, not three; parts for Azure do not wait in memory.
    options = {"s3:": "?allow_delayed_open=true", "gs:": ""}.get(scheme, "?background_writes=false")
    return FileSystem.from_uri(f"{scheme}//{bucket}{options}")[0]


def _size_of(info: Any) -> int | None:
    from pyarrow.fs import FileType

    return {FileType.NotFound: None, FileType.Directory: FOLDER}.get(info.type, info.size)


@contextmanager
def _told(path: ObjectPath) -> Iterator[None]:
    """Convert an error that Arrow raises within the block into an error with Lexveil's message.

    Raises:
        OSError: without Arrow's message.
    """
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        message = str(error)
        if DENIED.search(message):
            number = errno.EACCES
            why = "no permission, or no valid credentials in the environment"
        elif isinstance(error, FileNotFoundError) or "NO_SUCH" in message or "not found" in message:
            number = errno.ENOENT
            why = "there is no such bucket or object"
        else:
            number = errno.EIO
            why = "the storage cannot be reached, or it refuses the request"
        raise OSError(number, why, path) from None


class _Content(io.RawIOBase):
    """Content of an object as a raw file. Each read is a separate request, because a long run
    should not keep a connection open for hours.
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
        except OSError as error:  # not an OSError, which callers would take for a damaged file
            raise RequestError(
                f"{self.path}: reading this object failed ({error.strerror}); try again"
            ) from None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return int(self.file.seek(offset, whence))

    def tell(self) -> int:
        return int(self.file.tell())

    def close(self) -> None:
        if not self.closed and hasattr(self, "file"):
            self.file.close()
        super().close()
