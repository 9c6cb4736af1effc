"""Write the report: metrics, checks, plans, embeddings -> report/{index.html,metrics.json,runs.csv,pmi.csv}."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from lexveil import paths
from lexveil.accounting.budgets import SEGMENTATION_OF
from lexveil.artifacts.embeddings import load_words
from lexveil.config import CLEAN, GridParams, MachineParams, Params, load_params
from lexveil.evaluation.scores import relative_gain
from lexveil.report import (
    budgets,
    check_results,
    corpus_section,
    deniability_section,
    epsilon_units,
    evaluation_section,
    figures,
    formatting,
    literature,
    panel,
    replication_claims,
    run_section,
)
from lexveil.report.evaluation_section import Key, Values
from lexveil.report.figures import Series
from lexveil.report.page import Sources, render
from lexveil.report.panel import Panel
from lexveil.report.table import Column, Table, to_csv
from lexveil.runtime import duckdb_session
from lexveil.runtime.stage import stage_main
from lexveil.runtime.tables import atomic_file, read_json, require, write_json
from lexveil.text.function_words import STOP_WORDS

Rows = list[tuple[Any, ...]]

BIN_BITS = 0.5  # the unit stands in dvc.yaml too, in the axis label of pmi.csv
QUANTILE = 0.9
TOP = 12  # collocations per list
RANKS = (5, 15, 25)  # of the tokens shown with their neighbours: frequent ones, and not only the most frequent
NEIGHBOURS = 5
LIBRARIES = (
    "dvc", "duckdb", "gensim", "great-expectations", "jinja2", "matplotlib", "numba", "numpy", "pandas", "prefect",
    "pyarrow", "pynndescent", "randomgen", "scikit-learn", "scipy",
)  # fmt: skip


def grid_keys(grid: GridParams) -> list[Key]:
    """Mechanism, strategy and epsilon of every run that params.yaml names, in the order of the page."""
    return replace(grid, epsilons=sorted(grid.epsilons)).runs()


def read_plans(grid: GridParams, machine: MachineParams) -> list[budgets.PlanTotals]:
    """What every plan of the grid grants and spends, per data set."""
    totals = []
    with duckdb_session.session(machine) as con:
        for strategy in grid.strategies:
            for epsilon in grid.epsilons:
                duckdb_session.view(con, "plan", require(paths.plan(strategy, epsilon), f"plan_budgets@{strategy}"))
                rows = duckdb_session.run(con, "report/plan").fetchall()
                totals += [budgets.PlanTotals(strategy, epsilon, *row) for row in rows]
    return totals


def read_runs(grid: GridParams, plans: Sequence[budgets.PlanTotals]) -> list[run_section.RunResult]:
    """The runs that params.yaml names, then the clean baseline; what another grid left behind is not looked at."""

    def read(mechanism: str, strategy: str, epsilon: float, stage: str, budget: float | None) -> run_section.RunResult:
        folder = paths.private(mechanism, strategy, epsilon)
        metrics, record = (read_json(folder / name, stage) for name in ("metrics.json", "record.json"))
        return run_section.RunResult(mechanism, strategy, epsilon, metrics, record, budget)

    return [
        *(
            read(*key, f"privatize@{'-'.join(map(str, key))}", budgets.budget_mean(plans, *key[1:]))
            for key in grid_keys(grid)
        ),
        read(*CLEAN, "baseline", None),
    ]


def read_deniability(grid: GridParams) -> list[deniability_section.MechanismDeniability]:
    """The plausible deniability statistics of every mechanism, in the segmentations that the grid's strategies use."""
    used = {SEGMENTATION_OF[strategy] for strategy in grid.strategies}
    files = [
        (paths.deniability(mechanism) / f"{segmentation}.json", f"measure_deniability@{mechanism}")
        for segmentation in corpus_section.SEGMENTATIONS
        if segmentation in used
        for mechanism in grid.mechanisms
    ]
    return [deniability_section.MechanismDeniability(str(file), read_json(file, stage)) for file, stage in files]


