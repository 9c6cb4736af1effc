"""Page of a preset's run: settings, claims, cells, then each table with our values beside the
paper's.
"""

from __future__ import annotations

import contextlib
import csv
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from examples.replication import efficiency, figures, neighbours, sentences, stsb, tradeoff
from examples.replication.cells import (
    RunSettings,
    beside_table,
    cells_of,
    counts,
    counts_table,
    reasons_table,
)
from examples.replication.claims import VERDICTS, ReplicationClaim, claims_of, shapes_table
from examples.replication.literature import Literature, places, published_figures
from examples.replication.measured import Measured, measured
from examples.replication.preset import (
    SENTENCES,
    Preset,
    ReplicationRequest,
    grids_of,
    load_preset,
    read_request,
)
from lexveil.base.levels import BaseEpsilon
from lexveil.io.config import CLEAN, load_params
from lexveil.lab.evaluation.metrics.utility import UTILITY_MICRO
from lexveil.lab.report import formatting
from lexveil.lab.report.charts import Chart
from lexveil.lab.report.data import ReportData
from lexveil.lab.report.evaluation_values import MAJORITY, Values, at_epsilons, of_score
from lexveil.lab.report.records import Key
from lexveil.lab.report.table import Column, Table, epsilon_key

FIGURES = Path("replication-figures")  # in the project
NOTE = (
    "Figures of the papers are as printed, including errors. They were measured with other "
    "models on texts rewritten in other embeddings, so compare how they change with ε, not "
    "their height. Percentages are written as shares."
)
SPREAD = (
    "Spread: the standard errors of both sides together. The standard error of a score comes "
    "from its trainings and from the number of evaluated documents, that of a cosine from its "
    "texts, that of N_w and S_w from their quartiles over the words. Noise is drawn once per "
    "run, so the spread does not include its chance. Among many comparisons some exceed the "
    "spread by chance."
)
# data sets without claims: STS-B has scores, not classes, and the examples are four sentences
NO_CLAIM = (stsb.DATASET, sentences.DATASET)
N_DRAWS = (20, 100)  # draws of each word in the trade-off: without and with --full
N_RUNS = (3, 100)  # runs behind the mean of a point: without and with --full
N_WORDS = 1000  # words of the trade-off, without --full
EPSILONS_OF_TRADEOFF = (2.0, 5.0, 10.0, 25.0, 100.0)


def markdown(caption: str, table: Table, note: str = "") -> str:
    """Return a table in Markdown, below its caption."""
    lines = [[column.head for column in table.columns], ["---"] * len(table.columns)]
    lines += [[cell.text for cell in row] for row in table.cells]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"**{caption}**\n\n{body}\n" + (f"\n{note}\n" if note else "")


def settings_table(preset: Preset) -> Table:
    """Return a table with the paper's settings and ours."""
    columns = [
        Column("setting", "setting"),
        Column("theirs", preset.paper),
        Column("ours", "here"),
    ]
    rows = [
        {"setting": setting, "theirs": theirs, "ours": ours}
        for setting, theirs, ours in preset.settings
    ]
    return Table("settings", columns, rows)


def statement(report: ReportData, request: ReplicationRequest) -> str:
    """Return the settings of the run, with every size, as a Markdown list."""
    params = report.params
    sizes = ", ".join(
        f"{name} {space['n_tokens']:,} tokens" if "n_tokens" in space else name
        for name, space in report.spaces.items()
    )
    texts = "all" if request.texts is None else f"{request.texts:,} per set"
    lines = [
        f"Data sets {', '.join(request.sets)}: texts, {texts}.",
        f"Corpus: {', '.join(request.corpus)}; {report.corpus['n_tokens']:,} words.",
        f"Embeddings: {sizes}; {json.dumps(params.embeddings.model_dump(mode='json'))}.",
        *(f"Grid: {json.dumps(grid)}." for grid in grids_of(load_preset(request.paper), request)),
        f"Policy: stop words {params.policy.stopwords}, punctuation {params.policy.punctuation}, "
        f"unknown words {params.policy.oov}.",
        f"Evaluation: {json.dumps(params.evaluation.model_dump(mode='json'))}.",
    ]
    return "\n".join(f"* {line}" for line in lines) + "\n"


