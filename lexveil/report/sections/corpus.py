"""The corpus in numbers, its n-grams, and what each segmentation makes of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from lexveil import paths
from lexveil.report import formatting
from lexveil.report.data import BIN_BITS, ReportData
from lexveil.report.figures import STYLES, Series, add_legend, new_panel, percent_tick
from lexveil.report.panel import Panel, data, series_data
from lexveil.report.records import SEGMENTATIONS
from lexveil.report.section import CsvFile, Section
from lexveil.report.svg import BLUE, PAPER, drawing, to_svg
from lexveil.report.table import Column, Table
from lexveil.runtime.tables import read_json

LENGTHS = ("unigram", "bigram", "trigram")


def corpus_table(totals: Mapping[str, int], n_bigrams: int, n_trigrams: int) -> Table:
    """The corpus in numbers."""
    per_sentence = totals["n_tokens"] / totals["n_sentences"] if totals["n_sentences"] else None

    def part(n: int, of: int) -> float | None:
        return n / of if of else None

    rows = [
        ("Documents in the sample", totals["n_documents"], None),
        ("Sentences", totals["n_sentences"], None),
        ("Words and punctuation marks (N of PMI)", totals["n_tokens"], None),
        ("Words and punctuation marks per sentence", per_sentence, None),
        ("Distinct words", totals["n_words"], None),
        ("Distinct bigrams counted", totals["n_bigrams"], None),
        ("Bigrams kept as collocations", n_bigrams, part(n_bigrams, totals["n_bigrams"])),
        ("Distinct trigrams counted", totals["n_trigrams"], None),
        ("Trigrams kept as collocations", n_trigrams, part(n_trigrams, totals["n_trigrams"])),
    ]
    columns = [
        Column("what", "What"),
        Column("number", "Number", formatting.amount),
        Column("share", "Of those counted", formatting.share),
    ]
    return Table("corpus", "What was read and counted", columns, rows)


def segmentation_table(
    segmented: Mapping[str, Mapping[str, Any]],
    spaces: Mapping[str, Mapping[str, Any]],
    dimensions: Mapping[str, int],
    nearest: Mapping[str, float],
) -> Table:
    """What each segmentation makes of the corpus, and the vocabulary its embedding learnt.

    Args:
        segmented, spaces: metrics by segmentation.
        dimensions: p, by segmentation.
        nearest: median distance of a token to its nearest neighbour, by segmentation.
    """
    rows = []
    has_base = all(space.get("training", {}).get("began") for space in spaces.values())
    for name in SEGMENTATIONS:
        cut, space = segmented[name], spaces[name]
        n_tokens = cut["n_tokens"]
        rows.append(
            (
                name,
                n_tokens,
                cut["n_words"] / n_tokens if n_tokens else None,
                space["n_tokens"],
                *(space[f"n_{length}s"] for length in LENGTHS),
                *([space["training"]["began"]["not_trained"]] if has_base else []),
                space["tokens_covered"] / n_tokens if n_tokens else None,
                dimensions[name],
                space["norm_median"],
                nearest[name],
            )
        )
    return Table(
        "segmentations",
        "Segmentations of the corpus and their vocabularies",
        [
            Column("segmentation", "Segmentation"),
            Column("n_tokens", "Tokens", formatting.count, "Corpus"),
            Column("words_per_token", "Words / token", formatting.three, "Corpus"),
            Column("vocabulary", "Tokens", formatting.count, "Vocabulary"),
            *(Column(f"n_{length}s", f"{length.capitalize()}s", formatting.count, "Vocabulary") for length in LENGTHS),
            *([Column("n_of_base", "Of the base alone", formatting.count, "Vocabulary")] if has_base else []),
            Column("corpus_share", "Share of the corpus", formatting.share, "Vocabulary"),
            Column("dimensions", "Dimensions", formatting.count, "Embedding"),
            Column("norm_median", "Median length", formatting.three, "Embedding"),
            Column("nearest_median", "Median distance to nearest", formatting.three, "Embedding"),
        ],
        rows,
        "word: every word alone. gst: left to right, the longest collocation first. mst: the collocation of highest "
        "PMI first. Lengths and distances are in embedding units.",
    )


def length_shares(segmented: Mapping[str, Mapping[str, Any]]) -> dict[str, list[float]]:
    """Share of a segmentation's tokens that have 1, 2 and 3 words."""
    return {
        name: [segmented[name][f"n_{length}_tokens"] / max(segmented[name]["n_tokens"], 1) for length in LENGTHS]
        for name in SEGMENTATIONS
    }


