"""A file system that lies elsewhere, for tests: it counts what is read of it and fails where it is
told to."""

import gzip
import io
import json
from typing import Any, ClassVar

from fsspec.spec import AbstractFileSystem


class Far(AbstractFileSystem):
    """Files by path. ``reads``: (path, position, bytes) of each read; ``breaks``: by path,
    (position, error) to raise.

    An error is raised once, by the first read that would pass its position; None for an error ends
    the file there.
    """

    protocol = ("far", "hf")
    cachable = False
    files: ClassVar[dict[str, bytes]] = {}
    etags: ClassVar[dict[str, str]] = {}
    reads: ClassVar[list[tuple[str, int, int]]] = []
    breaks: ClassVar[dict[str, list[tuple[int, BaseException | None]]]] = {}

    @classmethod
    def forget(cls) -> None:
        cls.files = {}
        cls.etags = {}
        cls.reads = []
        cls.breaks = {}

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.partition("://")[2].rstrip("/") if "://" in path else path.rstrip("/")

    @classmethod
    def read_of(cls, name: str) -> int:
        """Bytes read of the files whose path ends in ``name``."""
        return sum(n for path, _, n in cls.reads if path.endswith(name))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        if path in self.files:
            entry = {"name": path, "size": len(self.files[path]), "type": "file"}
            return entry | ({"ETag": self.etags[path]} if path in self.etags else {})
        if any(name.startswith(f"{path}/") for name in self.files):
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        below = {
            name[len(path) + 1 :].split("/")[0]
            for name in self.files
            if name.startswith(f"{path}/")
        }
        entries = [self.info(f"{path}/{name}") for name in sorted(below)]
        return entries if detail else [entry["name"] for entry in entries]

    def _open(self, path: str, mode: str = "rb", **_: Any) -> io.BytesIO:
        return FarFile(self._strip_protocol(path))


class FarFile(io.BytesIO):
    def __init__(self, path: str) -> None:
        super().__init__(Far.files[path])
        self.path = path

    def read(self, n: int | None = -1) -> bytes:
        assert n is not None
        start = self.tell()
        planned = Far.breaks.get(self.path, [])
        for position, error in planned:
            if start < position < start + n:  # what comes before it breaks
                n = position - start
                break
            if start == position:
                planned.remove((position, error))
                if error is None:
                    return b""
                raise error
        content = super().read(n)
        Far.reads.append((self.path, start, len(content)))
        return content


def packed(texts: list[str], **more: Any) -> bytes:
    """A shard in C4's form."""
    rows = (
        {"text": text, "timestamp": "2019-04-25T12:57:54Z", "url": "https://x.example/a"} | more
        for text in texts
    )
    return gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in rows), mtime=0)


def put(folder: str, *shards: list[str]) -> list[str]:
    """C4 by its own names: ``shards`` of train, one of validation; the paths of train."""
    names = [f"{folder}/c4-train.{n:05d}-of-{len(shards):05d}.json.gz" for n in range(len(shards))]
    Far.files |= {name: packed(texts) for name, texts in zip(names, shards, strict=True)}
    Far.files[f"{folder}/c4-validation.00000-of-00001.json.gz"] = packed(["held out"])
    return names
