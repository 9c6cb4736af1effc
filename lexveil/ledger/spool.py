"""What a release asks for, on disk while it is more than a few hundred thousand documents.

Documents are spread over files by the first byte of their subject's hash, in order, so that one file at a time has
all of its subjects' documents and no two files share a subject.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lexveil.errors import RequestError
from lexveil.ledger.amounts import Keys
from lexveil.types import Flags

CHUNK = 1 << 18  # documents held at a time

ASKED = np.dtype([("key", "<u8", 2), ("document", "<i8"), ("epsilon", "<f8")])
Chunk = npt.NDArray[np.void]


class Spool:
    """Documents with their subjects and what they spend, in the order in which they are asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: list[Chunk] = []
        self._n_waiting = 0
        self._spilled = False
        self.n_documents = 0

    def add(self, keys: Keys, epsilon: npt.NDArray[np.float64]) -> None:
        """Take the next documents.

        Raises:
            RequestError: if the disk is full or cannot be written.
        """
        chunk = np.empty(len(keys), dtype=ASKED)
        chunk["key"], chunk["epsilon"] = keys, epsilon
        chunk["document"] = np.arange(self.n_documents, self.n_documents + len(keys))
        self._waiting.append(chunk)
        self._n_waiting += len(keys)
        self.n_documents += len(keys)
        if self._n_waiting >= CHUNK:
            self._spill()

    def parts(self) -> Iterator[Path | Chunk]:
        """Yield documents by subject, parts in the order of hashes: each one whole, as an array or a file."""
        if not self._spilled:
            yield np.concatenate([np.empty(0, dtype=ASKED), *self._waiting])
            return
        self._spill()
        yield from sorted(self._folder.glob("*.asked"))

    def marks(self) -> Flags:
        """One mark for each document, all False; on disk if the documents are."""
        if not self._spilled:
            return np.zeros(self.n_documents, dtype=bool)
        try:
            with (self._folder / "withheld").open("wb") as file:
                # Not a sparse file: a disk that is full would end the process when a mark is set.
                for start in range(0, self.n_documents, CHUNK):
                    file.write(bytes(min(CHUNK, self.n_documents - start)))
            return np.memmap(self._folder / "withheld", dtype=bool, mode="r+", shape=(self.n_documents,))
        except OSError as error:
            raise _unwritable(self._folder, error) from None

    def remove(self) -> None:
        """Remove what is on disk."""
        remove_work(self._folder)

    def _spill(self) -> None:
        chunk = np.concatenate([np.empty(0, dtype=ASKED), *self._waiting])
        part = (chunk["key"][:, 0] >> np.uint64(56)).astype(np.int64)
        order = np.argsort(part, kind="stable")
        chunk = chunk[order]
        ends = np.cumsum(np.bincount(part, minlength=256))
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            for number, (start, end) in enumerate(zip(np.r_[0, ends[:-1]], ends, strict=True)):
                if start < end:
                    with (self._folder / f"{number:02x}.asked").open("ab") as file:
                        file.write(chunk[start:end].tobytes())
        except OSError as error:
            raise _unwritable(self._folder, error) from None
        self._waiting, self._n_waiting, self._spilled = [], 0, True


def chunks(part: Path | Chunk) -> Iterator[Chunk]:
    """Yield the documents of one part in order, at most about ``CHUNK`` at a time."""
    if isinstance(part, np.ndarray):
        yield part
        return
    with part.open("rb") as source:
        while len(chunk := np.fromfile(source, dtype=ASKED, count=CHUNK)):
            yield chunk


def remove_work(folder: Path) -> None:
    """Remove the folder of a release that has ended, or died."""
    shutil.rmtree(folder, ignore_errors=True)


def _unwritable(folder: Path, error: OSError) -> RequestError:
    free = shutil.disk_usage(folder.parent).free if folder.parent.exists() else 0
    return RequestError(
        f"{folder}: cannot be written ({os.strerror(error.errno or 0)}; {free / 1e6:,.0f} MB are free): a release "
        "needs 32 bytes there for each document; free some space, or name another folder in params.yaml: ledger.folder"
    )