def page(project: Path) -> str:
    """Return the page of a project that a preset made and ran; write its figures beside the
    page.
    """
    request = read_request(project)
    preset = load_preset(request.paper)
    printed = [figure for figure in published_figures() if figure.paper == preset.paper]
    with contextlib.chdir(project):
        report, keys, values_of = _runs_of_all_grids(preset, request)
        known = measured(report, values_of, printed, keys)
        parts = _special_parts(preset.paper, report, request, printed, known, keys, values_of)
        drawn = [*figures.of_runs(values_of, preset.paper), *parts.charts]
        drawn = [chart for chart in drawn if chart.series]
        files = figures.write_figures(drawn, FIGURES)
        compared = {name: of for name, of in values_of.items() if name not in NO_CLAIM}
        own_claims = claims_of(preset.paper, compared, report.deniability, parts.tradeoff, known)
        cells = cells_of(printed, known, _covered(report, values_of, keys))
        rows = counts(cells, parts.counts)
        sections = [
            f"# Replication of {preset.paper}\n",
            f"{NOTE}\n",
            "## What was run\n",
            markdown("Settings", settings_table(preset)),
            statement(report, request),
            "## Claims\n",
            _verdicts(own_claims),
            markdown(
                "Claims of the paper, and whether they hold in this project",
                shapes_table(own_claims),
                SPREAD,
            ),
            f"## Reproduced cells: {rows[-1].remade:,} of {rows[-1].printed:,} printed\n",
            markdown("Cells by table", counts_table(rows)),
        ]
        if any(cell.reason for cell in cells):
            sections.append(markdown("Cells that are not reproduced", reasons_table(cells)))
        sections.append("## Tables\n")
        for table in places(printed, preset.paper):
            own = [cell for cell in cells if cell.figure.table == table]
            if any(cell.ours is not None for cell in own):
                sections.append(
                    markdown(f"{preset.paper} {own[0].figure.place}", beside_table(own))
                )
        sections += parts.sections
        sections.append("## Figures\n")
        sections += [
            f"![{chart.title}]({file.as_posix()})\n\n{chart.description}\n"
            for chart, file in zip(drawn, files, strict=True)
        ]
    return "\n".join(sections)


def _runs_of_all_grids(
    preset: Preset, request: ReplicationRequest
) -> tuple[ReportData, list[Key], dict[str, Values]]:
    """Return the report of the main grid, the runs of all grids, and their measured values by data
    set.
    """
    params = load_params()
    keys: dict[Key, None] = {}
    values_of: dict[str, dict[tuple[str, Key], Any]] = {}
    for grid in grids_of(preset, request):
        own = params.grid.model_copy(
            update={
                "mechanisms": grid["mechanisms"],
                "epsilons": [BaseEpsilon(epsilon) for epsilon in grid["epsilons"]],
            }
        )
        report = ReportData(params.model_copy(update={"grid": own}))
        keys |= dict.fromkeys(key for key in report.keys if key[2].share is None)
        for name, values in report.values.items():
            values_of.setdefault(name, {}).update(at_epsilons(values))
    ordered = sorted(keys, key=lambda key: (*key[:2], key[2]))
    return report, ordered, dict(values_of)


class _Parts:
    """Parts of the page that only one paper has, in addition to tables of scores.

    Attributes:
        sections: Markdown sections.
        charts: figures to draw.
        counts: numbers of cells that are not figures, (printed, reproduced), by place.
        tradeoff: measured trade-off of Vickrey; None for other papers.
    """

    def __init__(self) -> None:
        self.sections: list[str] = []
        self.charts: list[Chart] = []
        self.counts: dict[str, tuple[int, int]] = {}
        self.tradeoff: Mapping[str, Any] | None = None


