"""Linkage: the share of outputs whose source an adversary identifies among candidate texts.

    uv run python -m benchmarks.linkage --texts FILE.parquet FILE.json.gz --json linkage.json
    uv run python -m benchmarks.linkage --texts FILE --ship  # lexveil/models/linkage.json

Texts are public. The texts of each file that have enough words are cut to one length and put in
random order. The first texts are rewritten at each level of protection. Adversaries then rank all
texts of the file as sources of each output: by the structure that the output discloses, by words
alone without knowledge of the method, and by the exact channel (lexveil/readers/linkage.py). Noise
is seeded, so the output is not private.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.protection import Measuring, read_texts
from benchmarks.table import markdown
from lexveil.base.runtime.tables import write_json
from lexveil.base.types import ModelRows, WordNumbers
from lexveil.core.accounting.budgets import Action
from lexveil.core.protection import LEVELS, MeasuredLinkage
from lexveil.io.artifacts.levels import LINKAGE, level_of, measured_levels
from lexveil.io.artifacts.model import Model
from lexveil.readers.linkage import SIZES, DisclosedTexts, LinkageReaders, naive_similarities
from lexveil.readers.seen_tokens import written_before

SEED = 1
LENGTHS = (10, 20, 40, 100)  # numbers of words to which texts are cut
OUTPUTS = 300  # number of outputs whose sources are searched
SHIPPED_SIZE = 1_000  # number of candidates behind the figures that ship
# Changes to the default policy, by name.
POLICIES: dict[str, dict[str, str]] = {
    "default": {},
    "stop words perturbed": {"stopwords": "perturb"},
    "stop words and marks perturbed or sampled": {
        "stopwords": "perturb",
        "punctuation": "sample",
    },
}
COLUMNS = {
    "texts": "texts",
    "mechanism": "mechanism",
    "strategy": "strategy",
    "policy": "policy",
    "level": "level",
    "n_words": "words",
    "candidates": "candidates",
    "structure": "structure",
    "naive": "naive",
    "likelihood": "likelihood",
}
Row = dict[str, Any]


def pool_of(texts: Sequence[str], n_words: int) -> list[str]:
    """Return the texts with at least ``n_words`` words, cut to that length, in random order; at
    most the largest number of candidates.
    """
    chosen = [words[:n_words] for text in texts if len(words := text.split()) >= n_words]
    order = np.random.default_rng(SEED).permutation(len(chosen))[: SIZES[-1]]
    return [" ".join(chosen[number]) for number in order.tolist()]


def with_policy(model: Model, policy: dict[str, str]) -> Model:
    """Return a model with changed actions for some classes of tokens."""
    params = model.params
    changed = params.policy.model_copy(update=policy)
    project = replace(model.project, params=params.model_copy(update={"policy": changed}))
    return replace(model, project=project)


def readers_of(
    measuring: Measuring, pool: Sequence[str], epsilon: float, n_outputs: int
) -> LinkageReaders:
    """Return adversaries that rank all texts of a pool as sources of the outputs of its first
    texts.
    """
    sources = [*pool[:n_outputs]]
    number = measuring.public.prepared.vocabulary.number
    rewritten = measuring.rewritten(sources, epsilon)
    is_drawn = rewritten.action == Action.PERTURBED.value
    is_kept = rewritten.action == Action.KEPT.value
    before = written_before(
        text_of=rewritten.encoded.text_of.astype(np.int64),
        rows=ModelRows(np.where(is_kept, rewritten.encoded.rows, rewritten.rows)),
        is_dropped=rewritten.action == Action.DROPPED.value,
    )
    return LinkageReaders(
        candidates=DisclosedTexts.cut(
            pool, measuring.engine.lexicon, number, measuring.engine.settings.policy
        ),
        sources=np.arange(len(sources)),
        outputs=WordNumbers(number[rewritten.rows[is_drawn]]),
        epsilon=rewritten.token_epsilon[is_drawn],
        before=ModelRows(before[is_drawn]),
        similarities=naive_similarities([*rewritten.texts], pool),
        adversary=measuring.public.adversary((epsilon / 1.01, epsilon * 1.01)),
    )


def linkage(
    measuring: Measuring,
    pool: Sequence[str],
    epsilon: float,
    n_outputs: int,
    sizes: Sequence[int] = SIZES,
) -> Iterator[Row]:
    """Yield one row for each number of candidates."""
    readers = readers_of(measuring, pool, epsilon, n_outputs)
    for size in sizes:
        if len(pool) >= size:
            yield {"candidates": size, "outputs": len(readers.sources)} | readers.shares(size)


def measure(model: Model, options: argparse.Namespace) -> Iterator[Row]:
    """Yield all rows, one mechanism after another."""
    assert model.sha256 is not None
    levels = measured_levels(model.sha256)
    every = dict.fromkeys((level.mechanism, level.strategy) for level in levels)
    pools = {
        (file.name.partition(".")[0], n_words): pool_of(read_texts(file), n_words)
        for file in options.texts
        for n_words in options.lengths
    }
    for policy in options.policy:
        for mechanism, strategy in options.rewriting or every:
            changed = with_policy(model, POLICIES[policy])
            measuring = Measuring(changed, mechanism, strategy)
            for level in LEVELS:
                figures = level_of(levels, mechanism, strategy, level)
                for (texts, n_words), pool in pools.items():
                    if figures is None or len(pool) < SIZES[0]:
                        continue
                    about = {"texts": texts, "mechanism": mechanism, "strategy": strategy}
                    about |= {"policy": policy, "level": level, "n_words": n_words}
                    for row in linkage(measuring, pool, figures.epsilon, options.outputs):
                        print(about | row, file=sys.stderr, flush=True)
                        yield about | row


def ship(rows: Sequence[Row], model: Model) -> None:
    """Write the figures of a model into the file that ships, and keep the figures of other
    models.
    """
    by_card = json.loads(LINKAGE.read_text(encoding="utf-8")) if LINKAGE.exists() else {}
    figures = [
        {name: row[name] for name in MeasuredLinkage._fields}
        for row in rows
        if row["candidates"] == SHIPPED_SIZE and row["policy"] == "default"
    ]
    assert model.sha256 is not None
    assert model.packaged is not None
    by_card[model.sha256] = {
        "model": f"{model.name} {model.packaged.card.version}",
        "linkage": figures,
    }
    write_json(by_card, LINKAGE)


def rewriting(written: str) -> tuple[str, str]:
    """Parse a mechanism and a strategy, written MECHANISM-S1."""
    mechanism, _, strategy = written.partition("-")
    return mechanism, strategy


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure linkage and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linkage", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--texts", type=Path, nargs="+", required=True, metavar="FILE")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, metavar="WORDS")
    parser.add_argument("--outputs", type=int, default=OUTPUTS, metavar="N")
    parser.add_argument("--model", default="en", metavar="NAME")
    parser.add_argument(
        "--rewriting",
        type=rewriting,
        nargs="+",
        default=(),
        metavar="MECHANISM-STRATEGY",
        help="default: all mechanisms and strategies with measured levels",
    )
    parser.add_argument("--policy", nargs="+", default=["default"], choices=[*POLICIES])
    parser.add_argument("--json", type=Path, help="keep the rows here")
    parser.add_argument("--ship", action="store_true", help="write the figures that ship")
    options = parser.parse_args(arguments)
    model = Model.load(name=options.model)
    rows = [*measure(model, options)]
    if options.ship:
        ship(rows, model)
    if options.json:
        write_json(rows, options.json)
    print(markdown(COLUMNS, rows))


if __name__ == "__main__":
    main()
