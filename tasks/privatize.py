"""One run: rewrite the documents with one mechanism, strategy and base epsilon -> private/MECHANISM/STRATEGY/EPSILON/.

Its noise comes from the seed in params.yaml, so that the run can be repeated: an experiment, and stamped as one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil import paths
from lexveil.accounting.budgets import ACTIONS, KEPT, SEGMENTATION_OF, STRATEGIES, Policy
from lexveil.accounting.record import record
from lexveil.artifacts.document_sets import load_documents
from lexveil.artifacts.embeddings import load_embedding
from lexveil.artifacts.lexicons import load_lexicon
from lexveil.artifacts.mechanisms import prepare
from lexveil.artifacts.text_rows import texts_of
from lexveil.config import load_params
from lexveil.errors import LexveilError, RequestError
from lexveil.mechanisms.registry import MECHANISMS
from lexveil.privatization.rewrite import Rewritten
from lexveil.privatization.rewriter import Batch, Rewriter
from lexveil.privatization.tally import Tally
from lexveil.runtime.hashes import sha256, version
from lexveil.runtime.pool import ordered_map
from lexveil.runtime.stage import Progress, stage_main
from lexveil.runtime.tables import PARQUET, atomic_directory, read_table, write_json
from lexveil.text.encode import KINDS, Lexicon, encode

BATCH = 2_000  # documents rewritten at a time, at most, and of a row group of what is written
SHARE = 8  # batches a worker is to have at least, so that all end at about the same time
SMALL = 200_000  # tokens to be perturbed below which worker processes cost more than they save; more never hurt

LEDGER = pa.schema(
    [
        ("dataset", pa.string()),
        ("doc_id", pa.string()),
        ("field", pa.string()),
        ("position", pa.int32()),
        ("class", pa.dictionary(pa.int8(), pa.string())),
        ("epsilon", pa.float64()),
        ("action", pa.dictionary(pa.int8(), pa.string())),
        ("n_words", pa.int8()),
        ("word_id", pa.int32()),
    ]
)


def ledger(texts: pa.Table, done: Rewritten) -> pa.Table:
    """What happened to every token of a batch: its class, its epsilon, its fate; no source word."""
    owner = done.encoded.text_of
    return pa.table(
        [
            *(texts.column(name).combine_chunks().take(pa.array(owner)) for name in ("dataset", "doc_id", "field")),
            pa.array(done.position),
            pa.DictionaryArray.from_arrays(done.encoded.kind, pa.array(KINDS)),
            pa.array(done.epsilon),
            pa.DictionaryArray.from_arrays(done.action, pa.array(ACTIONS)),
            pa.array(done.out_words),
            pa.array(done.rows.astype(np.int32)),
        ],
        schema=LEDGER,
    )


def private_documents(documents: pa.Table, texts: pa.Table, done: Rewritten) -> pa.Table:
    """The documents of a batch (their texts are not looked at) with their rewritten texts and their sums."""
    second = np.array([field == "text_b" for field in texts.column("field").to_pylist()], dtype=bool)
    document = np.cumsum(~second) - 1  # every document has a first text
    new: list[list[str | None]] = [[None] * documents.num_rows, [None] * documents.num_rows]
    for text, row, is_second in zip(done.texts, document.tolist(), second.tolist(), strict=True):
        new[is_second][row] = text

    def total(values: Any, kind: pa.DataType) -> pa.Array:
        summed = np.bincount(document, weights=done.per_text(values), minlength=documents.num_rows)
        return pa.array(summed.astype(kind.to_pandas_dtype()), kind)

    return pa.table(
        {
            **{name: documents.column(name) for name in ("dataset", "doc_id", "split")},
            "text": pa.array(new[0], pa.string()),
            "text_b": pa.array(new[1], pa.string()),
            **{name: documents.column(name) for name in ("label", "attribute")},
            "n_tokens_in": total(np.ones(len(done.action)), pa.int64()),
            "n_tokens_out": total(done.out_words > 0, pa.int64()),
            "n_words_out": total(done.out_words.astype(np.int64), pa.int64()),
            "epsilon_spent": total(done.epsilon, pa.float64()),
            "n_unprotected": total(done.action == KEPT, pa.int64()),
        }
    )


def unchanged(texts: list[str], lexicon: Lexicon) -> Rewritten:
    """The clean baseline: every token kept, every text as it is."""
    encoded = encode(texts, lexicon)
    n = len(encoded.rows)
    # No vocabulary is involved, so no word is out of it.
    encoded.kind[encoded.kind == KINDS.index("oov")] = KINDS.index("word")
    return Rewritten(
        encoded,
        texts,
        np.full(n, KEPT, dtype=np.int8),
        np.zeros(n),
        np.full(n, -1, dtype=np.int64),
        np.ones(n, dtype=np.int8),
    )


class Documents(NamedTuple):
    """A batch of documents on its way to a worker: without their texts, which are beside them, one row each."""

    documents: pa.Table
    texts: pa.Table
    epsilon: npt.NDArray[np.float64]


class Part(NamedTuple):
    """What a worker gives back of a batch: no source text, unless it is the baseline's."""

    documents: pa.Table
    ledger: pa.Table
    tally: Tally