def collocation_series(histogram: Sequence[tuple[str, float, int]]) -> list[Series]:
    """The PMI histogram as one series per n-gram length; see ``pmi_histogram``."""
    return [
        Series(
            ngrams,
            [edge for name, edge, _ in histogram if name == ngrams],
            [n for name, _, n in histogram if name == ngrams],
        )
        for ngrams in ("bigrams", "trigrams")
    ]


def pmi_histogram(name: str, title: str, series: Sequence[Series], bin_bits: float) -> Markup:
    """Numbers of collocations by PMI. ``x`` of a series is the lower edge of each of its bins, in bits."""
    description = " ".join(
        f"{line.label}: {sum(line.y):,} collocations"
        + (
            f", most of them around {line.x[max(range(len(line.y)), key=lambda i: line.y[i])]:g} bits."
            if line.y
            else "."
        )
        for line in series
    )
    with drawing(name) as figure:
        axes = new_panel(figure, "PMI (bits)", f"collocations per {bin_bits:g} bits")
        for place, line in enumerate(series):
            colour, _, dashes = STYLES[place % len(STYLES)]
            heights = dict(zip(line.x, line.y, strict=True))
            if heights:
                n_bins = round((line.x[-1] - line.x[0]) / bin_bits) + 1
                edges = [line.x[0] + bin_bits * i for i in range(n_bins + 1)]
                axes.stairs(
                    [heights.get(edge, 0) for edge in edges[:-1]], edges, color=colour, linestyle=dashes, linewidth=2,
                    label=line.label, zorder=3,
                )  # fmt: skip
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: formatting.short(value)))
        add_legend(axes, len(series))
        return to_svg(figure, name, title, description)


def token_lengths(name: str, title: str, shares: Mapping[str, Sequence[float]]) -> Markup:
    """Share of the tokens of 1, 2 and 3 words, one group of bars per length and one bar per segmentation."""
    lengths = ["1 word", "2 words", "3 words"]
    hatches = ["", "////", "..."]
    description = " ".join(
        f"{label}: " + ", ".join(f"{length} {value:.1%}" for length, value in zip(lengths, values, strict=True)) + "."
        for label, values in shares.items()
    )
    width = 0.84 / max(len(shares), 1)
    with drawing(name) as figure:
        axes = new_panel(figure, "words in a token", "share of the corpus's tokens (%)")
        for place, (label, values) in enumerate(shares.items()):
            at = [i - 0.42 + width * (place + 0.5) for i in range(len(lengths))]
            bars = axes.bar(
                at, values, width=width * 0.92, color=STYLES[place][0], hatch=hatches[place], label=label,
                edgecolor=PAPER, linewidth=0.8, zorder=3,
            )  # fmt: skip
            axes.bar_label(bars, [_bar_label(value) for value in values], fontsize=10, padding=2)
        axes.set_xticks(range(len(lengths)), lengths)
        axes.set_ylim(0, 1.1)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
        axes.grid(visible=False, axis="x")
        axes.yaxis.set_major_formatter(FuncFormatter(percent_tick))
        add_legend(axes, len(shares))
        return to_svg(figure, name, title, description)


def word_ranks(name: str, title: str, ranks: Series) -> Markup:
    """How often the word of each rank occurs, on two logarithmic axes."""
    description = "A falling line: " + ", ".join(
        f"rank {rank:,} occurs {n:,} times"
        for rank, n in zip(ranks.x, ranks.y, strict=True)
        if math.log10(rank) % 1 == 0
    )
    with drawing(name) as figure:
        axes = new_panel(figure, "rank of the word (log)", "occurrences in the corpus (log)", top=12)
        axes.plot(ranks.x, ranks.y, color=BLUE, linewidth=2, zorder=3)
        for scale, axis in ((axes.set_xscale, axes.xaxis), (axes.set_yscale, axes.yaxis)):
            scale("log")
            axis.set_major_locator(LogLocator(numticks=10))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(lambda value, _: formatting.short(value)))
        return to_svg(figure, name, title, description + ".")


