"""A function of batches, for what comes in parts: `map` of Hugging Face data sets, streams, loops.

rewrite = lexveil.PrivatizeBatches("text", mechanism="tem", strategy="S3", epsilon=10.0)
private = dataset.map(rewrite, batched=True, batch_size=1000)
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lexveil.accounting.record import PrivacyRecord
from lexveil.artifacts.model import Model
from lexveil.errors import RequestError
from lexveil.privatization.adapters.frames import without_source
from lexveil.privatization.adapters.memory import privatize
from lexveil.runtime.tables import write_json


class PrivatizeBatches:
    """Rewrite a column of batch after batch; each batch is a release of its own, paid before it is given back.

    Noise is always the operating system's: to repeat an experiment, rewrite the whole data set in one call by
    ``lexveil.privatize`` with a seed.

    A stream that is read twice is rewritten and paid twice, with other words. Copies of this object in other processes
    (``num_proc``) share the ledger, and need ``records``, because what they remember is lost with them.

    Attributes:
        records: the privacy record of each batch that this object has rewritten, in order.
    """

    def __init__(
        self,
        column: str,
        *,
        subjects: str | None = None,
        records: Path | str | None = None,
        project: Path | str | None = None,
        model: str | None = None,
        **how: Any,
    ) -> None:
        """Say how; nothing is read yet.

        Args:
            column: the text column.
            subjects: the column that says whom each text is about; None: each text is a subject of its own.
            records: a folder, made if it is not there, in which the record of each batch is written before its texts
                are given back.
            project, model, how: as of ``lexveil.privatize``.

        Raises:
            RequestError: if there is a seed, or an experiment is asked for.
        """
        if how.get("seed") is not None or how.get("mode") == "experiment":
            raise RequestError(
                "PrivatizeBatches: a seed would draw the same noise for every batch; rewrite the whole data set in one "
                "call by lexveil.privatize(..., seed=...)"
            )
        self.records: list[PrivacyRecord] = []
        self._column, self._subjects, self._how = column, subjects, how
        self._folder = None if records is None else Path(records).absolute()
        self._project = None if project is None else Path(project).absolute()
        self._model_name = model
        self._model: Model | None = None
        self._process = os.getpid()
        self._once = uuid.uuid4().hex  # a cache of results by the function's hash never takes one call for another

    @staticmethod
    def without_source(data: Any) -> Any:
        """What ``map`` gave back, without what Hugging Face carries on from the source, which is not to be published.

        That is sizes in bytes, checksums, the description, and a fingerprint that follows from the texts.
        """
        return without_source(data)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The rewritten column of a batch, a table by columns; None where a text is withheld.

        Raises:
            RequestError: as ``lexveil.privatize``; if the batch has no such column; or, in a copy of another process,
                without a folder for the records.
        """
        if self._folder is None and os.getpid() != self._process:
            raise RequestError(
                "PrivatizeBatches: in processes of their own (num_proc) the records would be lost; give records=FOLDER"
            )
        missing = [name for name in (self._column, self._subjects) if name is not None and name not in batch]
        if missing:
            raise RequestError(f"column {missing[0]!r}: the batch has none; map with batched=True, and name a column")
        if self._model is None:
            self._model = Model.load(self._project, self._model_name)
        subjects = None if self._subjects is None else list(batch[self._subjects])
        done = privatize(list(batch[self._column]), subjects=subjects, project=self._model, **self._how)
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            entry = done.record.release
            write_json(done.record.to_dict(), self._folder / f"{entry.id if entry else uuid.uuid4().hex}.record.json")
        self.records.append(done.record)
        return {self._column: done.values}

    def __getstate__(self) -> dict[str, Any]:
        """Without the model, which each process loads, and the records, which are of this one."""
        return self.__dict__ | {"_model": None, "records": []}
