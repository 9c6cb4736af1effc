"""Choice of the sentence bank for strategy S5, which replaces texts by sentences of the bank. The
request's bank takes precedence over the bank of the project's run, and that bank over the packaged
bank.

The packaged bank (lexveil/models/written) is a list of sentences that a public language model
wrote. The embedding model of a request gives the sentences their vectors. The vectors are computed
when the packaged bank is first used, and stored as a bank in the user's cache.
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
from lexveil.core.embeddings.sentences import CutTexts, Units
from lexveil.core.protection import LevelName
from lexveil.io.artifacts.levels import CARD, KEPT_BANKS
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.sentence_banks import (
    FEWEST,
    FORMAT,
    STRATEGY,
    BankLevel,
    BankSource,
    SentenceBank,
    has_usual_tem,
    open_bank,
    vectors_sha256,
    without_purposes,
    write_bank,
)

SHIPPED = "shipped"  # the name of the packaged bank
WRITTEN = paths.MODELS / "written"
WRITTEN_CARD = "written.json"
# `python -m benchmarks.sentences --packaged --figures` writes this file
WRITTEN_LINKAGE = "linkage.json"
# `python -m benchmarks.written_bank levels` writes this file
WRITTEN_LEVELS = "levels.json"
SENTENCES_FILE = "sentences.parquet"
NO_UNITS = Units(np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64))


class WrittenCard(Result):
    """Metadata card (JSON) of the packaged sentences. It states which language model wrote them,
    how, and by which rule they were chosen.

    Attributes:
        writer: The language model that wrote the sentences, and its publisher.
        licence: The licence of the language model and of the sentences.
        weights: SHA-256 of the file of the language model.
        prompts: SHA-256 of the file from which the prompts are made.
        seed: The seed of the prompts and of the draws of the language model.
        temperature: The temperature of the draws of the language model.
        top: Total probability of the likeliest next pieces from which each piece was drawn (nucleus
            sampling).
        least: Smallest mean log likelihood of the pieces of a text that was accepted.
        least_words: The smallest number of words of a sentence.
        most_words: The largest number of words of a sentence.
        least_known: The smallest share of the words of a sentence that the model knows.
        screen: The parts of the public list whose words occur in no sentence.
        sentences: The number of sentences.
        sha256: SHA-256 of the file of sentences.
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
    """Measured linkage of outputs that consist of packaged sentences: the share of outputs whose
    source text the strongest adversary identified among 1,000 public texts of up to 40 words. The
    figures are for the kind of text on which that adversary succeeded most often.

    Attributes:
        model: SHA-256 of the model's metadata card, without purposes.
        purposes: each purpose (a preserved word scale) with its weight and the SHA-256 of its
            scale.
        per_text: number of sentences that replace a text.
        epsilon: the epsilon of each sentence.
        found: share of the outputs whose source was identified.
        high: upper end of the 95 % confidence interval of ``found``.
    """

    model: str
    purposes: list[str]
    per_text: int
    epsilon: float
    found: float
    high: float


class WrittenLevels(Result):
    """The protection levels of the packaged sentences, for one model, its purposes, and a number of
    sentences that replace a text.

    Attributes:
        model: SHA-256 of the model's metadata card, without purposes.
        purposes: Each purpose (a preserved word scale) with its weight and the SHA-256 of its
            scale.
        per_text: Number of sentences that replace a text; null if each sentence is a unit.
    """

    model: Sha256
    purposes: list[str]
    per_text: int | None
    levels: list[BankLevel]

    @property
    def settings(self) -> str:
        """The number of sentences per text and the purposes, as a phrase for messages."""
        drawn = f"{self.per_text} for a text" if self.per_text else "one for each sentence"
        return " with ".join([drawn, *(purpose.split()[0] for purpose in self.purposes)])


class MeasuredWritten(Result):
    """Table of the measured protection levels of the packaged sentences.

    Attributes:
        sentences: SHA-256 of the file of sentences with which the levels were measured.
        texts: The kinds of public text on which the levels were measured.
    """

    sentences: Sha256
    texts: list[str]
    measured: list[WrittenLevels]


def bank_named(name: str | None, model: Model) -> Path:
    """Return the folder of a sentence bank by the name that a request gives.

    Args:
        name: folder of the bank, or ``SHIPPED`` for the packaged bank. If the name is None, the
            result is the default bank of the model (``bank_of``).

    Raises:
        RequestError: if there is no such bank.
    """
    if name is None:
        return bank_of(model)
    if name != SHIPPED:
        return Path(name)
    if not has_written_bank(model):
        raise RequestError(
            f"{option('bank')} {SHIPPED}: the packaged bank works only with packaged models "
            f"of its language, and not with model {model.name}; name {option('model')} en, "
            f"or the folder of another bank (a folder with the name {SHIPPED} is written "
            f"./{SHIPPED})"
        )
    return written_bank(model)


