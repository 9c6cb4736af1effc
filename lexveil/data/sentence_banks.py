"""Builds banks of sentences of public texts, and looks into them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from lexveil.accounting.results import Result
from lexveil.artifacts.model import Model
from lexveil.artifacts.screened_words import screened_words
from lexveil.artifacts.sentence_banks import (
    FEWEST,
    STRATEGY,
    BankCard,
    BankSource,
    open_bank,
    units_of_texts,
    write_bank,
)
from lexveil.embeddings.exact_search import ExactSearch
from lexveil.errors import RequestError, option
from lexveil.formats.messages import shown
from lexveil.formats.readers import open_table
from lexveil.formats.registry import as_source, known_endings
from lexveil.formats.values import text_value
from lexveil.runtime import duckdb_session
from lexveil.runtime.hashes import sha256
from lexveil.text.encode import Lexicon, TokenClass, encode

LEAST_WORDS = 3
MOST_WORDS = 25
LEAST_KNOWN = 0.95
CHARACTERS = 2**20  # of documents that are cut at a time
SEED = 1  # of the choice, unless another is given
CANDIDATES = pa.schema(
    [
        ("text", pa.string()),
        ("n_words", pa.int32()),
        ("n_known", pa.int32()),
        ("is_screened", pa.bool_()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BankOptions:
    """How a bank is built.

    Attributes:
        size: sentences at most.
        is_public: no private text has a part in the sources.
    """

    model: str | None = None
    text_column: str = "text"
    size: int = 100_000
    seed: int = SEED
    is_public: bool = False


class Neighbour(Result):
    """A sentence of a bank, and how far it is from the one that was asked about."""

    distance: float
    sentence: str


def build(sources: Sequence[Path], output: Path, options: BankOptions) -> BankCard:
    """Build a bank of the sentences of public texts.

    Raises:
        RequestError: if a source cannot be read, the output exists, or too few sentences are fit;
            nothing is written then.
    """
    if output.exists():
        raise RequestError(f"{shown(output)}: exists already; remove it or choose another output")
    model = Model.load(name=options.model)
    lexicon = model.lexicon(STRATEGY)
    files = _files(sources)
    with duckdb_session.session(model.params.machine) as con:
        batches = (
            _candidates(documents, lexicon) for documents in _documents(files, options.text_column)
        )
        con.register("candidates", pa.RecordBatchReader.from_batches(CANDIDATES, batches))
        chosen = {
            "least_words": LEAST_WORDS,
            "most_words": MOST_WORDS,
            "least_known": LEAST_KNOWN,
            "seed": options.seed,
            "size": options.size,
        }
        query = duckdb_session.text("sentences/bank")
        table = con.sql(query, params=chosen).to_arrow_table()
    if len(table) < FEWEST:
        raise RequestError(
            f"{len(table):,} sentences of the sources are fit for a bank, which needs "
            f"{FEWEST:,}: {LEAST_WORDS} to {MOST_WORDS} words, {LEAST_KNOWN:.0%} of them known to "
            f"model {model.name}, no numbers and addresses. Give more texts, or a model of their "
            f"language by {option('model')}"
        )
    about = {
        "public": options.is_public,
        "seed": options.seed,
        "least_words": LEAST_WORDS,
        "most_words": MOST_WORDS,
        "least_known": LEAST_KNOWN,
        "screen": screened_words().sha256,
        "sources": [BankSource(name=file.name, sha256=sha256(file)) for file in files],
    }
    return write_bank(output, table, model, about)


def neighbours(folder: Path, sentence: str, k: int, model: str | None) -> list[Neighbour]:
    """The k sentences of a bank that are nearest to a sentence.

    Raises:
        RequestError: as ``open_bank``; if the model knows no word of the sentence.
    """
    using = Model.load(name=model)
    bank = open_bank(folder, using)
    units = units_of_texts([sentence], using)
    if not len(units.known().rows):
        raise RequestError(
            f"model {using.name} knows no word of the sentence, so that all sentences are as near"
        )
    query = bank.space.embed(units)
    rows, distances = ExactSearch(bank.vectors).nearest_k(query.astype(np.float64), k)
    return [
        Neighbour(distance=round(distance, 4), sentence=bank.texts[row])
        for row, distance in zip(rows[0].tolist(), distances[0].tolist(), strict=True)
    ]


def _files(sources: Sequence[Path]) -> list[Path]:
    """The files of sources, folders by the names of their files."""
    files = []
    for source in sources:
        listed = sorted(source.iterdir()) if source.is_dir() else [source]
        found = [file for file in listed if file.is_file() and as_source(file) is not None]
        if not found:
            raise RequestError(
                f"{shown(source)}: there is no such file or folder, or none in it is one of "
                f"{known_endings('or')}"
            )
        files += found
    return files


def _documents(files: Sequence[Path], column: str) -> Iterator[list[str]]:
    """The texts of files, about ``CHARACTERS`` at a time."""
    waiting = list[str]()
    size = 0
    for file in files:
        source = as_source(file)
        assert source is not None
        print(f"reading {shown(file)}", file=sys.stderr)
        with open_table(source, column) as table:
            for row in table.rows:
                text = text_value(row.values.get(column), column, source.location(row.line))
                if text:
                    waiting.append(text)
                    size += len(text)
                if size >= CHARACTERS:
                    yield waiting
                    waiting = list[str]()
                    size = 0
    yield waiting


def _candidates(documents: Sequence[str], lexicon: Lexicon) -> pa.RecordBatch:
    """The sentences of some documents, as sql/sentences/bank.sql reads them."""
    encoded = encode(documents, lexicon)
    starts = encoded.sentence_offsets
    n = len(starts) - 1
    first_of = encoded.spans[starts[:-1], 0]
    last_of = encoded.spans[starts[1:] - 1, 1]
    word_starts = np.searchsorted(encoded.first_word, starts[:-1])
    text_of = encoded.text_of[word_starts] if n else np.zeros(0, dtype=np.int32)
    sentences = [
        " ".join(documents[text][first:last].split())
        for text, first, last in zip(
            text_of.tolist(), first_of.tolist(), last_of.tolist(), strict=True
        )
    ]
    is_word = encoded.kind != TokenClass.PUNCTUATION.value
    words = encoded.n_words * is_word
    sentence_of = encoded.sentence_of
    n_words = np.bincount(sentence_of, weights=words, minlength=n)
    n_known = np.bincount(sentence_of, weights=words * (encoded.rows >= 0), minlength=n)
    listed = screened_words().words
    on_list = np.array([form in listed for form in encoded.forms], dtype=bool)
    before = np.concatenate([[0], np.cumsum(on_list[encoded.word])])
    columns = [
        pa.array(sentences, pa.string()),
        pa.array(n_words.astype(np.int32)),
        pa.array(n_known.astype(np.int32)),
        pa.array(before[starts[1:]] > before[starts[:-1]]),
    ]
    return pa.record_batch(columns, CANDIDATES)
