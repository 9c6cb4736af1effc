"""The gate of a release: validates the hidden output, and writes result and remembered ids beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from lexveil.accounting.record import PrivacyRecord, Publication
from lexveil.artifacts.data_docs import DataDocs
from lexveil.config import GateParams, MachineParams
from lexveil.privatization.outputs import Outputs
from lexveil.release.archive import CHECKS, DOCUMENTS, IDS, PAGE
from lexveil.release.source import Columns, quoted
from lexveil.runtime import duckdb_session
from lexveil.runtime.tables import write_json, write_table


class NothingToRelease(Exception):
    """Every document is withheld."""


@dataclass(slots=True)
class DataDocsCapture:
    """Data Docs, and the page of this result to put beside the release."""

    docs: DataDocs
    page: str = ""

    def put(self, name: str, files: Mapping[str, str], index: Callable[[Sequence[Mapping[str, Any]]], str]) -> None:
        """Keep the files of one validation."""
        self.docs.put(name, files, index)
        self.page = files["index.html"]

    def __fspath__(self) -> str:
        """The folder, as messages call it."""
        return str(self.docs.root)


@dataclass(slots=True)
class Gate:
    """Called with the hidden outputs and the record, to which it adds the publication.

    Attributes:
        release: the folder of the release.
        source: the private file that is rewritten.
        ids: hashes of its rows, in their order; withheld rows are left out.
        publication: what the record says of this release.
        n_withheld: documents that were, once it was called.
    """

    release: Path
    source: Path
    columns: Columns
    ids: pa.Table
    limits: GateParams
    machine: MachineParams
    docs: DataDocs
    publication: Publication
    n_withheld: int = field(default=0)

    def __call__(self, outputs: Outputs, record: PrivacyRecord) -> PrivacyRecord:
        """Judge the outputs.

        Returns:
            The record that is archived.

        Raises:
            CheckFailed: if an expectation does not hold.
            NothingToRelease: if no document is left.
        """
        # Great Expectations takes seconds to import.
        from lexveil.checks.release_suite import PERSONAL, release_suite
        from lexveil.checks.validation import validate

        record = self._forget_withheld(outputs, record)
        assert record.release is not None and record.spent is not None
        self.n_withheld = record.release.withheld
        if self.n_withheld == self.ids.num_rows:
            raise NothingToRelease
        (budget,) = record.document_budget.values()
        with duckdb_session.session(self.machine) as con:
            self._open(con, outputs)
            frame = duckdb_session.run(
                con,
                "release/documents",
                budget=budget,
                spent_most=record.spent.most,
                spent_mean=record.spent.mean,
                **PERSONAL,
            ).df()
        docs = DataDocsCapture(self.docs)
        limits = self.limits
        suite = release_suite(limits.min_coverage, limits.max_unprotected, limits.max_length_ratio, limits.pii)
        verdict = validate(f"releases/{self.release.name}", suite, frame, docs)
        self._write(outputs, verdict.record(_summary(frame)), docs.page, set(frame["row"].tolist()))
        return record.model_copy(update={"publication": self.publication, "withdrawn": 0})

    def _forget_withheld(self, outputs: Outputs, record: PrivacyRecord) -> PrivacyRecord:
        """The list of withheld rows names their subjects; it is not archived."""
        partial = outputs.begun.pop(outputs.companion("withheld.csv"), None)
        if partial is None:
            return record
        partial.unlink()
        return record.with_output(withheld_sha256=None)

    def _open(self, con: Any, outputs: Outputs) -> None:
        texts = f"concat_ws(chr(10), {', '.join(map(quoted, self.columns.texts))}) as text"
        key = f"{quoted(self.columns.id)} as id"
        con.execute(
            f"create temp view inputs as select file_row_number + 1 as row, {key}, {texts} "
            f"from read_parquet({duckdb_session.file_list([self.source])}, file_row_number = true)"
        )
        hidden = outputs.begun[self.release / DOCUMENTS]
        con.execute(
            f"create temp view outputs as select {key}, {texts} from read_parquet({duckdb_session.file_list([hidden])})"
        )
        duckdb_session.view(con, "tokens", outputs.begun[outputs.companion("tokens.parquet")])

    def _write(self, outputs: Outputs, verdict: dict[str, Any], page: str, rows: set[int]) -> None:
        stays = pa.array([row in rows for row in self.ids.column("row").to_pylist()], pa.bool_())
        write_json(verdict, outputs.begin(self.release / CHECKS))
        write_table(self.ids.filter(stays), outputs.begin(self.release / IDS))
        outputs.begin(self.release / PAGE).write_text(page, encoding="utf-8")


def _summary(frame: Any) -> dict[str, Any]:
    return {
        "n_documents": len(frame),
        "n_words_in": int(frame["n_words_in"].sum()),
        "n_words_out": int(frame["n_words_out"].sum()),
        "coverage": round(float(frame["coverage"].iloc[0]), 9),
        "unprotected_share": round(float(frame["unprotected_share"].iloc[0]), 9),
        "length_ratio_most": round(float(frame["length_ratio"].max()), 9),
        "epsilon_spent_most": float(frame["epsilon_spent"].max()),
    }
