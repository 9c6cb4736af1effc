"""The banks of sentences that strategy S5 takes: the one that a request names, else that of a
project's run, else the packaged one.

The packaged bank (lexveil/models/written) is a list of sentences that a public language model
wrote. Their vectors follow from the model that rewrites; they are computed when the bank is first
used, and kept in the user's cache as a bank like any other.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from pydantic import ValidationError

from lexveil.base import paths
from lexveil.base.errors import RequestError, option
from lexveil.base.runtime.hashes import sha256
from lexveil.core.accounting.record import ScreenRecord
from lexveil.core.accounting.results import Result, Sha256
from lexveil.core.embeddings.sentences import Units
from lexveil.io.artifacts.levels import CARD, KEPT_BANKS
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.sentence_banks import (
    FEWEST,
    FORMAT,
    STRATEGY,
    BankSource,
    SentenceBank,
    open_bank,
    without_purposes,
    write_bank,
)

SHIPPED = "shipped"  # the name of the packaged bank
WRITTEN = paths.MODELS / "written"
WRITTEN_CARD = "written.json"
WRITTEN_LINKAGE = "linkage.json"  # by `python -m benchmarks.sentences --packaged --figures`
SENTENCES_FILE = "sentences.parquet"
NOTHING = np.zeros(0, dtype=np.int64)


class WrittenCard(Result):
    """The card of the packaged sentences: which model wrote them, how, and by which rule they were
    chosen.

    Attributes:
        writer: The language model that wrote them, and whose it is.
        licence: The licence of the language model and of the sentences.
        weights: SHA-256 of the file of the language model.
        prompts: SHA-256 of the file from which the prompts are made.
        seed: The seed of the prompts and of the draws of the language model.
        temperature: The temperature of the draws of the language model.
        top: The share of the chance of a piece among which it was drawn.
        least: The mean log likelihood of the pieces of a text, at least.
        sentences: The number of sentences.
        sha256: Of the file of sentences.
    """

    language: str
    writer: str
    licence: str
    weights: Sha256
    prompts: Sha256
    seed: int
    temperature: float
    top: float
    least: float
    least_words: int
    most_words: int
    least_known: float
    screen: ScreenRecord
    sentences: int
    sha256: Sha256


class WrittenLinkage(NamedTuple):
    """Shares of outputs whose source was identified among 1,000 public texts of up to 40 words, for
    outputs of the packaged sentences. The shares are those of the strongest adversary on the kind
    of text where that adversary was right most often.

    Attributes:
        model: sha256 of the card of the model, without purposes.
        purposes: each purpose with its weight and the sha256 of its scale.
        per_text: sentences that are written for a text.
        epsilon: the epsilon of each sentence.
        found: share of the sources that were found.
        high: upper end of its 95 % interval.
    """

    model: str
    purposes: list[str]
    per_text: int
    epsilon: float
    found: float
    high: float


def bank_named(name: str | None, model: Model) -> Path:
    """Return the folder of a bank.

    Args:
        name: the folder, or ``SHIPPED``; None is the bank that goes with the model.

    Raises:
        RequestError: if there is no such bank.
    """
    if name is None:
        return bank_of(model)
    if name != SHIPPED:
        return Path(name)
    if not has_written_bank(model):
        raise RequestError(
            f"{option('bank')} {SHIPPED}: the bank that ships goes with packaged models of its "
            f"language, and not with model {model.name}; name {option('model')} en, or the folder "
            f"of another bank (a folder of this name is ./{SHIPPED})"
        )
    return written_bank(model)


def takes_written_bank(name: str | None, model: Model) -> bool:
    """Whether a name, in the form that ``bank_named`` takes, names the packaged bank."""
    return name in (None, SHIPPED) and has_written_bank(model)


def bank_of(model: Model) -> Path:
    """Return the folder of the bank that goes with a model: that of its project's run, or the
    packaged one for a packaged model of its language.

    Raises:
        RequestError: if there is none.
    """
    folder = model.source.bank_folder
    if folder is not None and (folder / CARD).is_file():
        return folder
    if has_written_bank(model):
        return written_bank(model)
    why = f"; there is none in the language of model {model.name}"
    if folder is not None:
        why = (
            f" ({folder} has none: the corpus of the run has fewer than {FEWEST:,} sentences that "
            "are fit, or `lexveil run` has not made it)"
        )
    raise RequestError(
        f"{option('strategy')} S5 writes sentences of a public bank{why}; make one with `lexveil "
        f"sentences build PUBLIC.jsonl -o BANK --public`, and say {option('bank')} BANK"
    )


def open_wanted(named: str | None, model: Model) -> SentenceBank:
    """Open the bank of this name, as ``bank_named`` takes it.

    Raises:
        RequestError: as ``bank_named`` and ``open_bank``.
    """
    return model.once(("bank", named), lambda: open_bank(bank_named(named, model), model))


def has_written_bank(model: Model) -> bool:
    """Whether the packaged bank has the language of a model that ships as a package."""
    return model.packaged is not None and read_written_card().language == model.language


def read_written_card() -> WrittenCard:
    """Return the card of the packaged sentences.

    Raises:
        RequestError: if the installation lacks it.
    """
    file = WRITTEN / WRITTEN_CARD
    try:
        return WrittenCard.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise RequestError(
            f"{file}: cannot be read ({type(error).__name__}); install Lexveil again"
        ) from None


def measured_of_written(model: Model) -> list[WrittenLinkage]:
    """Return the linkage that was measured of the packaged bank with a model and its purposes."""
    measured = json.loads((WRITTEN / WRITTEN_LINKAGE).read_text(encoding="utf-8"))
    if measured["sentences"] != read_written_card().sha256:
        return []
    of_model = without_purposes(model).reference(STRATEGY).sha256
    purposes = [f"{purpose} {purpose.sha256}" for purpose in model.purposes]
    found = [WrittenLinkage(**one) for one in measured["linkage"]]
    return [one for one in found if one.model == of_model and one.purposes == purposes]


def written_bank(model: Model) -> Path:
    """Return the folder of the packaged bank with the vectors of a model, which is made if it is
    missing.

    Raises:
        RequestError: if the packaged sentences are not those of their card.
    """
    card = read_written_card()
    file = WRITTEN / SENTENCES_FILE
    if not file.is_file() or sha256(file) != card.sha256:
        raise RequestError(f"{file}: differs from the hash in its card; install Lexveil again")
    base = without_purposes(model)
    made_with = f"{FORMAT} {card.sha256} {base.reference(STRATEGY).sha256}"
    folder = paths.user_cache() / KEPT_BANKS / hashlib.sha256(made_with.encode()).hexdigest()[:32]
    if not (folder / CARD).is_file():
        about = {
            "public": True,
            "seed": card.seed,
            "least_words": card.least_words,
            "most_words": card.most_words,
            "least_known": card.least_known,
            "screen": card.screen,
            "sources": [BankSource(name=f"written by {card.writer}", sha256=card.sha256)],
        }
        write_bank(
            folder,
            table=pq.read_table(file),
            model=base,
            about=about,
            public=Units.of(NOTHING, NOTHING, 0),
            levels_of=lambda *_: [],
        )
    return folder
