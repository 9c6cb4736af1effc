"""Report on one call of `lexveil release`."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from lexveil.core.accounting.statement import lines_of


@dataclass(slots=True)
class ReleaseReport:
    """Counts of documents in one call of `lexveil release`.

    Attributes:
        rows: rows of the source.
        new, changed: documents to release because their id is new, or because their content
            changed.
        duplicate: rows that repeat a released document or another row.
        withdrawn: documents of the source that are not released because they are withdrawn, now or
            earlier.
        taken_out: versions of documents that this call removed from the archive.
        released, withheld: new and changed documents that were released, or withheld because the
            budget of their subject is exhausted.
        epsilon: epsilon spent on all released documents; in a dry run, the cost that they would
            have.
        budget: budget of each document; None if there is no document to release.
        release: name of the new release; None if there is none.
        current: documents in the archive now, each in its newest version.
        dry_run: whether the call only reported what a real call would do.
    """

    rows: int = 0
    new: int = 0
    changed: int = 0
    duplicate: int = 0
    withdrawn: int = 0
    taken_out: int = 0
    released: int = 0
    withheld: int = 0
    epsilon: float = 0.0
    budget: float | None = None
    release: str | None = None
    current: int = 0
    dry_run: bool = False

    def as_dict(self) -> dict[str, object]:
        """Return the report as JSON values."""
        return asdict(self)

    def as_text(self) -> list[str]:
        """Return the report as lines of text."""
        return lines_of("release.inbox", "report.txt.j2", report=self)
