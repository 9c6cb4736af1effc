"""Average words of the texts of whole data sets, in comparison with CLMLDP Table 8.

    python -m examples.replication.lengths SETS

SETS is the folder of `NAME.parquet` that the presets read. Words are counted as for budgets:
without punctuation, and only in the first text of a pair. The table has one row for each split of a
data set and one row for all of its splits.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from examples.replication.literature import published_figures
from lexveil.core.text.encode import tokenize
from lexveil.core.text.normal_forms import has_letters

PAPER = "CLMLDP"
MEASURE = "words_per_text"
ALL = "all"


class Length(NamedTuple):
    """Average length of the texts of a split.

    Attributes:
        dataset, split: names of the data set and the split.
        n_texts: number of texts.
        words: mean number of words of a text.
        with_marks: mean number of words and punctuation marks of a text.
    """

    dataset: str
    split: str
    n_texts: int
    words: float
    with_marks: float


def average_length(dataset: str, split: str, texts: Sequence[str]) -> Length:
    """Return the average length of texts; there must be at least one."""
    tokens = tokenize(texts)
    is_word = np.array([has_letters(form) for form in tokens.forms], dtype=bool)
    return Length(
        dataset=dataset,
        split=split,
        n_texts=len(texts),
        words=float(is_word[tokens.ids].sum()) / len(texts),
        with_marks=len(tokens.ids) / len(texts),
    )


def lengths_of(dataset: str, table: pa.Table) -> list[Length]:
    """Return the average lengths of each split of a data set, and of all of its texts."""
    splits = sorted(set(table["split"].to_pylist()))
    lengths = [average_length(dataset, ALL, table["text"].to_pylist())]
    for split in splits:
        rows = table.filter(pc.equal(table["split"], split))
        lengths.append(average_length(dataset, split, rows["text"].to_pylist()))
    return lengths


def markdown(lengths: Sequence[Length], printed: dict[str, float]) -> str:
    """Return a table of lengths, with the deviation from the printed lengths."""
    lines = [
        "| data set | split | texts | words | with punctuation | Table 8 | deviation of words |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for length in lengths:
        theirs = printed[length.dataset]
        deviation = 100 * (length.words / theirs - 1)
        lines.append(
            f"| {length.dataset} | {length.split} | {length.n_texts:,} | {length.words:.2f} "
            f"| {length.with_marks:.2f} | {theirs:.2f} | {deviation:+.1f} % |"
        )
    return "\n".join(lines)


def printed_lengths() -> dict[str, float]:
    """Return the average words of Table 8 by data set."""
    return {
        figure.dataset: figure.value
        for figure in published_figures()
        if figure.paper == PAPER and figure.measure == MEASURE
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of lengths."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("sets", type=Path, metavar="SETS", help="folder of NAME.parquet")
    options = parser.parse_args(arguments)
    printed = printed_lengths()
    files = [options.sets / f"{dataset}.parquet" for dataset in printed]
    lengths = [
        length
        for file in files
        if file.is_file()
        for length in lengths_of(file.stem, pq.read_table(file, columns=["text", "split"]))
    ]
    print(markdown(lengths, printed))


if __name__ == "__main__":
    main()
