"""The folder of the Data Docs. They carry times, so they are no output of the graph."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lexveil.runtime.tables import atomic_directory

RESULTS = "results.json"


@dataclass(frozen=True, slots=True)
class DataDocs:
    """A folder with one folder per validation, and an index of all."""

    root: Path

    def put(self, name: str, files: Mapping[str, str], index: Callable[[Sequence[Mapping[str, Any]]], str]) -> None:
        """Write the files of validation ``name`` and renew the index.

        Args:
            name: of the validation; its slashes become folders.
            files: content by file name; ``results.json`` is what the index is made of.
            index: makes the index page of the content of every results.json.
        """
        with atomic_directory(self.root / name) as folder:
            for file, content in files.items():
                (folder / file).write_text(content, encoding="utf-8")
        # Stages run side by side, and the last writer must have read all results: read again after writing.
        indexed: list[Mapping[str, Any]] | None = None
        while (results := self._results()) != indexed:
            self._write_index(index(results))
            indexed = results

    def __fspath__(self) -> str:
        """The folder, for messages."""
        return str(self.root)

    def forget(self, name: str) -> None:
        """Remove the pages of earlier validations below ``name``, so that none outlives what it describes."""
        shutil.rmtree(self.root / name, ignore_errors=True)

    def _results(self) -> list[Mapping[str, Any]]:
        results = []
        for file in sorted(self.root.rglob(RESULTS)):
            if any(part.startswith(".") for part in file.relative_to(self.root).parts):
                continue  # half written by another stage
            try:
                results.append(json.loads(file.read_text(encoding="utf-8")))
            except FileNotFoundError:  # being replaced; its writer renews the index afterwards
                continue
            except ValueError:  # torn by a power cut: pages are not synced
                continue
        return results

    def _write_index(self, page: str) -> None:
        # A name of its own for each writer, unlike everywhere else: two stages may be here at once.
        partial = self.root / f".index.{os.getpid()}.partial"
        try:
            partial.write_text(page, encoding="utf-8")
            partial.replace(self.root / "index.html")
        finally:
            partial.unlink(missing_ok=True)