def takes_written_bank(name: str | None, model: Model) -> bool:
    """Return whether a request refers to the packaged sentence bank.

    Args:
        name: name of the bank, as ``bank_named`` takes it.
    """
    return name in (None, SHIPPED) and has_written_bank(model)


def bank_of(model: Model) -> Path:
    """Return the folder of a model's default sentence bank: the bank of the project's run, or the
    packaged bank if the model is a packaged model of the bank's language.

    Raises:
        RequestError: if the model has no default sentence bank.
    """
    folder = model.source.bank_folder
    if folder is not None and (folder / CARD).is_file():
        return folder
    if has_written_bank(model):
        return written_bank(model)
    why = f", and there is no packaged bank in the language of model {model.name}"
    if folder is not None:
        why = (
            f", and {folder} has no bank (the corpus of the run has fewer than {FEWEST:,} "
            "suitable sentences, or `lexveil run` has not made the bank)"
        )
    raise RequestError(
        f"{option('strategy')} S5 writes sentences of a public bank{why}; make a bank with "
        f"`lexveil sentences build PUBLIC.jsonl -o BANK --public`, and add {option('bank')} "
        "BANK"
    )


def open_wanted(named: str | None, model: Model) -> SentenceBank:
    """Open the sentence bank that a request names. ``bank_named`` describes the names.

    Raises:
        RequestError: if ``bank_named`` finds no bank, or ``open_bank`` cannot open it.
    """
    return model.once(("bank", named), lambda: open_bank(bank_named(named, model), model))


def has_written_bank(model: Model) -> bool:
    """Return whether a model can use the packaged sentence bank: it is a packaged model in the
    language of the bank.
    """
    return model.packaged is not None and read_written_card().language == model.language


def read_written_card() -> WrittenCard:
    """Return the metadata card of the packaged sentences.

    Raises:
        RequestError: if the installation lacks the card.
    """
    file = WRITTEN / WRITTEN_CARD
    try:
        return WrittenCard.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise RequestError(
            f"{file}: cannot be read ({type(error).__name__}); install Lexveil again"
        ) from None


def measured_of_written(model: Model) -> list[WrittenLinkage]:
    """Return the measured linkage (share of identified source texts) of the packaged sentence bank
    with this model and its purposes.
    """
    measured = json.loads((WRITTEN / WRITTEN_LINKAGE).read_text(encoding="utf-8"))
    if measured["sentences"] != read_written_card().sha256:
        return []
    of_model = vectors_sha256(model)
    purposes = model.weighted_purposes
    found = [WrittenLinkage(**one) for one in measured["linkage"]]
    return [one for one in found if one.model == of_model and one.purposes == purposes]


def levels_of_written(model: Model) -> list[WrittenLevels]:
    """Return the measured protection levels of the packaged sentence bank with a model, for any
    purposes.
    """
    file = WRITTEN / WRITTEN_LEVELS
    table = MeasuredWritten.model_validate_json(file.read_bytes())
    if table.sentences != read_written_card().sha256:
        return []
    of_model = vectors_sha256(model)
    return [one for one in table.measured if one.model == of_model]


def level_of_written(model: Model, per_text: int | None, name: LevelName) -> BankLevel:
    """Return one protection level of the packaged sentence bank, for a model and its purposes.

    Args:
        per_text: number of sentences that replace a text; None if one sentence replaces each
            sentence.

    Raises:
        RequestError: if the level was not measured, or no epsilon meets it.
    """
    measured = levels_of_written(model) if has_usual_tem(model) else []
    sought = (per_text, model.weighted_purposes)
    for one in measured:
        if (one.per_text, one.purposes) == sought:
            found = [level for level in one.levels if level.level == name]
            if found:
                return found[0]
    known = "; ".join(one.settings for one in measured) or "no setting of this model"
    raise RequestError(
        f"{option('protection')} {name}: the bank that ships has levels of protection for these "
        f"numbers of sentences and purposes: {known}. Choose one of these; or name "
        f"{option('epsilon')} of each sentence (docs/reference/sentences.md); or build a bank of "
        "public texts by `lexveil sentences build`, whose levels are computed for any setting"
    )


def written_bank(model: Model) -> Path:
    """Return the folder of the packaged sentence bank with the vectors of a model. If the folder is
    missing, create it.

    Raises:
        RequestError: if the hash of the packaged sentences differs from the hash in their metadata
            card.
    """
    card = read_written_card()
    file = WRITTEN / SENTENCES_FILE
    if not file.is_file() or sha256(file) != card.sha256:
        raise RequestError(
            f"{file}: the hash of the file differs from the hash in its card; install Lexveil again"
        )
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
            public=CutTexts(NO_UNITS, NO_UNITS),
            levels_of=lambda *_: [],
        )
    return folder
