"""Input data of the report sections. Each artifact is read once, and only if a section needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from lexveil.base import paths
from lexveil.base.levels import stage_name
from lexveil.base.runtime.tables import read_json, require
from lexveil.core.accounting.budgets import SEGMENTATION_OF
from lexveil.io.artifacts.levels import (
    SkippedLevel,
    made_runs,
    made_sentence_runs,
    resolved,
    skipped_run,
)
from lexveil.io.config import CLEAN, MachineParams, Params
from lexveil.io.execution import duckdb_session
from lexveil.lab.report.evaluation_values import (
    EvaluatedRun,
    Values,
    require_same_back_ends,
    values,
)
from lexveil.lab.report.records import (
    SEGMENTATIONS,
    Key,
    ReportedRun,
    RunRecovery,
    require_same_words,
)
from lexveil.lab.report.samples import SampleText, load_samples

Record = Mapping[str, Any]

BIN_BITS = 0.5  # dvc.yaml has the same unit in the axis label of pmi.csv
QUANTILE = 0.9
TOP = 12  # number of collocations per list
PER_DECADE = 20  # number of ranks of words


@dataclass(frozen=True)
class ReportData:
    """Artifacts of the experiment grid that ``params`` describes, loaded on first use. Artifacts of
    another grid are ignored.

    An artifact that does not exist raises MissingArtifactError, which names the stage that makes
    it.
    """

    params: Params
    machine: MachineParams = field(default_factory=MachineParams)

    @cached_property
    def grid(self) -> dict[Key, SkippedLevel | None]:
        """Every run of the grid in params.yaml (mechanism, strategy, and epsilon or recovery
        level), in the order of the page. The value is the reason if a run was skipped, and None if
        the run exists.
        """
        grid = self.params.grid
        ordered = grid.model_copy(update={"epsilons": sorted(grid.epsilons)})
        return {key: skipped_run(*key) for key in ordered.runs()}

    @cached_property
    def keys(self) -> list[Key]:
        """Mechanism, strategy and epsilon of the runs that exist, in the order of the page. A run
        at a recovery level has the epsilon that was calibrated for it.
        """
        return [
            (mechanism, strategy, resolved(mechanism, strategy, noise))
            for (mechanism, strategy, noise), skipped in self.grid.items()
            if skipped is None
        ]

    @cached_property
    def skipped(self) -> list[SkippedLevel]:
        """Runs of the grid that were skipped, with reasons, in the order of the page."""
        return [skipped for skipped in self.grid.values() if skipped is not None]

    @cached_property
    def plans(self) -> list[Record]:
        """Privacy budget and spending of every plan at a base epsilon, per data set: rows of
        sql/report/plan.sql.
        """
        totals = list[Record]()
        with duckdb_session.session(self.machine) as con:
            for strategy in self.params.grid.strategies:
                # at a base epsilon, all mechanisms have the same plan
                for epsilon in self.params.grid.base_epsilons:
                    plan = require(
                        paths.plan(self.params.grid.mechanisms[0], strategy, epsilon),
                        "plan_budgets",
                    )
                    duckdb_session.view(con, "plan", plan)
                    rows = _rows(con, "plan")
                    totals += [{"strategy": strategy, "epsilon": epsilon, **row} for row in rows]
        return totals

    def budget_mean(self, key: Key) -> float | None:
        """Return the mean privacy budget over all texts for a run, in 1 / distance of the
        mechanism.

        The result is None for the baseline, and for runs in which every token has the same epsilon
        (among them runs at a recovery level), because in these runs each text spends the sum of the
        epsilons of its tokens. The mean is rounded, so that the order of additions does not show.
        """
        if self.params.grid.is_per_token(key[2]):
            return None
        own = [plan for plan in self.plans if (plan["strategy"], plan["epsilon"]) == key[1:]]
        n_texts = sum(plan["n_texts"] for plan in own)
        return (
            round(sum(plan["budget"] * plan["n_texts"] for plan in own) / n_texts, 9)
            if n_texts
            else None
        )

    @cached_property
    def runs(self) -> list[ReportedRun]:
        """The runs of the grid, followed by the clean baseline (texts that were not rewritten)."""
        made_by = {key: stage_name("privatize", *key) for key in self.keys} | {CLEAN: "baseline"}
        names = ("metrics.json", "record.json")
        return [
            ReportedRun(key, *(read_json(paths.private(*key) / name, stage) for name in names))
            for key, stage in made_by.items()
        ]

    @cached_property
    def recovery(self) -> list[RunRecovery]:
        """Shares of words that the adversaries recover from each run of the grid."""
        return [
            RunRecovery(read_json(paths.recovery(*key), stage_name("evaluate", *key)))
            for key in self.keys
        ]

    @cached_property
    def samples(self) -> list[SampleText]:
        """Sample texts with the rewritten form that every run produced."""
        return load_samples(self.params, self.keys, self.machine)

    @cached_property
    def deniability(self) -> list[Record]:
        """Plausible deniability statistics of every mechanism, in the segmentations that the
        strategies of the grid use.

        Raises:
            CheckFailedError: if the statistics are about different words.
        """
        used = {SEGMENTATION_OF[strategy] for strategy in self.params.grid.strategies}
        statistics = [
            read_json(paths.deniability(mechanism) / f"{segmentation}.json", "measure_deniability")
            for segmentation in SEGMENTATIONS
            if segmentation in used
            for mechanism in self.params.grid.mechanisms
        ]
        require_same_words(statistics)
        return statistics

    @cached_property
    def checks(self) -> dict[str, Record]:
        """Results of all data checks, by file name."""
        grid = self.params.grid
        made_by = {
            paths.CHECKS / "corpus.json": "check_corpus",
            paths.CHECKS / "collocations.json": "check_collocations",
            paths.CHECKS / "coverage.json": "check_vocab",
            **{
                paths.plan_check(*key): "check_plans"
                for key in made_runs(grid.runs())
                # all mechanisms have the same plan
                if key[2].is_level or key[0] == grid.mechanisms[0]
            },
            paths.CHECKS / "sentences.json": "check_sentences",
            paths.CHECKS / "outputs.json": "check_outputs",
            paths.CHECKS / "evaluation.json": "check_evaluation",
        }
        return {str(file): read_json(file, stage) for file, stage in made_by.items()}

    @property
    def coverage(self) -> Mapping[str, Mapping[str, Record]]:
        """Counts of document words that each vocabulary knows, by data set and segmentation."""
        coverage: Mapping[str, Mapping[str, Record]] = self.checks[
            str(paths.CHECKS / "coverage.json")
        ]["summary"]["coverage"]
        return coverage

    @cached_property
    def evaluated(self) -> tuple[EvaluatedRun, list[EvaluatedRun]]:
        """Evaluation of the clean baseline (texts that were not rewritten), and evaluations of the
        runs of the grid.

        Raises:
            CheckFailedError: if these runs were measured with different models.
        """
        clean = EvaluatedRun(read_json(paths.evaluation(*CLEAN), "evaluate_baseline"))
        runs = [
            EvaluatedRun(read_json(paths.evaluation(*key), stage_name("evaluate", *key)))
            for key in self.keys
        ]
        require_same_back_ends(clean, runs)
        return clean, runs

    @property
    def clean(self) -> EvaluatedRun:
        """Evaluation of the clean baseline, that is, of texts that were not rewritten."""
        return self.evaluated[0]

    @cached_property
    def values(self) -> dict[str, Values]:
        """Means of all evaluation scores, by data set."""
        return {dataset: values(*self.evaluated, dataset) for dataset in self.clean.datasets}

    @cached_property
    def sentence_recovery(self) -> dict[Key, Record]:
        """Shares of source texts and words that an adversary recovers from every existing run of
        strategy S5 (sentences).
        """
        return {
            key: read_json(paths.recovery(*key), stage_name("evaluate", *key))
            for key in made_sentence_runs(self.params.grid.sentence_runs())
        }

    @cached_property
    def sentence_values(self) -> dict[str, Values]:
        """Means of all evaluation scores of runs of strategy S5 (sentences) and of clean texts, by
        data set; empty if there are no such runs.
        """
        runs = [
            EvaluatedRun(read_json(paths.evaluation(*key), stage_name("evaluate", *key)))
            for key in self.sentence_recovery
        ]
        require_same_back_ends(self.clean, runs)
        return {name: values(self.clean, runs, name) for name in self.clean.datasets if runs}

    @cached_property
    def corpus(self) -> Mapping[str, int]:
        """Total counts of the sampled corpus, such as documents and words."""
        totals: Mapping[str, int] = read_json(paths.METRICS / "ngrams.json", "count_ngrams")
        return totals

    @cached_property
    def segmented(self) -> dict[str, Record]:
        """Metrics of the corpus under each segmentation into tokens."""
        return {
            name: read_json(paths.METRICS / "segmented" / f"{name}.json", "segment_corpus")
            for name in self.params.grid.segmentations
        }

    @cached_property
    def spaces(self) -> dict[str, Record]:
        """Metrics of the trained embeddings, by segmentation."""
        return {
            name: read_json(
                paths.METRICS / "embeddings" / f"{name}.json", f"train_embeddings@{name}"
            )
            for name in self.params.grid.segmentations
        }

    @cached_property
    def base(self) -> Record | None:
        """Metadata of the base model from which training started; None if training started without
        a base model.
        """
        names = [space.get("training", {}).get("base") for space in self.spaces.values()]
        return next(filter(None, names), None)

    @cached_property
    def nearest(self) -> dict[str, float]:
        """Median distance between a token and its nearest neighbour in the embedding, by
        segmentation.
        """
        return {
            name: float(np.median(self.distances(name)[1][:, 0]))
            for name in self.params.grid.segmentations
        }

    @cached_property
    def collocations(self) -> dict[str, list[Record]]:
        """Results of three queries about collocations, by query name: the PMI histogram, the
        collocations to show, and word frequencies by rank.
        """
        with duckdb_session.session(self.machine) as con:
            for name in ("bigrams", "trigrams"):
                duckdb_session.view(
                    con, name, require(paths.COLLOCATIONS / f"{name}.parquet", "build_collocations")
                )
            duckdb_session.view(
                con, "words", require(paths.NGRAMS / "words.parquet", "count_ngrams")
            )
            queries: dict[str, dict[str, object]] = {
                "pmi_histogram": {"bin_bits": BIN_BITS},
                "collocations": {"quantile": QUANTILE, "n": TOP},
                "word_ranks": {"per_decade": PER_DECADE},
            }
            return {name: _rows(con, name, **parameters) for name, parameters in queries.items()}

    @property
    def n_collocations(self) -> dict[str, int]:
        """Number of bigrams and of trigrams among the collocations."""
        histogram = self.collocations["pmi_histogram"]
        return {
            ngrams: sum(row["n_collocations"] for row in histogram if row["ngrams"] == ngrams)
            for ngrams in ("bigrams", "trigrams")
        }

    @staticmethod
    def distances(segmentation: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Return the nearest neighbours of each token and their distances, shape (V, k) each,
        memory-mapped from disk.
        """
        folder = paths.neighborhood(segmentation)
        ids, distances = (
            np.load(
                require(folder / name, f"build_neighborhoods@{segmentation}"),
                mmap_mode="r",
                allow_pickle=False,
            )
            for name in ("neighbors.npy", "distances.npy")
        )
        return ids, distances


def _rows(con: duckdb.DuckDBPyConnection, name: str, **parameters: object) -> list[Record]:
    """Run the query sql/report/NAME.sql and return each row as a dict by column."""
    table = duckdb_session.run(con, f"report/{name}", **parameters)
    columns = [column[0] for column in table.description]
    return [dict(zip(columns, row, strict=True)) for row in table.fetchall()]
