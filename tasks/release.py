"""Rewrite a user's own file with the artifacts that a run made: what `lexveil privatize` calls. No stage of the graph.

In release mode, the default, the noise comes from the operating system, is never repeatable, and the record states
the guarantee. With a seed the output is an experiment and stamped as one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from tasks.errors import RequestError
from tasks.intake.files import Source, as_source, find_sources, shown
from tasks.intake.readers import Table, open_table, place, table_of, text_value
from tasks.intake.writers import Values, check_output, lines, write_parquet, write_rows
from tasks.io import paths
from tasks.io.hashes import sha256, version
from tasks.io.lexicons import load_lexicon
from tasks.io.mechanisms import prepare
from tasks.io.params import load_params
from tasks.io.pool import ordered_map
from tasks.io.spaces import load_space
from tasks.io.stage import Progress
from tasks.io.tables import require, write_json, write_table
from tasks.privacy.budget import (
    ACTIONS,
    SEGMENTATION_OF,
    STRATEGIES,
    Policy,
    document_budget,
    epsilon_per_token,
)
from tasks.privacy.mechanism import MECHANISMS
from tasks.privacy.record import record
from tasks.rewrite.count import count_tokens
from tasks.rewrite.rewrite import Rewritten
from tasks.rewrite.rewriter import Batch, Rewriter
from tasks.rewrite.tally import Tally
from tasks.text.encode import KINDS

# What must have passed before a vocabulary is used, and the stage that says so.
CHECKED_BY = {"corpus.json": "check_corpus", "collocations.json": "check_collocations", "coverage.json": "check_vocab"}

BATCH = 2_000  # texts rewritten at a time, at most; changes no result
SHARE = 8  # batches a worker is to have at least, so that all end at about the same time
SMALL = 200_000  # tokens to be perturbed below which worker processes cost more than they save; more never hurt

LEDGER = pa.schema(
    [
        ("row", pa.int64()),
        ("position", pa.int32()),
        ("class", pa.dictionary(pa.int8(), pa.string())),
        ("epsilon", pa.float64()),
        ("action", pa.dictionary(pa.int8(), pa.string())),
    ]
)


@dataclass(frozen=True, slots=True)
class Settings:
    """How texts are to be rewritten.

    Attributes:
        epsilon: base epsilon per word; None if ``budget`` is given.
        budget: document budget B of each text; None if ``epsilon`` is given.
        seed: None in release mode.
    """

    mechanism: str
    strategy: str
    epsilon: float | None
    budget: float | None
    seed: int | None
    policy: Policy
    keep_layout: bool

    @property
    def mode(self) -> Literal["release", "experiment"]:
        """Whoever knows the seed can replay the noise."""
        return "release" if self.seed is None else "experiment"


@dataclass(frozen=True, slots=True)
class Part:
    """What a worker gives back of a batch: no source text."""

    texts: list[str]
    ledger: pa.Table
    tally: Tally


@dataclass(frozen=True, slots=True)
class Worker:
    """Rewrites a batch, of which the first text has the given number in the run, and accounts for it."""

    rewriter: Rewriter

    def __call__(self, batch: tuple[int, Batch]) -> Part:
        """Rewrite, and leave what holds source text behind."""
        first, texts = batch
        done, tally = self.rewriter(texts), Tally()
        tally.add(done, done.encoded.n_texts, self.rewriter.vocabulary)
        return Part(done.texts, _ledger(done, first), tally)


def privatize_texts(
    texts: Sequence[str], settings: Settings, workers: int | None = None
) -> tuple[list[str], pa.Table, dict[str, Any]]:
    """Rewrite texts.

    Args:
        workers: processes, which change no result; None for one if there is little to do, else ``machine.workers``.

    Returns:
        The rewritten texts, the ledger (row, position, class, epsilon, action; no source words), the privacy record.

    Raises:
        MissingArtifact: if no run has made the artifacts.
        ParameterError: if a budget is not finite and positive.
    """
    params, segmentation = load_params(), SEGMENTATION_OF[settings.strategy]
    lexicon, space = load_lexicon(segmentation), load_space(segmentation)
    prepared = prepare(settings.mechanism, segmentation, space, settings.policy, params.mechanisms)

    n_words, _, n_perturbed, n_perturbed_words = count_tokens(texts, lexicon, settings.policy)
    budget = settings.budget if settings.epsilon is None else document_budget(settings.epsilon, n_words)
    assert budget is not None
    per_token = epsilon_per_token(settings.strategy, budget, n_perturbed, n_perturbed_words)
    if workers is None:
        workers = 1 if n_perturbed.sum() < SMALL else params.machine.workers
    size = BATCH if workers == 1 else max(1, min(BATCH, len(texts) // (SHARE * workers)))

    def batches() -> Iterator[tuple[int, Batch]]:
        for first in range(0, len(texts), size):
            span = slice(first, first + size)
            keys = [(str(row),) for row in range(len(texts))[span]]
            yield first, Batch(texts[span], per_token[span], keys)

    names = (settings.mechanism, settings.strategy, repr(budget))
    rewriter = Rewriter(
        lexicon, prepared.vocabulary, prepared.mechanism, settings.policy, names, settings.seed, settings.keep_layout
    )
    tally, rewritten, ledgers = Tally(), [], [LEDGER.empty_table()]
    progress = Progress("privatize", len(texts), "texts", stream=sys.stderr)  # stdout may be the text
    with closing(ordered_map(Worker(rewriter), batches(), workers)) as parts:
        for part in parts:
            tally.merge(part.tally)
            rewritten += part.texts
            ledgers.append(part.ledger)
            progress.advance(len(part.texts), len(part.ledger))
    made_with = {name: paths.space(segmentation) / name for name in ("words.txt", "vectors.npy")}
    if segmentation != "word":
        made_with |= {name: paths.COLLOCATIONS / name for name in ("bigrams.parquet", "trigrams.parquet")}
    statement = record(
        mechanism=settings.mechanism,
        strategy=settings.strategy,
        segmentation=segmentation,
        base_epsilon=settings.epsilon,
        policy=settings.policy,
        mode=settings.mode,
        keep_layout=settings.keep_layout,
        budgets={"input": budget},
        counts=tally.metrics(),
        hashes={name: sha256(file) for name, file in (made_with | prepared.files).items()},
        version=version(),
        parameters=prepared.parameters,
        no_proof=prepared.mechanism.no_guarantee,
    )
    # In one piece: the bytes of its file are not to tell how it was made.
    return rewritten, pa.concat_tables(ledgers).combine_chunks(), statement


def _ledger(done: Rewritten, first: int) -> pa.Table:
    return pa.table(
        [
            pa.array(done.encoded.text_of.astype(np.int64) + first + 1),
            pa.array(done.position),
            pa.DictionaryArray.from_arrays(done.encoded.kind, pa.array(KINDS)),
            pa.array(done.epsilon),
            pa.DictionaryArray.from_arrays(done.action, pa.array(ACTIONS)),
        ],
        schema=LEDGER,
    )


def privatize_file(
    source: Path | str,
    target: Path | str,
    *,
    mechanism: str,
    strategy: str,
    epsilon: float | None = None,
    document_budget: float | None = None,
    text_column: str = "text",
    mode: str = "release",
    seed: int | None = None,
    keep_layout: bool = False,
    stopwords: str | None = None,
    punctuation: str | None = None,
    oov: str | None = None,
    workers: int | None = None,
) -> dict[str, Any]:
    """Rewrite one column of a file, and write a record and a token ledger beside it.

    Args:
        source: JSON lines, CSV, TSV, Parquet or text file, the first three and txt also gzipped; "-" is JSON lines
            from standard input.
        target: the output, of the same form; "-" is standard output, which gets no ledger and no record beside it.
        epsilon: base epsilon per word; a text's budget is this times the average number of words of all texts.
        document_budget: the budget of each text, instead of ``epsilon``.
        stopwords, punctuation, oov: what happens to each class of token; None as in params.yaml.
        workers: processes; None for one if there is little to do, else as in params.yaml. Changes no result.

    Returns:
        The privacy record.

    Raises:
        RequestError: if the request cannot be served; nothing is written then.
    """
    params = load_params()
    if mechanism not in MECHANISMS and mechanism != "none":
        raise RequestError(
            f"--mechanism {mechanism}: there is no such mechanism; there are none, {', '.join(MECHANISMS)}"
        )
    if (mechanism == "none") != (strategy == "none"):
        raise RequestError(
            f"--mechanism {mechanism} --strategy {strategy}: give none for both to leave texts unchanged"
        )
    if mechanism == "none" and (epsilon, document_budget) != (None, None):
        raise RequestError("--mechanism none spends nothing; leave --epsilon and --document-budget out")
    if mechanism != "none" and (epsilon is None) == (document_budget is None):
        raise RequestError("give one of --epsilon (base epsilon per word) and --document-budget (budget of each text)")
    if mode == "release" and seed is not None:
        raise RequestError("a seed makes an experiment; leave --mode release or --seed out")
    for name, value in (("--epsilon", epsilon), ("--document-budget", document_budget)):
        if value is not None and not 0 < value < float("inf"):
            raise RequestError(f"{name} {value}: must be finite and greater than 0")

    opened = _source(source)
    out = None if target == "-" else Path(target)
    if out is not None:
        named = as_source(out)
        check_output(out, None if source == "-" else Path(source), opened.kind, named.kind if named else None)
        for companion in (_beside(out, "record.json"), _beside(out, "ledger.parquet")):
            if companion.exists():
                raise RequestError(f"{shown(companion)}: exists already; remove it or choose another output")
    elif opened.kind == "parquet":
        raise RequestError("Parquet cannot go to standard output; give -o FILE.parquet")

    if strategy in STRATEGIES:
        # What is missing is said before the input is read. A check that failed has taken its record away: what did not
        # pass is not used for a release.
        load_lexicon(SEGMENTATION_OF[strategy])
        for check, stage in CHECKED_BY.items():
            require(paths.CHECKS / check, stage)
    columns, rows, texts = _read(opened, source == "-", text_column)
    if mechanism == "none":
        policy = Policy("keep", "keep", "keep")
        rewritten, ledger = texts, None
        statement = record(
            mechanism="none",
            strategy="none",
            segmentation=None,
            base_epsilon=None,
            policy=policy,
            mode="none",
            keep_layout=True,
            budgets={},
            counts={"n_texts": len(texts)},
            hashes={},
            version=version(),
        )
    else:
        policy = Policy.of(
            strategy,
            stopwords or params.policy.stopwords,
            punctuation or params.policy.punctuation,
            oov or params.policy.oov,
        )
        number = None if mode == "release" else params.seed if seed is None else seed
        settings = Settings(mechanism, strategy, epsilon, document_budget, number, policy, keep_layout)
        rewritten, ledger, statement = privatize_texts(texts, settings, workers)

    replaced = ({**values, text_column: text} for values, text in zip(rows, rewritten, strict=True))
    if out is None:
        for line in lines(opened.kind, columns, replaced):
            sys.stdout.write(line)
        return statement
    # The text last: whoever finds it finds its record and ledger too. The name keeps its ending, which says the form.
    written = out.with_name(f".partial-{out.name}")
    try:
        if opened.kind == "parquet":
            write_parquet(opened.path, text_column, rewritten, written)
        else:
            write_rows(opened.kind, columns, replaced, written)
        # Of what was made, never of the source: with its hash anybody could test a guess of the text.
        statement["output"] = {"sha256": sha256(written)}
        if ledger is not None:
            write_table(ledger, _beside(out, "ledger.parquet"))
            statement["output"]["ledger_sha256"] = sha256(_beside(out, "ledger.parquet"))
        write_json(statement, _beside(out, "record.json"))
        os.replace(written, out)
    except BaseException:
        for file in (written, _beside(out, "record.json"), _beside(out, "ledger.parquet")):
            file.unlink(missing_ok=True)
        raise
    return statement


def _beside(out: Path, ending: str) -> Path:
    return out.with_name(f"{out.name}.{ending}")


def _source(source: Path | str) -> Source:
    if source == "-":
        return Source(Path("standard input"), "json", False, "stdin")
    path = Path(source)
    if path.is_dir():
        raise RequestError(f"{shown(path)}: is a folder; give one file at a time")
    return find_sources([path])[0]


def _read(source: Source, from_stdin: bool, text_column: str) -> tuple[list[str], list[Values], list[str]]:
    """All rows of a file, and their texts, checked."""
    if from_stdin:
        return _rows(table_of(sys.stdin.buffer, source, text_column), text_column)
    with open_table(source, text_column, () if source.kind == "parquet" else None) as table:
        return _rows(table, text_column)


def _rows(table: Table, text_column: str) -> tuple[list[str], list[Values], list[str]]:
    rows: list[Values] = []
    texts: list[str] = []
    for row in table.rows:
        where = place(table.source, row.line)
        if text_column not in row.values:
            raise RequestError(f"{where}: the object has no `{text_column}`; every one must have its text")
        text = text_value(row.values[text_column], text_column, where)
        if text is None:
            raise RequestError(f"{where}: `{text_column}` is null; give it a text, or an empty one")
        rows.append(row.values)
        texts.append(text)
    return table.columns, rows, texts
