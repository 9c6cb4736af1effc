"""Records that other pipeline stages wrote about each run, in the form that the report reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexveil.base import paths
from lexveil.base.errors import CheckFailedError
from lexveil.base.levels import GridRun, noise_in
from lexveil.lab.evaluation.recovery.measured import READERS
from lexveil.lab.report.formatting import Interval
from lexveil.readers.bands import BANDS_OF, CONTENT
from lexveil.readers.shares import Share

SEGMENTATIONS = ("word", "gst", "mst")

Key = GridRun


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """Metrics and privacy record of one run of the grid, or of the clean baseline: the contents of
    metrics.json and record.json.
    """

    key: Key
    metrics: Mapping[str, Any]
    record: Mapping[str, Any]

    @property
    def is_baseline(self) -> bool:
        """Whether the run is the clean baseline, whose texts are unchanged."""
        return self.key[0] == "none"


@dataclass(frozen=True, slots=True)
class RunRecovery:
    """Shares of words and texts that adversaries recover from one run.

    Attributes:
        record: mechanism, strategy, epsilon, language_model; ``all`` and ``datasets`` have entries
            by frequency band, with n and the shares of
            ``lexveil.lab.evaluation.recovery.measured``.
    """

    record: Mapping[str, Any]

    @property
    def key(self) -> Key:
        """Mechanism, strategy, and epsilon or recovery level of the run."""
        return str(self.record["mechanism"]), str(self.record["strategy"]), noise_in(self.record)

    @property
    def bands(self) -> list[str]:
        """Word groups in the record: all words, the frequency bands, and the words of a user's list
        if there is one.
        """
        return list(self.record["all"])

    @property
    def linkage(self) -> list[tuple[str, int, Mapping[str, float]]]:
        """Tuples of data set, number of candidates, and the share of source texts that each
        adversary finds.
        """
        return [
            (dataset, int(size), shares)
            for dataset, by_size in self.record["linkage"].items()
            for size, shares in by_size.items()
        ]

    def n_words(self, band: str, dataset: str | None = None) -> int:
        """Return the number of replaced words in a frequency band."""
        return int(self._entry(band, dataset).get("n", 0))

    def share(
        self, band: str, which: str = "recovered", dataset: str | None = None
    ) -> Interval | None:
        """Return the share of replaced words that an adversary recovers, with its interval; None if
        there are no words or the share was not measured.

        Args:
            band: a frequency band of the record, or content: all bands except the band of the
                function words, which S1 keeps.
            which: unchanged, or one of ``lexveil.lab.evaluation.recovery.measured.GUESSES``; or
                recovered: the largest share among the adversaries that were run.
            dataset: one data set; None for all data sets.
        """
        if which == "recovered":
            shares = [
                share for one in READERS if (share := self.share(band, one, dataset)) is not None
            ]
            return max(shares, key=lambda share: share.share, default=None)
        if band == CONTENT:
            parts = [
                (self.n_words(one, dataset), self.share(one, which, dataset))
                for one in BANDS_OF[band]
            ]
            known = [(n, part.share) for n, part in parts if part is not None]
            whole = Share.of(round(sum(n * part for n, part in known)), sum(n for n, _ in known))
            return Interval(whole.share, whole.low, whole.high) if whole.n else None
        entry = self._entry(band, dataset)
        entry_share = entry.get(which)
        if not entry_share or not entry["n"] or entry_share["share"] is None:
            return None
        return Interval(entry_share["share"], entry_share["low"], entry_share["high"])

    def _entry(self, band: str, dataset: str | None) -> Mapping[str, Any]:
        entries = (
            self.record["all"] if dataset is None else self.record["datasets"].get(dataset, {})
        )
        entry: Mapping[str, Any] = entries.get(band, {})
        return entry


def key_columns(keys: Iterable[Key]) -> list[str]:
    """Return the names of the CSV columns that identify a run."""
    return ["mechanism", "strategy", "epsilon", *(["level"] if _has_levels(keys) else [])]


def key_cells(key: Key, keys: Iterable[Key]) -> list[str | float | None]:
    """Return the values that identify a run in CSV, by the columns of ``key_columns``. A run at a
    recovery level shows the epsilon that was computed for the level.
    """
    mechanism, strategy, noise = key
    return [mechanism, strategy, noise.epsilon, *([noise.share] if _has_levels(keys) else [])]


def _has_levels(keys: Iterable[Key]) -> bool:
    return any(key[2].is_level for key in keys)


def require_same_words(measured: Sequence[Mapping[str, Any]]) -> None:
    """Check that all plausible deniability statistics of a segmentation were measured on the same
    words.

    Raises:
        CheckFailedError: if the words differ, so that the statistics cannot be compared.
    """
    first: dict[str, Mapping[str, Any]] = {}
    for record in measured:
        known = first.setdefault(record["segmentation"], record)
        if known["word_rows"] != record["word_rows"]:
            files = [
                paths.deniability(one["mechanism"]) / f"{one['segmentation']}.json"
                for one in (known, record)
            ]
            raise CheckFailedError(
                f"{files[0]} and {files[1]} were measured on different words, so they cannot be "
                "compared. Run `dvc repro --force measure_deniability`"
            )
