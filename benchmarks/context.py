"""The weight λ of the reader by context, and what it gets back beside the reader by the word, on any texts.

    uv run python -m benchmarks.context --corpus FILE … FILE …

The n-gram model learns from the files of ``--corpus``. The texts of each other file, drawn at random and without those
of the corpus, are rewritten by each mechanism at the base epsilon, found by bisection, at which the reader by the word
names the wanted share of the perturbed content words; then both readers decode them, that by context with each λ. λ is
to be chosen on held-out texts of the corpus's kind, and looked at on others. Noise is seeded. Markdown.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.equal_recovery import Rewriting, found_epsilons
from benchmarks.models import markdown, of_spec
from benchmarks.structure import texts_of
from lexveil.accounting.budgets import STRATEGIES, Action, DocumentBudget
from lexveil.evaluation.kneser_ney import train
from lexveil.evaluation.language_model import NgramModel
from lexveil.mechanisms.noise.streams import stream
from lexveil.privatization.engine.batch import Batch
from lexveil.recovery.context import LOOKED_AT, WEIGHT, ContextReader
from lexveil.recovery.public_words import NEVER
from lexveil.recovery.shares import Share
from lexveil.runtime.tables import write_json
from lexveil.text.fast_tokenize import tokenize_texts
from lexveil.types import Flags
from tasks.measure_recovery import Aligned
from tasks.train_language_model import ORDER

WEIGHTS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
LEVELS = (0.05, 0.2, 0.5)
FEW = 60  # texts by which an epsilon is found
WORDS_OF_TEXT = 200  # the first of a long text
COLUMNS = {"texts": "texts", "mechanism": "mechanism", "strategy": "strategy", "epsilon": "base ε", "n": "words",
           "by_word": "by the word"}  # fmt: skip


def learnt(files: Sequence[Path], max_tokens: int) -> tuple[NgramModel, set[str]]:
    """The n-gram model of about so many tokens of equally long parts of the files, and the texts it has seen."""
    seen: list[str] = []
    for file in files:
        texts = [text for some in texts_of(file, "text").values() for text in some]
        order = stream(1, "corpus", file.name).permutation(len(texts)).tolist()
        n_tokens = 0.0
        for row in order:
            seen.append(texts[row])
            n_tokens += len(texts[row].split()) * 1.15  # with punctuation, about
            if n_tokens >= max_tokens / len(files):
                break
    tokens = tokenize_texts(pa.array(seen, pa.large_string()))
    words = tokens.words.to_pylist()
    offsets = np.concatenate([[0], np.cumsum(tokens.sentence_sizes.astype(np.int64))])
    return NgramModel(train(tokens.ids.astype(np.int64), offsets, len(words), ORDER), words), set(seen)


def drawn(file: Path, n_texts: int, without: set[str]) -> list[str]:
    """Texts of a file, cut to their first words."""
    texts = [text for some in texts_of(file, "text").values() for text in some if text not in without]
    rows = stream(1, "texts", file.name).permutation(len(texts))[:n_texts]
    return [" ".join(texts[row].split()[:WORDS_OF_TEXT]) for row in sorted(rows.tolist())]


def compared(
    name: str, texts: Sequence[str], rewriting: Rewriting, model: NgramModel, levels: Sequence[float],
    weights: Sequence[float],
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """One row for each level."""
    average = float(round(np.mean([len(text.split()) for text in texts])))
    words, lexicon = rewriting.words, rewriting.engine.lexicon
    pieces = [lexicon.tokens[row].split("_") for row in words.prepared.vocabulary.rows.tolist()]
    few = texts[:: max(1, len(texts) // FEW)]

    def recovered(epsilon: float) -> float:
        return rewriting.run(few, epsilon, average).recovered.share

    for level, epsilon in found_epsilons(recovered, rewriting.range, levels):
        if epsilon is None:
            continue
        aligned = rewritten(texts, rewriting, epsilon, average)
        at = aligned.is_replaced
        source = aligned.source[at]
        row: dict[str, Any] = {
            "texts": name, "mechanism": rewriting.mechanism, "strategy": rewriting.strategy, "level": level,
            "epsilon": epsilon, "n": len(source),
        }  # fmt: skip
        found = rewriting.reader.candidates(aligned.output[at], aligned.epsilon[at], LOOKED_AT)
        row["by_word"] = _share(found.ids[:, 0] == source)
        for weight in weights:
            reader = ContextReader(rewriting.reader, np.maximum(words.prior, NEVER), model, pieces, weight)
            row[f"{weight:g}"] = _share(reader.by_context(aligned.tokens(reader), found) == source)
        yield row


def rewritten(texts: Sequence[str], rewriting: Rewriting, epsilon: float, average_words: float) -> Aligned:
    """Texts beside what became of them, token by token."""
    budget = DocumentBudget.of(epsilon, None, average_words, None)
    worker = replace(rewriting.engine.worker(), column_keys=(("text",),), budget_name="1")
    batch = Batch([[text] for text in texts], [(str(number),) for number in range(len(texts))])
    done = worker.draw(batch, budget)
    number, replaced = rewriting.words.prepared.vocabulary.number, done.action == Action.PERTURBED.value
    source, output = (np.full(len(replaced), -1, dtype=np.int64) for _ in range(2))
    source[replaced], output[replaced] = number[done.encoded.rows[replaced]], number[done.rows[replaced]]
    action = pa.array(np.array(Action.labels())[done.action])
    return Aligned(done.encoded, action, done.epsilon, source, output)


def _share(right: Flags) -> dict[str, float]:
    made = Share.of(int(np.count_nonzero(right)), len(right))
    return {"share": made.share, "low": made.low, "high": made.high}


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.context", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--corpus", type=Path, nargs="+", required=True)
    parser.add_argument("--tokens", type=int, default=5_000_000, help="of the corpus that are learnt from")
    parser.add_argument("--texts", type=int, default=300, help="of each file")
    parser.add_argument("--model", default="en", metavar="NAME|LABEL=FOLDER")
    parser.add_argument("--mechanism", nargs="+", default=["tem", "madlib"])
    parser.add_argument("--strategy", nargs="+", choices=STRATEGIES, default=["S1", "S3"])
    parser.add_argument("--level", type=float, nargs="+", default=LEVELS, help="shares of content words")
    parser.add_argument("--weights", type=float, nargs="+", default=WEIGHTS)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(arguments)
    model, seen = learnt(options.corpus, options.tokens)
    sets = {file.name.partition(".")[0]: drawn(file, options.texts, seen) for file in options.files}
    rows: list[dict[str, Any]] = []
    for mechanism in options.mechanism:
        for strategy in options.strategy:
            rewriting = Rewriting(of_spec(options.model)[1], mechanism, strategy)
            for name, texts in sets.items():
                for row in compared(name, texts, rewriting, model, options.level, options.weights):
                    rows.append(row)
                    print(f"  {row}", file=sys.stderr, flush=True)
                    if options.json:
                        write_json(rows, options.json)
    named = COLUMNS | {f"{weight:g}": f"λ = {weight:g}" for weight in options.weights}
    shown = [
        {key: f"{value['share']:.3f}" if isinstance(value, dict) else value for key, value in row.items()}
        for row in rows
    ]
    half = max(value["high"] - value["share"] for row in rows for value in row.values() if isinstance(value, dict))
    print(f"shares of the perturbed words; 95 % intervals reach {half:.3f} at most; the reader has λ = {WEIGHT:g}\n")
    print(markdown(named, shown))


if __name__ == "__main__":
    main()
