"""How often one other word changes the structure of a text: any texts, under the model of a project.

    uv run python -m benchmarks.structure FILE.parquet … [--texts N] [--column text] [--project FOLDER] [--json FILE]

The figures behind docs/explanation/structure.md. A file is a table with a column of texts, or gzipped JSON Lines in
C4's form; its texts are drawn at random. The words that replace others are those of the project's corpus, by frequency.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lexveil import paths
from lexveil.accounting.structure import Replacements
from lexveil.artifacts.lexicons import load_lexicon
from lexveil.artifacts.structure import measured
from lexveil.config import load_params
from lexveil.mechanisms.noise.streams import stream

SEGMENTATIONS = ("word", "gst", "mst")


def texts_of(file: Path, column: str) -> dict[str, list[str]]:
    """The texts of a file, by their source where rows name one."""
    if file.suffix == ".parquet":
        rows = pa.table({"text": pq.read_table(file, columns=[column]).column(0)}).to_pylist()
    else:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
    found: dict[str, list[str]] = {}
    for row in rows:
        if row["text"]:
            found.setdefault(f"{file.name.partition('.')[0]} {row.get('source') or ''}".strip(), []).append(row["text"])
    return found


def main() -> None:
    """Measure, and print one line for each file and strategy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--column", default="text")
    parser.add_argument("--project", type=Path, default=Path())
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    given = parser.parse_args()
    params = load_params(given.project / paths.PARAMS)
    words = pq.read_table(given.project / paths.WORDS, columns=["word", "count"])
    spelled, counts = words.column("word").to_pylist(), words.column("count").to_numpy()
    lexicons = [load_lexicon(segmentation, given.project, "en") for segmentation in SEGMENTATIONS]
    figures: dict[str, dict[str, Any]] = {}
    for name, texts in {
        name: texts for file in given.files for name, texts in texts_of(file, given.column).items()
    }.items():
        rng = stream(params.seed, "benchmark structure", name)
        drawn = [texts[i] for i in rng.permutation(len(texts))[: given.texts].tolist()]
        replacements = Replacements(drawn, spelled, counts, rng)
        for lexicon in lexicons:
            result = measured(lexicon, replacements, params, name)
            for strategy, change in result.strategies.items():
                figures.setdefault(name, {})[strategy] = change.to_dict()
                shares = ", ".join(
                    f"{key} {one['share']:.1%} [{one['low']:.1%}, {one['high']:.1%}]"
                    for key, one in change.to_dict().items()
                )
                print(f"{name} ({result.texts:,} texts) {strategy}: {shares}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