def _special_parts(
    paper: str,
    report: ReportData,
    request: ReplicationRequest,
    printed: Sequence[Literature],
    known: Measured,
    keys: Sequence[Key],
    values_of: Mapping[str, Values],
) -> _Parts:
    """Return the parts for single texts, neighbours, trade-offs and speed; add their figures to
    ``known``.
    """
    parts = _Parts()
    inputs = _inputs()
    if paper == "CLMLDP":
        values, table = sentences.figure_1(inputs[sentences.FIGURE_1])
        known |= values
        parts.sections.append(
            markdown("CLMLDP Figure 1: segmentation of the example in this project", table)
        )
        table_7, n_remade = neighbours.table_7()
        parts.counts["Table 7"] = (30, n_remade)
        parts.sections.append(markdown("CLMLDP Table 7: nearest tokens", table_7))
    if paper == "1-Diffractor":
        measures = efficiency.measure_efficiency(report.params)
        known |= efficiency.known_values(measures)
        caption = "1-Diffractor Figures 6 and 7: speed and memory on this machine"
        parts.sections.append(markdown(caption, efficiency.efficiency_table(measures)))
        parts.charts += figures.of_deniability(report.deniability)
        parts.charts += figures.of_efficiency(measures)
    if paper == "Vickrey":
        parts.tradeoff = _tradeoff(request)
        known |= tradeoff.known_values(parts.tradeoff, printed)
        parts.charts += figures.of_tradeoff(parts.tradeoff)
        sizes = "{n_words:,} words, {n_draws} draws of each, mean of {n_runs} runs"
        caption = f"Vickrey Algorithm 2 ({sizes.format(**parts.tradeoff)} in the figures)"
        parts.sections.append(markdown(caption, tuned_table(parts.tradeoff)))
        for dataset in ("tweets", "imdb"):
            if dataset in values_of:
                caption = f"Vickrey Figure 2, {dataset}: share of texts that are misclassified"
                table = misclassified_table(values_of[dataset])
                parts.sections.append(markdown(caption, table))
    for examples in sentences.TABLES:
        if examples.paper == paper:
            runs = sentences.runs_of_table(keys, examples)
            place = f"Table {examples.number}"
            caption = f"{paper} {place}: outputs for its input in this project"
            parts.sections.append(markdown(caption, sentences.outputs(runs, examples.doc_id)))
            parts.counts[place] = (examples.n_printed, len(runs))
    return parts


def _inputs() -> dict[str, str]:
    with SENTENCES.open(encoding="utf-8", newline="") as file:
        return {row["doc_id"]: row["text"] for row in csv.DictReader(file)}


def _tradeoff(request: ReplicationRequest) -> Mapping[str, Any]:
    """Return the trade-off of the project in this folder; it is measured once and stored."""
    file = tradeoff.TRADEOFF_JSON
    if not file.is_file():
        found = tradeoff.measure_project(
            n_words=None if request.full else N_WORDS,
            n_draws=N_DRAWS[request.full],
            n_runs=N_RUNS[request.full],
            epsilons=tradeoff.EPSILONS if request.full else EPSILONS_OF_TRADEOFF,
            others=[name for name in ("tweets", "imdb") if name in request.sets],
        )
        file.write_text(json.dumps(found, indent=1), encoding="utf-8")
    known: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return known


def tuned_table(found: Mapping[str, Any]) -> Table:
    """Return a table of the ε and t that Algorithm 2 chose at each bound of utility loss."""
    columns = [
        Column("max_loss", "loss at most", formatting.two),
        Column("epsilon", "ε", formatting.one),
        Column("t", "t", formatting.two),
        Column("inference_error", "inference error", formatting.three),
        Column("utility_loss", "utility loss", formatting.three),
    ]
    return Table("tuned", columns, found["tuned"])


def misclassified_table(values: Values) -> Table:
    """Return a table of the utility loss of texts, 1 − accuracy, by mechanism and ε."""
    accuracy = of_score(values, UTILITY_MICRO)
    runs = [key for key in accuracy if key not in (MAJORITY, CLEAN)]
    noises = sorted({key[2] for key in runs})
    rows = [
        {
            "mechanism": mechanism,
            "clean": 1 - accuracy[CLEAN].mean,
            **{
                epsilon_key(noise): 1 - accuracy[mechanism, "S1", noise].mean
                for noise in noises
                if (mechanism, "S1", noise) in accuracy
            },
        }
        for mechanism in dict.fromkeys(key[0] for key in runs)
    ]
    columns = [
        Column("mechanism", "mechanism"),
        Column("clean", "clean texts", formatting.three),
        *(Column(epsilon_key(noise), noise.title, formatting.three) for noise in noises),
    ]
    return Table("misclassified", columns, rows)


def _covered(
    report: ReportData, values_of: Mapping[str, Values], keys: Sequence[Key]
) -> RunSettings:
    return RunSettings(
        frozenset([*values_of, sentences.DATASET]),
        frozenset(key[0] for key in keys),
        frozenset(report.params.grid.strategies),
        frozenset(key[2].number for key in keys),
    )


def _verdicts(own_claims: Sequence[ReplicationClaim]) -> str:
    """Return the number of claims by verdict, as a sentence."""
    n = Counter(claim.verdict for claim in own_claims)
    parts = [f"{verdict}: {n[verdict]}" for verdict in VERDICTS]
    return f"Of {len(own_claims)} claims, {', '.join(parts)}.\n"
