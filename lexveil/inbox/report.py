"""What one run of `lexveil release` found and did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass


@dataclass(slots=True)
class ReleaseReport:
    """Counts only.

    Attributes:
        rows: of the source.
        new, changed: documents to release, because their id or their content is.
        duplicate: rows that repeat what was released, or another row.
        withdrawn: documents of the source that are not released because they are withdrawn, now or earlier.
        taken_out: versions of documents that this run took out of the archive.
        released, withheld: of the new and changed ones; withheld if the budget of their subject is exhausted.
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

    def as_text(self) -> Iterator[str]:
        """Yield it as lines for people."""
        yield (
            f"{self.rows:,} rows: {self.new:,} new, {self.changed:,} changed, {self.duplicate:,} known or repeated, "
            f"{self.withdrawn:,} withdrawn"
        )
        if self.dry_run:
            if self.new + self.changed:
                yield (
                    f"would be released: {self.new + self.changed:,} documents, for {self.epsilon:.6g} epsilon in all, "
                    f"at most {self.budget:.6g} each, as far as the cap of their subjects allows"
                )
            if self.taken_out:
                yield f"would be taken out of the archive: {self.taken_out:,}"
            yield "dry run: nothing was done"
            return
        if self.taken_out:
            yield f"taken out of the archive: {self.taken_out:,}"
        if self.withheld:
            yield f"withheld, because the budget of their subjects is exhausted: {self.withheld:,}"
        if self.release:
            yield f"released: {self.released:,} documents for {self.epsilon:.6g} epsilon, as {self.release}"
            yield "these counts, and what lies in inbox.operator, are private to the operator"
        else:
            yield "nothing to release"
        yield f"archived now: {self.current:,} documents"
