"""The gate of a release: judges the source by its counts before any noise, and the output as an observer would."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from lexveil.accounting.operator_report import LedgerCosts, OperatorReport, ReleaseEvents
from lexveil.accounting.record import PrivacyRecord, Publication
from lexveil.checks.data_docs import DataDocs
from lexveil.config import GateParams, MachineParams
from lexveil.inbox.archive import CHECKS, DOCUMENTS, IDS, PAGE, SOURCE_CHECKS, SOURCE_PAGE
from lexveil.inbox.source import Columns, quoted
from lexveil.privatization.adapters.files import ReleaseHooks
from lexveil.privatization.engine.counts import coverage, unprotected_share
from lexveil.privatization.engine.worker import InputTotals
from lexveil.privatization.release.outputs import Outputs
from lexveil.runtime import duckdb_session
from lexveil.runtime.tables import write_json, write_table


class NothingToRelease(Exception):
    """Every document is withheld."""


@dataclass(slots=True, kw_only=True)
class ReleaseGate(ReleaseHooks):
    """The gate of `lexveil release`.

    Attributes:
        release, memory: the folder of the release, and the operator's of it.
        ids: what the operator remembers of the rows, in their order; withheld rows are left out.
        docs: pages of what an observer can compute.
        source_docs: pages of what counts the source: the operator's.
        publication, events: what record and report say of this release.
        n_withheld: documents that were, once the ledger has said so.
    """

    release: Path
    memory: Path
    columns: Columns
    ids: pa.Table
    limits: GateParams
    machine: MachineParams
    docs: DataDocs
    source_docs: DataDocs
    publication: Publication
    events: ReleaseEvents
    n_withheld: int = 0
    _source: tuple[dict[str, object], str] = field(default=({}, ""))

    @property
    def name(self) -> str:
        """Of the validations."""
        return f"releases/{self.release.name}"

    def counted(self, totals: InputTotals) -> None:
        """Judge what counts the source, before anything is reserved or drawn.

        Raises:
            CheckFailed: if an expectation does not hold; nothing is spent then.
        """
        # Great Expectations takes seconds to import.
        import pandas as pd

        from lexveil.checks.release_suite import source_suite
        from lexveil.checks.validation import validate

        known, kept = coverage(totals.by_class), unprotected_share(totals.by_class)
        numbers = {
            "n_documents": totals.documents,
            "coverage": 1.0 if known is None else known,  # of no words none is unknown
            "unprotected_share": kept or 0.0,
        }
        suite = source_suite(self.limits.min_coverage, self.limits.max_unprotected)
        frame = pd.DataFrame([{"release": self.release.name, **numbers}])
        verdict = validate(self.name, suite, frame, self.source_docs)
        self._source = verdict.record(numbers), verdict.page

    def reserved(self, costs: LedgerCosts | None) -> None:
        """See that any document is left.

        Raises:
            NothingToRelease: if not.
        """
        assert costs is not None
        self.n_withheld = costs.documents_withheld
        if costs.documents_charged == 0:
            raise NothingToRelease

    def written(
        self, outputs: Outputs, record: PrivacyRecord, operator: OperatorReport
    ) -> tuple[PrivacyRecord, OperatorReport]:
        """Judge the outputs by what an observer can compute, and write what is published and what is remembered.

        Raises:
            CheckFailed: if an expectation does not hold. The noise is drawn, so its epsilon is spent.
        """
        from lexveil.checks.release_suite import PERSONAL, release_suite
        from lexveil.checks.validation import validate

        assert record.spent is not None
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
        suite = release_suite(self.limits.max_length_ratio, self.limits.pii)
        verdict = validate(self.name, suite, frame, self.docs)
        self._write(outputs, verdict.record(_summary(frame)), verdict.page, set(frame["row"].tolist()))
        published = {"publication": self.publication, "withdrawn": 0}
        return record.model_copy(update=published), operator.model_copy(update={"release": self.events})

    def _open(self, con: Any, outputs: Outputs) -> None:
        texts = f"concat_ws(chr(10), {', '.join(map(quoted, self.columns.texts))}) as text"
        hidden = outputs.begun[self.release / DOCUMENTS]
        con.register("ids", self.ids)
        con.execute(
            f"create temp view outputs as select ids.row, {texts} from "
            f"read_parquet({duckdb_session.file_list([hidden])}) as documents "
            f"left join ids on ids.published = documents.{quoted(self.columns.id)}"
        )
        duckdb_session.view(con, "tokens", outputs.begun[outputs.companion("tokens.parquet")])

    def _write(self, outputs: Outputs, verdict: dict[str, object], page: str, rows: set[int]) -> None:
        stays = pa.array([row in rows for row in self.ids.column("row").to_pylist()], pa.bool_())
        write_table(self.ids.filter(stays), outputs.begin(self.memory / IDS, in_place=False))
        for folder, (checks, checks_page), (result, html) in (
            (self.release, (CHECKS, PAGE), (verdict, page)),
            (self.memory, (SOURCE_CHECKS, SOURCE_PAGE), self._source),
        ):
            write_json(result, outputs.begin(folder / checks, in_place=False))
            outputs.begin(folder / checks_page).write_text(html, encoding="utf-8")


def _summary(frame: Any) -> dict[str, object]:
    return {
        "n_documents": len(frame),
        "n_tokens": int(frame["n_tokens"].sum()),
        "n_words_out": int(frame["n_words_out"].sum()),
        "length_ratio_most": round(float(frame["length_ratio"].max()), 9),
        "epsilon_spent_most": float(frame["epsilon_spent"].max()),
    }
