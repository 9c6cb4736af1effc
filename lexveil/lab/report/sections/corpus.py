"""Report section "corpus": the corpus in numbers, its n-grams and collocations, and its
segmentations into tokens.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from lexveil.base import paths
from lexveil.base.runtime.tables import read_json
from lexveil.lab.report import formatting
from lexveil.lab.report.charts import Axis, Chart, ChartPoint, Series
from lexveil.lab.report.data import BIN_BITS, Record, ReportData
from lexveil.lab.report.table import Column, CsvFile, Table

NGRAMS = ("bigrams", "trigrams")
LENGTHS = {"unigram": "of 1 word", "bigram": "of 2 words", "trigram": "of 3 words"}
# lists of collocations
BY_PLACE = {"by_pmi": "highest PMI among the frequent", "by_count": "most frequent"}
COUNTS = {  # rows of the corpus table, and the keys of their values in metrics/ngrams.json
    "Documents in the sample": "n_documents",
    "Sentences": "n_sentences",
    "Words and punctuation marks (N of PMI)": "n_tokens",
    "Distinct words": "n_words",
}


def corpus_table(totals: Mapping[str, int], n_collocations: Mapping[str, int]) -> Table:
    """Return a table of the numbers of documents, sentences, words, n-grams and collocations in the
    corpus.
    """
    rows: list[dict[str, object]] = [
        {"what": what, "number": totals[key]} for what, key in COUNTS.items()
    ]
    if totals["n_sentences"]:
        per_sentence = totals["n_tokens"] / totals["n_sentences"]
        rows.append({"what": "Words and punctuation marks per sentence", "number": per_sentence})
    for ngrams in NGRAMS:
        counted = totals[f"n_{ngrams}"]
        n_chosen = n_collocations[ngrams]
        rows.append({"what": f"Distinct {ngrams} counted", "number": counted})
        share = n_chosen / counted if counted else None
        rows.append(
            {
                "what": f"{ngrams.capitalize()} kept as collocations",
                "number": n_chosen,
                "share": share,
            }
        )
    columns = [
        Column("what", "What"),
        Column("number", "Number", formatting.amount),
        Column("share", "Of those counted", formatting.share),
    ]
    return Table("corpus", columns, rows)


def segmentation_table(report: ReportData) -> Table:
    """Return a table of the corpus under each segmentation into tokens, with the vocabulary of the
    embedding that was trained on it.
    """
    rows = []
    for name, cut in report.segmented.items():
        space = report.spaces[name]
        n_tokens = cut["n_tokens"]
        shares = {
            "words_per_token": cut["n_words"],
            "corpus_share": space["tokens_covered"],
            **{f"{length}_share": cut[f"n_{length}_tokens"] for length in LENGTHS},
        }
        meta = read_json(paths.embedding(name) / "meta.json", f"train_embeddings@{name}")
        rows.append(
            {
                "segmentation": name,
                "n_tokens": n_tokens,
                **({key: n / n_tokens for key, n in shares.items()} if n_tokens else {}),
                "vocabulary": space["n_tokens"],
                **{f"n_{length}s": space[f"n_{length}s"] for length in LENGTHS},
                "n_of_base": (space.get("training", {}).get("began") or {}).get("not_trained"),
                "dimensions": meta["dimensions"],
                "norm_median": space["norm_median"],
                "nearest_median": report.nearest[name],
            }
        )
    count = formatting.count
    share = formatting.share
    three = formatting.three
    columns = [
        Column("segmentation", "Segmentation"),
        Column("n_tokens", "Tokens", count, "Corpus"),
        Column("words_per_token", "Words / token", three, "Corpus"),
        *(Column(f"{length}_share", head, share, "Corpus") for length, head in LENGTHS.items()),
        Column("vocabulary", "Tokens", count, "Vocabulary"),
        *(
            Column(f"n_{length}s", f"{length.capitalize()}s", count, "Vocabulary")
            for length in LENGTHS
        ),
        Column("n_of_base", "Of the base alone", count, "Vocabulary"),
        Column("corpus_share", "Share of the corpus", share, "Vocabulary"),
        Column("dimensions", "Dimensions", count, "Embedding"),
        Column("norm_median", "Median length", three, "Embedding"),
        Column("nearest_median", "Median distance to nearest", three, "Embedding"),
    ]
    return Table("segmentations", columns, rows)


def pmi_chart(histogram: Sequence[Record]) -> Chart:
    """Make a histogram chart of the number of collocations by PMI, with the empty bins."""
    series = []
    for ngrams in NGRAMS:
        counts = {
            row["pmi_bits"]: row["n_collocations"] for row in histogram if row["ngrams"] == ngrams
        }
        if counts:
            n_bins = round((max(counts) - min(counts)) / BIN_BITS) + 1
            edges = [min(counts) + BIN_BITS * number for number in range(n_bins)]
            series.append(Series(ngrams, [ChartPoint(edge, counts.get(edge, 0)) for edge in edges]))
    bits = [point.x for line in series for point in line.points] or [0.0]
    limits = (min(bits) - BIN_BITS, max(bits) + BIN_BITS)
    return Chart(
        name="pmi",
        title="PMI of the collocations",
        x=Axis("PMI (bits, lower edge of a bin)", limits=limits),
        y=Axis(f"collocations (per {BIN_BITS:g} bits)"),
        series=series,
    )


def rank_chart(ranks: Sequence[Record]) -> Chart:
    """Make a chart of word frequency by rank, on two logarithmic axes."""
    return Chart(
        name="ranks",
        title="Word frequencies",
        x=Axis("rank of the word (log)", is_log=True),
        y=Axis("occurrences in the corpus (log)", is_log=True),
        series=[Series("words", [ChartPoint(row["rank"], row["count"]) for row in ranks])],
        has_markers=False,
    )


def top_tables(rows: Sequence[Record]) -> dict[str, Table]:
    """Return tables of the top collocations by caption; ``rows`` are the rows of
    sql/report/collocations.sql.
    """
    columns = [
        Column("words", "Collocation"),
        Column("count", "Count", formatting.count),
        Column("pmi_bits", "PMI (bits)", formatting.two),
    ]
    tables = {}
    for ngrams, (place, what) in itertools.product(NGRAMS, BY_PLACE.items()):
        own = {
            row[place]: row for row in rows if row["ngrams"] == ngrams and row[place] is not None
        }
        name = f"{ngrams}-{place.replace('_', '-')}"
        tables[f"{ngrams.capitalize()}: {what}"] = Table(
            name, columns, [own[number] for number in sorted(own)]
        )
    return tables


def view(report: ReportData) -> Mapping[str, Any]:
    """Return the template variables of the section "corpus": tables, charts and plain values."""
    top = report.collocations["collocations"]
    return {
        "has_corpus": report.corpus["n_documents"] > 0,
        "base": report.base,
        "corpus": corpus_table(report.corpus, report.n_collocations),
        "charts": [
            pmi_chart(report.collocations["pmi_histogram"]),
            rank_chart(report.collocations["word_ranks"]),
        ],
        "segmentations": segmentation_table(report),
        "thresholds": sorted({(row["ngrams"], row["threshold"]) for row in top}),
        "top_collocations": top_tables(top),
    }


def files(report: ReportData) -> Mapping[str, CsvFile]:
    """Return the CSV files of the section: the PMI histogram."""
    histogram = report.collocations["pmi_histogram"]
    return {
        "pmi.csv": (
            ["ngrams", "pmi_bits", "n_collocations"],
            [list(row.values()) for row in histogram],
        )
    }
