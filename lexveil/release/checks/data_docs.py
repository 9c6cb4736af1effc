"""Folder of Data Docs: HTML pages with the result of each expectation (data check). The pages load
nothing from the network.

Data Docs contain times, so they are not an output of the pipeline.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from lexveil.base.runtime.tables import atomic_directory

RESULTS = "results.json"


@dataclass(frozen=True, slots=True)
class DataDocs:
    """A folder of HTML pages with one subfolder per validation, and an index of all validations."""

    root: Path

    def put(self, validation: Mapping[str, Any]) -> str:
        """Write the results of a validation as an HTML page, update the index, and return the path
        of the page.

        Args:
            validation: ``name`` (its slashes become folders), ``success``, ``run_time``,
                ``great_expectations`` and ``results``.
        """
        name = str(validation["name"])
        page = _template().render(title=name, validation=validation)
        with atomic_directory(self.root / name) as folder:
            (folder / "index.html").write_text(page, encoding="utf-8")
            content = json.dumps(validation, indent=2, sort_keys=True) + "\n"
            (folder / RESULTS).write_text(content, encoding="utf-8")
        # Stages run in parallel, and the index must be written by a process that has read all
        # results. Read them again after writing.
        indexed: list[Mapping[str, Any]] | None = None
        while (validations := self._validations()) != indexed:
            self._write_index(
                _template().render(title="Data Docs", validation=None, validations=validations)
            )
            indexed = validations
        return page

    def forget(self, name: str) -> None:
        """Remove the pages of earlier validations whose names begin with the folder ``name``, so
        that no page outlives the data that it describes.
        """
        shutil.rmtree(self.root / name, ignore_errors=True)

    def _validations(self) -> list[Mapping[str, Any]]:
        validations = []
        for file in sorted(self.root.rglob(RESULTS)):
            if any(part.startswith(".") for part in file.relative_to(self.root).parts):
                continue  # another stage is still writing it
            try:
                validations.append(json.loads(file.read_text(encoding="utf-8")))
            except (FileNotFoundError, ValueError):
                # another stage is replacing the file and will update the index, or a power cut
                # truncated the file
                continue
        return validations

    def _write_index(self, page: str) -> None:
        # Each process needs its own name for the file, because two stages may write the index at
        # once.
        partial = self.root / f".index.{os.getpid()}.partial"
        try:
            partial.write_text(page, encoding="utf-8")
            partial.replace(self.root / "index.html")
        finally:
            partial.unlink(missing_ok=True)


@cache
def _template() -> Template:
    source = Path(__file__).with_name("data_docs.html.j2").read_text(encoding="utf-8")
    return Environment(autoescape=True, undefined=StrictUndefined).from_string(source)