@dataclass(frozen=True, slots=True)
class Worker:
    """Rewrites and counts a batch, in whatever process; without a rewriter it leaves the texts as they are."""

    rewriter: Rewriter | None

    def __call__(self, batch: Documents) -> Part:
        """Rewrite, and leave what holds source text behind."""
        texts, tally = batch.texts, Tally()
        listed = texts.column("text").to_pylist()
        if self.rewriter is None:
            done = unchanged(listed, Lexicon.build("word", [], None))
            tally.add(done, batch.documents.num_rows, None)
        else:
            done = self.rewriter(Batch(listed, batch.epsilon, keys_of(texts)))
            tally.add(done, batch.documents.num_rows, self.rewriter.vocabulary)
        return Part(private_documents(batch.documents, texts, done), ledger(texts, done), tally)


def keys_of(texts: pa.Table) -> list[tuple[str, str, str]]:
    """What names each text in its plan and its noise: data set, document, field."""
    return list(zip(*(texts.column(name).to_pylist() for name in ("dataset", "doc_id", "field")), strict=True))


class Run:
    """One cell of the grid: what rewrites its documents, with which budgets, and what it was made with."""

    def __init__(self, mechanism: str, strategy: str, epsilon: float) -> None:
        params = load_params()
        self.machine = params.machine
        self.rewriter: Rewriter | None = None
        self.policy = Policy.of(strategy, params.policy.stopwords, params.policy.punctuation, params.policy.oov)
        self.hashes: dict[str, str] = {}
        self.per_token: dict[tuple[str, str, str], float] = {}
        self.budgets: dict[str, float] = {}
        self.parameters: dict[str, Any] = {}
        self.no_proof: str | None = None
        if mechanism == "none":
            self.policy = Policy("keep", "keep", "keep")
            self.machine = params.machine.alone()
            return
        segmentation = SEGMENTATION_OF[strategy]
        made = prepare(mechanism, segmentation, load_embedding(segmentation), self.policy, params.mechanisms)
        names = (mechanism, strategy, str(epsilon))
        self.rewriter = Rewriter(
            load_lexicon(segmentation), made.vocabulary, made.mechanism, self.policy, names, params.seed
        )
        self.parameters = made.parameters
        self.no_proof = made.mechanism.no_guarantee
        self.hashes |= {name: sha256(file) for name, file in made.files.items()}
        plan = read_table(paths.plan(strategy, epsilon), f"plan_budgets@{strategy}").to_pydict()
        keys = zip(plan["dataset"], plan["doc_id"], plan["field"], strict=True)
        self.per_token = dict(zip(keys, plan["epsilon_per_token"], strict=True))
        self.budgets = dict(zip(plan["dataset"], plan["budget"], strict=True))
        if sum(plan["n_perturbed"]) < SMALL:
            self.machine = params.machine.alone()
        for name in ("words.txt", "vectors.npy"):
            self.hashes[f"embeddings/{segmentation}/{name}"] = sha256(paths.embedding(segmentation) / name)
        for name in ("bigrams.parquet", "trigrams.parquet"):
            if segmentation != "word":
                self.hashes[f"collocations/{name}"] = sha256(paths.COLLOCATIONS / name)

    def batch(self, documents: pa.Table) -> Documents:
        """Documents with their texts and budgets.

        Raises:
            LexveilError: if the plan has no budget for a document.
        """
        texts = texts_of(documents)
        epsilon = np.zeros(texts.num_rows)
        if self.rewriter is not None:
            try:
                epsilon = np.array([self.per_token[key] for key in keys_of(texts)], dtype=np.float64)
            except KeyError as missing:
                raise LexveilError(
                    f"document {missing.args[0][1]} has no budget plan; run stage plan_budgets again"
                ) from None
        # Taken and not sliced, because a slice travels with all that it was cut from.
        bare = documents.drop_columns(["text", "text_b"])
        return Documents(bare.take(np.arange(documents.num_rows)), texts, epsilon)