def _bar_label(value: float) -> str:
    if not value:
        return ""
    return f"{value:.0%}" if value >= 0.0995 else f"{value:.1%}"


def figures(report: ReportData) -> dict[str, Panel]:
    """What is drawn of a corpus that has documents."""
    pmi = collocation_series(report.collocations.histogram)
    lengths = length_shares(report.segmented)
    ranks = report.collocations.ranks
    rank_line = Series("words", [rank for rank, _ in ranks], [n for _, n in ranks])
    return {
        "pmi_figure": Panel(
            "PMI of the collocations",
            pmi_histogram("pmi", "Collocations by PMI", pmi, BIN_BITS),
            series_data("pmi", "ngrams", "pmi_bits", "n_collocations", pmi),
        ),
        "length_figure": Panel(
            "Token lengths",
            token_lengths("lengths", "Share of tokens by length, per segmentation", lengths),
            data(
                "lengths",
                ["segmentation", "words", "share"],
                [(name, n, share) for name, shares in lengths.items() for n, share in enumerate(shares, 1)],
            ),
        ),
        "rank_figure": Panel(
            "Word frequencies",
            word_ranks("ranks", "Occurrences of a word over its rank", rank_line),
            series_data("ranks", "of", "rank", "occurrences", [rank_line]),
        ),
    }


def view(report: ReportData) -> Mapping[str, Any]:
    """What the section shows."""
    n_collocations = report.collocations.n_collocations
    dimensions = {
        name: read_json(paths.embedding(name) / "meta.json", f"train_embeddings@{name}")["dimensions"]
        for name in SEGMENTATIONS
    }
    return {
        "has_corpus": report.corpus["n_documents"] > 0,
        "base": report.base,
        "corpus": corpus_table(report.corpus, n_collocations["bigrams"], n_collocations["trigrams"]),
        "segmentations": segmentation_table(report.segmented, report.spaces, dimensions, report.nearest),
        **(figures(report) if report.corpus["n_documents"] else {}),
    }


def metrics(report: ReportData) -> Mapping[str, Any]:
    """What metrics.json has of the corpus."""
    return {
        "corpus": {name: report.corpus[name] for name in ("n_documents", "n_sentences", "n_tokens", "n_words")},
        "collocations": report.collocations.n_collocations,
        "vocabulary": {segmentation: report.spaces[segmentation]["n_tokens"] for segmentation in SEGMENTATIONS},
    }


def files(report: ReportData) -> Mapping[str, CsvFile]:
    """What `dvc plots` draws."""
    return {"pmi.csv": (["ngrams", "pmi_bits", "n_collocations"], report.collocations.histogram)}


SECTION = Section(
    name="corpus",
    title="Corpus",
    heading="Corpus and n-grams",
    view=view,
    metrics=metrics,
    files=files,
    prose="""\
{% if base %}
<p>Training begins with the model <b>{{ base.name }}</b> {{ base.version }} (<code>{{ base.hash[:12] }}</code>): its
{{ base.n_tokens|count }} {{ "tokens" if base.n_tokens == params.embeddings.base_tokens else "tokens, all that it has," }}
and their collocations are added to those of the corpus, and the vectors of tokens that both have
{{ "stay as they are" if base.vectors == "keep" else "are moved by the corpus" }}. Counts and PMI on this page are the
corpus's own.</p>
{% endif %}
{% if not has_corpus %}
<p>There is no corpus: vocabulary, collocations and vectors are those of the base.</p>
{% else %}
{{ render_table(corpus) }}
<div class="panels">
{{ render_panel(pmi_figure) }}
{{ render_panel(length_figure) }}
{{ render_panel(rank_figure) }}
<div>
<p>An n-gram is kept as a collocation if it occurs at least {{ params.collocations.min_count|count }}
{{ "time" if params.collocations.min_count == 1 else "times" }}, its PMI is at least {{ params.collocations.min_pmi }} bits,
and none of its words is a connector such as <i>of</i> or <i>the</i>. PMI tells how much more often words occur together
than chance would have it: each bit doubles it.</p>
<p>The word of rank <i>r</i> occurs about 1/<i>r</i> as often as the first in most texts: a straight line down. Where it
levels off at the right are the words seen once or twice, of which an embedding learns little.</p>
</div>
</div>
{% endif %}
{{ render_table(segmentations) }}
""",
)