def read_evaluation(grid: GridParams) -> tuple[evaluation_section.EvaluatedRun, list[evaluation_section.EvaluatedRun]]:
    """What was measured of the clean baseline, and of the runs that params.yaml names."""
    clean = read_json(paths.evaluation(*CLEAN), "evaluate_baseline")
    return evaluation_section.EvaluatedRun(clean), [
        evaluation_section.EvaluatedRun(read_json(paths.evaluation(*key), f"evaluate@{'-'.join(map(str, key))}"))
        for key in grid_keys(grid)
    ]


def relative_gains(
    clean: evaluation_section.EvaluatedRun, evaluated: Sequence[evaluation_section.EvaluatedRun]
) -> dict[tuple[str, Key], float | None]:
    """Relative gain of macro F1 against the adaptive attacker, by data set and run, where both scores are known."""
    gains = {}
    for dataset in evaluation_section.both_scored(clean):
        scores = [
            (one, one.value(dataset, evaluation_section.UTILITY), one.value(dataset, evaluation_section.ADAPTIVE))
            for one in (clean, *evaluated)
        ]
        (_, utility_clean, attack_clean), *rewritten = scores
        for one, utility, attack in rewritten:
            if utility and attack and utility_clean and attack_clean:
                gains[dataset, one.key] = relative_gain(
                    utility.mean, utility_clean.mean, attack.mean, attack_clean.mean
                )
    return gains


def class_counts(clean: evaluation_section.EvaluatedRun) -> dict[str, dict[str, int | None]]:
    """Classes and documents of label and attribute, by data set; see ``budgets.datasets_table``."""
    return {
        dataset: {
            f"n_{name}{end}": entry[key]
            for part, name in (("utility", "label"), ("attack", "attribute"))
            if (entry := clean.entry(dataset, part)) is not None
            for end, key in (("s", "n_classes"), ("_train", "n_train"), ("_test", "n_test"))
        }
        for dataset in clean.datasets
    }


def read_checks(grid: GridParams) -> dict[str, check_results.Check]:
    """The records of all expectations, by file name."""
    files = [
        (paths.CHECKS / "corpus.json", "check_corpus"),
        (paths.CHECKS / "collocations.json", "check_collocations"),
        (paths.CHECKS / "coverage.json", "check_vocab"),
        *(
            (paths.plan_check(strategy, epsilon), f"check_plans@{strategy}")
            for strategy in grid.strategies
            for epsilon in sorted(grid.epsilons)
        ),
        (paths.CHECKS / "outputs.json", "check_outputs"),
        (paths.CHECKS / "evaluation.json", "check_evaluation"),
    ]
    return {
        str(file.relative_to(paths.CHECKS)): check_results.Check(str(file), read_json(file, stage))
        for file, stage in files
    }