def batches(documents: pa.Table, size: int) -> Iterator[pa.Table]:
    """Cut the documents into batches of ``size``, and again where BATCH of them end."""
    for start in range(0, documents.num_rows, BATCH):
        whole = documents.slice(start, BATCH)
        for first in range(0, whole.num_rows, size):
            yield whole.slice(first, size)


def row_groups(parts: Iterable[Part]) -> Iterator[Part]:
    """Join parts to BATCH documents, or what is left at the end: how they were cut is not to show in the files."""
    waiting: list[Part] = []
    for part in parts:
        waiting.append(part)
        if sum(one.documents.num_rows for one in waiting) == BATCH:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[Part]) -> Part:
    tally = Tally()
    for part in parts:
        tally.merge(part.tally)
    return Part(
        pa.concat_tables([part.documents for part in parts]).combine_chunks(),
        pa.concat_tables([part.ledger for part in parts]).combine_chunks(),
        tally,
    )


def privatize(mechanism: str, strategy: str, epsilon: float, out: Path) -> dict[str, Any]:
    """Write documents.parquet, tokens.parquet, metrics.json and record.json into folder ``out``; return the metrics."""
    run = Run(mechanism, strategy, epsilon)
    documents = load_documents()
    alone = run.machine == run.machine.alone()
    size = BATCH if alone else max(1, min(BATCH, documents.num_rows // (SHARE * run.machine.workers)))
    work = (run.batch(batch) for batch in batches(documents, size))
    tally = Tally()
    progress = Progress(f"privatize {mechanism} {strategy} {epsilon}", documents.num_rows, "documents")
    with (
        atomic_directory(out) as folder,
        ExitStack() as files,
        closing(ordered_map(Worker(run.rewriter), work, run.machine)) as parts,
    ):
        writers: dict[str, pq.ParquetWriter] = {}
        for part in row_groups(parts):
            for name, table in (("documents", part.documents), ("tokens", part.ledger)):
                if name not in writers:
                    writer = pq.ParquetWriter(folder / f"{name}.parquet", table.schema, **PARQUET)
                    writers[name] = files.enter_context(writer)
                writers[name].write_table(table)
            tally.merge(part.tally)
            progress.advance(part.documents.num_rows, part.ledger.num_rows)
        progress.finish()
        files.close()
        metrics = tally.metrics()
        write_json(metrics, folder / "metrics.json")
        statement = record(
            mechanism=mechanism,
            strategy=strategy,
            segmentation=SEGMENTATION_OF.get(strategy),
            base_epsilon=epsilon if mechanism != "none" else None,
            policy=run.policy,
            mode="experiment" if mechanism != "none" else "none",
            keep_layout=mechanism == "none",
            budgets=run.budgets,
            counts=metrics,
            hashes=run.hashes,
            version=version(),
            parameters=run.parameters,
            no_proof=run.no_proof,
        )
        write_json(statement, folder / "record.json")
    return metrics


def main() -> None:
    """Run the stage for the mechanism, strategy and base epsilon named on the command line."""
    usage = "usage: python -m tasks.privatize MECHANISM STRATEGY EPSILON, or none none 0.0"
    if len(sys.argv) != 4:
        raise RequestError(usage)
    mechanism, strategy = sys.argv[1:3]
    known = mechanism in MECHANISMS and strategy in STRATEGIES
    try:
        epsilon = float(sys.argv[3])
    except ValueError:
        raise RequestError(usage) from None
    if not known and (mechanism, strategy, epsilon) != ("none", "none", 0.0):
        raise RequestError(usage)
    metrics = privatize(mechanism, strategy, epsilon, paths.private(mechanism, strategy, epsilon))
    share = metrics["share_unchanged"]
    print(
        f"rewrote {metrics['n_documents']:,} documents: {metrics['n_perturbed']:,} tokens perturbed"
        + ("" if share is None else f", {share:.1%} of them unchanged")
        + f"; {metrics['unprotected_share']:.1%} of all tokens unprotected"
    )


if __name__ == "__main__":
    stage_main(main)
