"""Checks of `lexveil release`: of the counts of the source before any noise, and then of the output
as an observer would see it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lexveil.base.runtime.tables import write_json, write_table
from lexveil.core.accounting.operator_report import LedgerCosts, OperatorReport, ReleaseEvents
from lexveil.core.accounting.record import PrivacyRecord, Publication
from lexveil.io.config import Configuration
from lexveil.io.execution import duckdb_session
from lexveil.release.adapters.files import ReleaseHooks
from lexveil.release.checks.data_docs import DataDocs
from lexveil.release.engine.counts import InputTotals, coverage, unprotected_share
from lexveil.release.inbox.archive import DOCUMENTS, IDS, Archive
from lexveil.release.inbox.selection import ReleaseSelection
from lexveil.release.inbox.source import Columns, quoted
from lexveil.release.outputs import Outputs

# Files that the gate writes: published files, and files for the operator only.
PUBLISHED = ("checks.json", "checks.html")
REMEMBERED = (IDS, "source_checks.json", "source_checks.html")


class NothingToRelease(Exception):  # noqa: N818 - not an error
    """Signal that every document is withheld because of exhausted budgets, so that nothing is
    released.
    """


class ReleaseGate(ReleaseHooks):
    """The checks that `lexveil release` makes before noise is drawn and before the output is
    published.

    Args:
        name: name of the release.
        docs: folder for pages of checks that an observer could compute. Pages of checks on the
            source go to the operator's folder.

    Attributes:
        n_withheld: number of withheld documents, after the reservation in the ledger.
    """

    def __init__(
        self,
        name: str,
        archive: Archive,
        columns: Columns,
        selection: ReleaseSelection,
        configuration: Configuration,
        docs: DataDocs,
    ) -> None:
        self.memory = archive.memory / name
        self.release = archive.folder / name
        self.name = name
        super().__init__(
            more=[
                *(self.release / file for file in PUBLISHED),
                *(self.memory / file for file in REMEMBERED),
            ],
            operator_folder=self.memory,
            about={"archive": configuration.inbox.archive, "publication": name},
            subjects=selection.subjects,
            tells_columns=False,
        )
        self.columns = columns
        self.limits = configuration.inbox.gate
        self.machine = configuration.machine
        self.docs, self.source_docs = docs, DataDocs(archive.memory / "checks")
        # The operator's memory of the rows, in their order. Withheld rows are removed from it
        # later.
        self.ids = selection.ids.set_column(
            0, "release", pa.array([name] * selection.ids.num_rows, pa.string())
        )
        report = selection.report
        self.events = ReleaseEvents(
            name=name, salt=archive.salt, new=report.new, changed=report.changed
        )
        self.n_withheld = 0
        self._source: tuple[dict[str, object], str] = {}, ""

    def _validated(
        self, docs: DataDocs, suite: Any, frame: Any, numbers: dict[str, object]
    ) -> tuple[dict[str, object], str]:
        """Validate a data frame by a suite, and return the result for the privacy record and the
        path of the HTML page.
        """
        from lexveil.release.checks.validation import validate

        verdict = validate(f"releases/{self.name}", suite, frame, docs)
        return verdict.record(numbers), verdict.page

    def counted(self, totals: InputTotals) -> None:
        """Check the counts of the source, before any epsilon is reserved or any noise is drawn.

        Raises:
            CheckFailedError: if an expectation does not hold; nothing is spent then.
        """
        # Great Expectations takes seconds to import.
        import pandas as pd

        from lexveil.release.checks.release_suite import source_suite

        known = coverage(totals.by_class)
        unprotected = unprotected_share(totals.by_class)
        numbers: dict[str, object] = {
            "n_documents": totals.documents,
            # in an input without words, no word is unknown
            "coverage": 1.0 if known is None else known,
            "unprotected_share": unprotected or 0.0,
        }
        suite = source_suite(self.limits.min_coverage, self.limits.max_unprotected)
        frame = pd.DataFrame([{"release": self.name, **numbers}])
        self._source = self._validated(self.source_docs, suite, frame, numbers)

    def reserved(self, costs: LedgerCosts | None) -> None:
        """Check that at least one document is not withheld because of its subject's exhausted
        budget.

        Raises:
            NothingToRelease: if all documents are withheld.
        """
        assert costs is not None
        self.n_withheld = costs.documents_withheld
        if costs.documents_charged == 0:
            raise NothingToRelease

    def written(
        self, outputs: Outputs, record: PrivacyRecord, operator: OperatorReport
    ) -> tuple[PrivacyRecord, OperatorReport]:
        """Check the outputs by values that an observer can compute, and write the remaining
        published files and the operator's files.

        Raises:
            CheckFailedError: if an expectation does not hold. The noise has been drawn, so its
                epsilon is spent.
        """
        from lexveil.release.checks.release_suite import PERSONAL, release_suite

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
        numbers: dict[str, object] = {
            "n_documents": len(frame),
            "n_tokens": int(frame["n_tokens"].sum()),
            "n_words_out": int(frame["n_words_out"].sum()),
            "length_ratio_most": round(float(frame["length_ratio"].max()), 9),
            "epsilon_spent_most": float(frame["epsilon_spent"].max()),
        }
        judged = self._validated(self.docs, suite, frame, numbers)
        stays = pc.is_in(self.ids.column("row"), pa.array(frame["row"].tolist(), pa.int64()))
        write_table(self.ids.filter(stays), outputs.begin(self.memory / IDS, in_place=False))
        for folder, names, (result, page) in (
            (self.release, PUBLISHED, judged),
            (self.memory, REMEMBERED[1:], self._source),
        ):
            write_json(result, outputs.begin(folder / names[0], in_place=False))
            outputs.begin(folder / names[1]).write_text(page, encoding="utf-8")
        published = {
            "publication": Publication(name=self.name, id_column=self.columns.id),
            "withdrawn": 0,
        }
        return record.model_copy(update=published), operator.model_copy(
            update={"release": self.events}
        )

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