def read_distances(segmentation: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Nearest words and their distances, (V, k) each, mapped from disk."""
    folder = paths.neighborhood(segmentation)
    ids, distances = (
        np.load(require(folder / name, f"build_neighborhoods@{segmentation}"), mmap_mode="r", allow_pickle=False)
        for name in ("neighbors.npy", "distances.npy")
    )
    return ids, distances


def read_samples(segmentation: str) -> list[corpus_section.Sample]:
    """Some frequent tokens of every length with their nearest neighbours."""
    tokens = load_words(segmentation)
    file = require(paths.embedding(segmentation) / "counts.npy", f"train_embeddings@{segmentation}")
    counts = np.load(file, mmap_mode="r", allow_pickle=False)
    ids, distances = read_distances(segmentation)
    return [
        corpus_section.Sample(
            tokens[row],
            n_words,
            int(counts[row]),
            [
                corpus_section.Neighbour(tokens[near], float(distance))
                for near, distance in zip(ids[row, :NEIGHBOURS], distances[row, :NEIGHBOURS], strict=True)
            ],
        )
        for n_words in (1, 2, 3)
        for row in corpus_section.choose(tokens, n_words, STOP_WORDS, RANKS)
    ]


def read_collocations(machine: MachineParams) -> tuple[Rows, Rows, Rows]:
    """The PMI histogram, the collocations to show, and word frequencies by rank, as rows of their SQL files."""
    with duckdb_session.session(machine) as con:
        for name in ("bigrams", "trigrams"):
            duckdb_session.view(con, name, require(paths.COLLOCATIONS / f"{name}.parquet", "build_collocations"))
        duckdb_session.view(con, "words", require(paths.NGRAMS / "words.parquet", "count_ngrams"))
        histogram = duckdb_session.run(con, "report/pmi_histogram", bin_bits=BIN_BITS).fetchall()
        top = duckdb_session.run(con, "report/collocations", quantile=QUANTILE, n=TOP).fetchall()
        ranks = duckdb_session.run(con, "report/word_ranks", per_decade=20).fetchall()
    return histogram, top, ranks


def read_published() -> list[literature.Literature]:
    """The figures of the papers."""
    return literature.parse((resources.files("lexveil.report") / "published.csv").read_text(encoding="utf-8"))


def read_page() -> Sources:
    """The template, and what is put inside it."""
    folder = resources.files("lexveil.report")
    return Sources(*((folder / name).read_text(encoding="utf-8") for name in ("page.html.j2", "page.css", "page.js")))


def read_versions() -> list[tuple[str, str]]:
    """The libraries of the installation that makes the page. Not Python's own: its patch level changes no result."""
    return [(name, metadata.version(name)) for name in LIBRARIES]


def top_tables(rows: Sequence[tuple[Any, ...]]) -> tuple[list[Table], list[tuple[str, int]]]:
    """The lists of collocations, and the smallest count that took part in those by PMI.

    Args:
        rows: of sql/report/collocations.sql.
    """
    tables = []
    for ngrams in ("bigrams", "trigrams"):
        for place, name, what in ((5, "by-pmi", "highest PMI among the frequent"), (6, "by-count", "most frequent")):
            own = {row[place]: row[1:4] for row in rows if row[0] == ngrams and row[place] is not None}
            caption = f"{ngrams.capitalize()}: {what}"
            tables.append(
                corpus_section.collocation_table(f"{ngrams}-{name}", caption, [own[at] for at in sorted(own)])
            )
    return tables, sorted({(row[0], row[4]) for row in rows})


def collocation_series(histogram: Sequence[tuple[str, float, int]]) -> list[Series]:
    """The PMI histogram as one series per n-gram length; see ``figures.pmi_histogram``."""
    return [
        Series(
            ngrams,
            [edge for name, edge, _ in histogram if name == ngrams],
            [n for name, _, n in histogram if name == ngrams],
        )
        for ngrams in ("bigrams", "trigrams")
    ]


def result_figures(
    all_runs: Sequence[run_section.RunResult], mechanisms: Sequence[str]
) -> list[tuple[str, list[Panel]]]:
    """Two figures per mechanism: share unchanged, and mean cosine, over epsilon."""
    drawn = []
    for mechanism in mechanisms:
        unchanged, cosine = (
            run_section.series(all_runs, mechanism, name) for name in ("share_unchanged", "mean_cosine")
        )
        lowest = min((y for one in cosine for y in one.y), default=0.0)
        names = [f"unchanged-{mechanism}", f"cosine-{mechanism}"]
        panels = [
            Panel(
                "Tokens that come back unchanged",
                figures.over_epsilon(
                    names[0],
                    f"{mechanism}: share of tokens that come back unchanged, over ε",
                    "unchanged (% of tokens with noise)",
                    unchanged,
                    unit=epsilon_units.unit(mechanism),
                    y_limits=(0, 1),
                    percent=True,
                ),
                panel.series_data(names[0], "strategy", "epsilon", "share_unchanged", unchanged),
            ),
            Panel(
                "Mean cosine of replaced tokens",
                figures.over_epsilon(
                    names[1],
                    f"{mechanism}: mean cosine of replaced tokens, over ε",
                    "mean cosine (1 = same direction)",
                    cosine,
                    unit=epsilon_units.unit(mechanism),
                    y_limits=(min(0.0, lowest), 1),
                ),
                panel.series_data(names[1], "strategy", "epsilon", "mean_cosine", cosine),
            ),
        ]
        drawn.append((mechanism, panels))
    return drawn


def deniability_figures(
    measured: Sequence[deniability_section.MechanismDeniability], grid: GridParams, n_draws: int
) -> list[tuple[str, list[Panel]]]:
    """Two figures per segmentation, N_w and S_w over epsilon, with their heading."""
    unit = epsilon_units.shared_unit(grid.mechanisms)

    def drawn(segmentation: str, statistic: str, computed: str, title: str, what: str, y_label: str) -> Panel:
        name = f"{statistic.replace('_', '-')}-{segmentation}"
        series = deniability_section.series(measured, segmentation, statistic, computed)
        svg = figures.spread_over_epsilon(
            name, f"{segmentation}: {what}, over ε", y_label, series, unit=unit, y_limits=(0, n_draws)
        )
        return Panel(title, svg, panel.spread_data(name, "mechanism", "epsilon", statistic, series))

    first = {one.segmentation: one for one in reversed(measured)}
    return [
        (
            deniability_section.heading(first[name], grid.strategies),
            [
                drawn(
                    name,
                    "n_w",
                    "n_w_exact",
                    "N_w: how often a word stays",
                    "how often a word comes out as itself",
                    f"N_w (draws of {n_draws:,})",
                ),
                drawn(
                    name,
                    "s_w",
                    "s_w_expected",
                    "S_w: how many words come out of one",
                    "how many words come out of one",
                    "S_w (different words)",
                ),
            ],
        )
        for name in corpus_section.SEGMENTATIONS
        if name in first
    ]


def evaluation_figures(place: int, dataset: str, of: Values, mechanism: str) -> list[Panel]:
    """What is known of one data set and mechanism: utility, attack and cosine over epsilon, and utility over attack.

    Args:
        place: of the data set, from 1, for ids.
    """
    utility, adaptive, cosine = evaluation_section.UTILITY, evaluation_section.ADAPTIVE, evaluation_section.COSINE
    forms = (
        ("utility", utility, "utility", "utility (macro F1, 0 to 1)"),
        ("attack", adaptive, "adaptive attack", "adaptive attack (macro F1, 0 to 1)"),
        ("similarity", cosine, "cosine of texts", "cosine of texts (1 = same direction)"),
    )
    drawn = []
    for name, measure, words, y_label in forms:
        series = evaluation_section.series(of, measure, mechanism)
        if not series:
            continue
        anchors = (("clean texts", evaluation_section.CLEAN), ("majority", evaluation_section.MAJORITY))
        levels = {
            label: of[measure.name, key].mean
            for label, key in anchors
            if (measure.name, key) in of and measure is not cosine
        }
        lowest = min(0.0, *(y for one in series for y in one.y))
        own = f"{name}-{place}-{mechanism}"
        svg = figures.over_epsilon(
            own,
            f"{dataset}, {mechanism}: {words} over ε",
            y_label,
            series,
            unit=epsilon_units.unit(mechanism),
            y_limits=(lowest, 1),
            levels=levels,
        )
        data = evaluation_section.figure_data(own, of, [measure], mechanism)
        drawn.append(Panel(f"{dataset}, {mechanism}: {words} over ε", svg, data))
    lines = evaluation_section.tradeoff_series(of, mechanism)
    ends = [
        [of.get((one.name, key)) for one in (adaptive, utility)]
        for key in (evaluation_section.CLEAN, evaluation_section.MAJORITY)
    ]
    if lines and all(one is not None for end in ends for one in end):
        clean, majority = ((x.mean, y.mean) for x, y in ends if x is not None and y is not None)
        title, own = f"{dataset}, {mechanism}: utility over attack", f"tradeoff-{place}-{mechanism}"
        svg = figures.tradeoff(own, title, lines, clean=clean, majority=majority)
        drawn.append(Panel(title, svg, evaluation_section.figure_data(own, of, [adaptive, utility], mechanism)))
    return drawn


def evaluated_datasets(
    clean: evaluation_section.EvaluatedRun,
    values_of: Mapping[str, Values],
    grid: GridParams,
    printed: Sequence[literature.Literature],
) -> list[tuple[str, list[Table], list[Panel]]]:
    """Tables and figures of every data set of which anything was measured, by its name."""
    keys = grid_keys(grid)
    found = []
    for place, (dataset, of) in enumerate(values_of.items(), 1):
        tables = evaluation_section.dataset_tables(place, dataset, clean, of, keys, printed)
        drawn = [one for mechanism in grid.mechanisms for one in evaluation_figures(place, dataset, of, mechanism)]
        if tables:
            found.append((dataset, tables, drawn))
    return found


def headline(
    all_runs: Sequence[run_section.RunResult],
    corpus: Mapping[str, int],
    n_collocations: Mapping[str, int],
    spaces: Mapping[str, Mapping[str, Any]],
    coverage: Mapping[str, Mapping[str, Mapping[str, Any]]],
    evaluated: Sequence[evaluation_section.EvaluatedRun],
) -> dict[str, Any]:
    """The numbers of metrics.json."""
    return {
        "corpus": {name: corpus[name] for name in ("n_documents", "n_sentences", "n_tokens", "n_words")},
        "collocations": dict(n_collocations),
        "vocabulary": {segmentation: spaces[segmentation]["n_tokens"] for segmentation in corpus_section.SEGMENTATIONS},
        "coverage": {
            dataset: {segmentation: round(one["coverage"], 9) for segmentation, one in by_segmentation.items()}
            for dataset, by_segmentation in coverage.items()
        },
        "runs": run_section.headline(all_runs),
        "evaluation": evaluation_section.headline(evaluated),
    }


def write_text(text: str, out: Path) -> None:
    """Write one text file."""
    with atomic_file(out) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


def run(params: Params, out: Path) -> None:
    """Read every artifact that ``params`` names and write the four files of the report into folder ``out``.

    Raises:
        MissingArtifact: if one is not there yet.
        CheckFailed: if a check did not hold, or two plans contradict each other.
    """
    grid = params.grid
    plans = read_plans(grid, params.machine)
    all_runs = read_runs(grid, plans)
    measured = read_deniability(grid)
    deniability_section.require_same_words(measured)
    n_draws = params.deniability.draws
    records = read_checks(grid)
    clean, evaluated = read_evaluation(grid)
    evaluation_section.require_same_back_ends(clean, evaluated)
    gains = relative_gains(clean, evaluated)
    values_of = {dataset: evaluation_section.values(clean, evaluated, dataset, gains) for dataset in clean.datasets}
    keys = grid_keys(grid)
    printed = read_published()
    coverage = records["coverage.json"].record["summary"]["coverage"]
    corpus = read_json(paths.METRICS / "ngrams.json", "count_ngrams")
    segmentations = corpus_section.SEGMENTATIONS
    segmented = {
        name: read_json(paths.METRICS / "segmented" / f"{name}.json", f"segment_corpus@{name}")
        for name in segmentations
    }
    spaces = {
        name: read_json(paths.METRICS / "embeddings" / f"{name}.json", f"train_embeddings@{name}")
        for name in segmentations
    }
    dimensions = {
        name: read_json(paths.embedding(name) / "meta.json", f"train_embeddings@{name}")["dimensions"]
        for name in segmentations
    }
    nearest = {name: float(np.median(read_distances(name)[1][:, 0])) for name in segmentations}
    samples = {name: read_samples(name) for name in segmentations}
    histogram, top, ranks = read_collocations(params.machine)
    n_collocations = {
        ngrams: sum(n for name, _, n in histogram if name == ngrams) for ngrams in ("bigrams", "trigrams")
    }
    top_collocations, thresholds = top_tables(top)
    bounded = run_section.bounded(all_runs, epsilon_units.EUCLIDEAN)
    settings = {name: value for name, value in asdict(params).items() if name not in ("machine", "operation")}
    pmi = collocation_series(histogram)
    outcomes = run_section.outcome_shares(all_runs)
    lengths = corpus_section.length_shares(segmented)
    rank_line = Series("words", [rank for rank, _ in ranks], [n for _, n in ranks])
    view = {
        "version": all_runs[0].record["lexveil"],
        "n_runs": len(all_runs) - 1,
        "n_texts": all_runs[-1].metrics["n_texts"],
        "datasets": sorted(coverage),
        "promises": run_section.promises(all_runs),
        "exposure": run_section.exposure_table(all_runs),
        "outcome_figure": Panel(
            "What happens to the tokens",
            figures.outcomes("outcomes", "Share of tokens by what happens to them, per strategy", outcomes),
            panel.data(
                "outcomes",
                ["strategy", "outcome", "share"],
                [(label, kind, share) for label, shares in outcomes.items() for kind, share in shares.items()],
            ),
        ),
        "glance": evaluation_section.glance_table(values_of, keys),
        "unlearnt": evaluation_section.unlearnt(values_of),
        "shapes": replication_claims.shapes_table(replication_claims.shapes(values_of, measured)),
        "strategies": grid.strategies,
        "strategy_in_words": run_section.STRATEGY_IN_WORDS,
        "result_figures": result_figures(all_runs, grid.mechanisms),
        "results": run_section.results_table(all_runs),
        "tokens": run_section.tokens_table(all_runs),
        "average_tables": evaluation_section.average_tables(clean, values_of, keys, printed),
        "evaluated": evaluated_datasets(clean, values_of, grid, printed),
        "left_out": evaluation_section.left_out(clean),
        "not_measured": evaluation_section.not_measured(clean),
        "any_gain": any(gain is not None for gain in gains.values()),
        "n_draws": n_draws,
        "epsilon_in_words": epsilon_units.in_words(grid.mechanisms),
        "mixed_units": len({epsilon_units.unit(name) for name in grid.mechanisms}) > 1,
        "any_exact": any(row["n_w_exact"] is not None for one in measured for row in one.rows),
        "deniability_figures": deniability_figures(measured, grid, n_draws),
        "deniability": deniability_section.deniability_table(measured, n_draws),
        "refusals": deniability_section.refusals(measured),
        "table_8": budgets.table_8(plans, grid.mechanisms, printed),
        "data_sets": budgets.datasets_table(plans, class_counts(clean)),
        "per_token": budgets.per_token_table(plans),
        "spent": budgets.spent_table(plans),
        "bound": budgets.bound_table(plans, {name: nearest[SEGMENTATION_OF[name]] for name in grid.strategies}, bounded)
        if bounded
        else None,
        "coverage": corpus_section.coverage_table(coverage),
        "corpus": corpus_section.corpus_table(corpus, n_collocations["bigrams"], n_collocations["trigrams"]),
        "pmi_figure": Panel(
            "PMI of the collocations",
            figures.pmi_histogram("pmi", "Collocations by PMI", pmi, BIN_BITS),
            panel.series_data("pmi", "ngrams", "pmi_bits", "n_collocations", pmi),
        ),
        "length_figure": Panel(
            "Token lengths",
            figures.token_lengths("lengths", "Share of tokens by length, per segmentation", lengths),
            panel.data(
                "lengths",
                ["segmentation", "words", "share"],
                [(name, n, share) for name, shares in lengths.items() for n, share in enumerate(shares, 1)],
            ),
        ),
        "rank_figure": Panel(
            "Word frequencies",
            figures.word_ranks("ranks", "Occurrences of a word over its rank", rank_line),
            panel.series_data("ranks", "of", "rank", "occurrences", [rank_line]),
        ),
        "segmentations": corpus_section.segmentation_table(segmented, spaces, dimensions, nearest),
        "thresholds": thresholds,
        "top_collocations": top_collocations,
        "ranks": formatting.listed([f"{rank}th" for rank in RANKS]),
        "neighbours": [(name, samples[name]) for name in ("gst", "mst", "word")],
        "checks": check_results.checks_table(list(records.values())),
        "params": params,
        "params_text": yaml.safe_dump(settings, sort_keys=False, default_flow_style=None, width=46).strip(),
        "versions": Table(
            "versions",
            "Versions of libraries",
            [Column("library", "Library"), Column("version", "Version")],
            read_versions(),
        ),
    }
    page = render(read_page(), view)
    write_text(page, out / "index.html")
    write_text(to_csv(*run_section.csv_rows(all_runs)), out / "runs.csv")
    write_text(to_csv(["ngrams", "pmi_bits", "n_collocations"], histogram), out / "pmi.csv")
    write_json(headline(all_runs, corpus, n_collocations, spaces, coverage, [clean, *evaluated]), out / "metrics.json")
    print(f"report: {len(all_runs)} runs, {len(page.encode()) / 1000:,.0f} kB -> {out / 'index.html'}")


def main() -> None:
    """Run the stage."""
    run(load_params(), paths.REPORT)


if __name__ == "__main__":
    stage_main(main)
