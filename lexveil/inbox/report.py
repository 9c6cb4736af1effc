"""What one run of `lexveil release` found and did."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from lexveil.accounting.statement import lines_of


@dataclass(slots=True)
class ReleaseReport:
    """Counts only.

    Attributes:
        rows: of the source.
        new, changed: documents to release, because their id or their content is.
        duplicate: rows that repeat what was released, or another row.
        withdrawn: documents of the source that are not released because they are withdrawn, now or
            earlier.
        taken_out: versions of documents that this run took out of the archive.
        released, withheld: of the new and changed ones; withheld if the budget of their subject is
            exhausted.
        epsilon: spent on all of them, in a dry run what they would cost.
        budget: of each document; None if there is none to release.
        release: the name of the new release; None if there is none.
        current: documents that are archived now, in their newest version.
        dry_run: whether nothing was done.
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
        """As JSON has it."""
        return asdict(self)

    def as_text(self) -> list[str]:
        """It as lines for people."""
        return lines_of("inbox", "report.txt.j2", report=self)
