"""Construction of sentence banks (public sentences that may replace a private text) from public
texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from lexveil.base.errors import RequestError, option
from lexveil.base.logs import logger
from lexveil.base.runtime.hashes import sha256
from lexveil.base.types import Vectors
from lexveil.core.embeddings.sentences import SentenceSpace
from lexveil.core.screen_parts import DEFAULT, chosen_parts
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.sentence_banks import (
    FEWEST,
    STRATEGY,
    BankCard,
    BankLevel,
    BankSource,
    without_purposes,
    write_bank,
)
from lexveil.io.execution import duckdb_session
from lexveil.io.formats.messages import shown
from lexveil.io.formats.readers import open_table
from lexveil.io.formats.registry import as_source, known_endings
from lexveil.io.formats.values import text_value
from lexveil.lab.data.public_sentences import PublicTexts, TextSample, choose
from lexveil.lab.data.sentence_choice import (
    DEFAULT_SEED,
    LEAST_KNOWN,
    LEAST_WORDS,
    MOST_WORDS,
    SIZE,
    Choice,
)
from lexveil.readers.bank_levels import BankCalibration

LOG = logger(__name__)

CHARACTERS = 2**20  # characters of documents that are cut at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class BankOptions:
    """Options for building a sentence bank.

    Attributes:
        size: largest number of sentences.
        is_public: whether the user states that the sources contain no private text.
        screen: parts of the public list of sensitive words; sentences that contain a word of these
            parts are excluded.
    """

    model: str | None = None
    text_column: str = "text"
    size: int = SIZE
    seed: int = DEFAULT_SEED
    is_public: bool = False
    screen: str = DEFAULT


def build(sources: Sequence[Path], output: Path, options: BankOptions) -> BankCard:
    """Build a sentence bank from the sentences of public texts.

    Raises:
        RequestError: if a source cannot be read, the output exists, a part of the word list is
            unknown, or too few sentences are suitable; nothing is written then.
    """
    _check_parts(options.screen)
    if output.exists():
        raise RequestError(f"{shown(output)}: exists already; remove it or choose another output")
    model = Model.load(name=options.model)
    files = _files(sources)
    choice = Choice(size=options.size, seed=options.seed, screen=options.screen)
    sample = TextSample()
    with duckdb_session.session(model.configuration.machine) as con:
        texts = sample.passing(_documents(files, options.text_column))
        table = choose(con, texts, model.lexicon(STRATEGY), choice)
    if len(table) < FEWEST:
        raise RequestError(
            f"only {len(table):,} sentences of the sources are suitable, and a bank needs "
            f"{FEWEST:,}. A suitable sentence has {LEAST_WORDS} to {MOST_WORDS} words, "
            f"{LEAST_KNOWN:.0%} of them known to model {model.name}, no numbers and addresses, "
            f"and no words of {options.screen}. Give more texts, fewer parts of "
            f"{option('screen')}, or a model of their language by {option('model')}"
        )
    bank_sources = [BankSource(name=file.name, sha256=sha256(file)) for file in files]
    about = choice.described(model.language) | {
        "public": options.is_public,
        "sources": bank_sources,
    }
    return make_bank(output, table, model, about, sample)


def make_bank(
    folder: Path, table: pa.Table, model: Model, about: Mapping[str, object], sample: TextSample
) -> BankCard:
    """Write a sentence bank with its calibrated protection levels.

    Args:
        table: the sentences, as ``choose`` returns them.
        about: the fields of the bank's metadata card about the sources and about the choice of
            sentences.
        sample: sample of the public texts, on which the levels are measured.
    """
    base = without_purposes(model)
    public = sample.pieces(base.lexicon(STRATEGY))

    def levels_of(space: SentenceSpace, vectors: Vectors) -> list[BankLevel]:
        return BankCalibration(base, space, vectors, public).levels()

    return write_bank(folder, table, model, about, public, levels_of)


def _check_parts(screen: str) -> None:
    """Raise RequestError if ``screen`` names a part that the public word list does not have."""
    try:
        chosen_parts(screen)
    except ValueError as error:
        raise RequestError(f"{option('screen')} is {screen!r}; {error}") from None


def _files(sources: Sequence[Path]) -> list[Path]:
    """Return the files of all sources; the files of a folder are sorted by name."""
    files = []
    for source in sources:
        listed = sorted(source.iterdir()) if source.is_dir() else [source]
        readable = [file for file in listed if file.is_file() and as_source(file) is not None]
        if not readable:
            raise RequestError(
                f"{shown(source)}: no such file or folder, or none of its files is one of "
                f"{known_endings('or')}"
            )
        files += readable
    return files


def _documents(files: Sequence[Path], column: str) -> Iterator[PublicTexts]:
    """Read texts from files and yield them in parts of about ``CHARACTERS`` characters; all texts
    have the same weight.
    """
    waiting = list[str]()
    size = 0
    for file in files:
        source = as_source(file)
        assert source is not None
        LOG.info(f"reading {shown(file)}")
        with open_table(source, column) as table:
            for row in table.rows:
                text = text_value(row.values.get(column), column, source.location(row.line))
                if text:
                    waiting.append(text)
                    size += len(text)
                if size >= CHARACTERS:
                    yield PublicTexts(waiting, [1.0] * len(waiting))
                    waiting = list[str]()
                    size = 0
    yield PublicTexts(waiting, [1.0] * len(waiting))
