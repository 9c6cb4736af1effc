"""Banks of public sentences. A bank is a folder of sentences, their tokens and vectors, and a card
with hashes.

    bank.json           the card: the texts and the model of the bank, and the SHA-256 of every
                        other file
    sentences.parquet   N sentences, each with its text and its number of words
    rows.npy            int32, the embedding row of each token of the sentences, one sentence after
                        the other; -1 for a token that the embedding does not have
    starts.npy          (N + 1,) int64, the position in rows.npy where each sentence begins
    text_rows.npy       int32, the embedding row of each token of some public texts, which calibrate
                        the levels
    text_starts.npy     int64, the position in text_rows.npy where each public text begins
    text_sentences.npy  int64, the position in text_rows.npy where each sentence of the texts
                        begins
    component.npy       (p,) the direction that is removed from all vectors
    vectors.npy         (N, p) float32

A bank has no purposes. The coordinates of a purpose are computed from the tokens when the bank is
opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.base.errors import RequestError, option
from lexveil.base.runtime.hashes import sha256, version
from lexveil.base.runtime.tables import PARQUET, atomic_directory, write_json
from lexveil.base.types import Ids, Vectors
from lexveil.core.accounting.record import ScreenRecord
from lexveil.core.accounting.results import Number, Result, Sha256
from lexveil.core.embeddings.sentences import CutTexts, SentenceSpace, Units, token_weights
from lexveil.core.mechanisms.tem import TemParameters
from lexveil.core.protection import LEVELS
from lexveil.core.text.encode import encode
from lexveil.core.text.strings import Strings
from lexveil.io.artifacts.embeddings import write_arrays
from lexveil.io.artifacts.levels import CARD
from lexveil.io.artifacts.model import Model

FORMAT = 2
TABLE = "sentences.parquet"
ARRAYS = (
    "component",
    "rows",
    "starts",
    "text_rows",
    "text_sentences",
    "text_starts",
    "vectors",
)
# smallest number of sentences; an output of a smaller bank tells which sentences were near
FEWEST = 1_000
# The embedding of this strategy gives the vectors, so a collocation is one unit of the mean.
STRATEGY = "S3"
LARGEST_WEIGHT = 5.0  # of a purpose


class BankSource(Result):
    """A file of public texts from which a sentence bank was made."""

    name: str
    sha256: Sha256


class BankLevel(Result):
    """Protection level of a sentence bank. The metadata card of a bank has the levels for texts
    that become ``PER_TEXT`` sentences each, without purposes (preserved word scales).

    Attributes:
        epsilon: The epsilon of each sentence.
        linkage: Share of public texts that an adversary identified among 1,000.
        content: Share of the content words of the texts that an adversary named.
        rare: Share of the rare words of the texts that an adversary named.
        content_without: Share of the content words that an adversary named without any output.
        rare_without: Share of the rare words that an adversary named without any output.
    """

    level: Literal["strong", "balanced", "light"]
    epsilon: float
    linkage: Number
    content: Number
    rare: Number
    content_without: Number
    rare_without: Number

    @property
    def missed(self) -> str | None:
        """A phrase about the kinds of words of which an adversary names more than the level allows.
        The value is None if there are no such words.
        """
        allowed = LEVELS[self.level]
        found = (
            ("content", self.content, self.content_without, allowed.content),
            ("rare", self.rare, self.rare_without, allowed.rare),
        )
        over = [
            f"{share:.1%} of the {kind} words instead of {most:.1%}, where a reader without any "
            f"output names {without:.1%}"
            for kind, share, without, most in found
            if share > most
        ]
        return "; ".join(over) or None


class BankCard(Result):
    """Metadata card (JSON) of a sentence bank: the texts from which the bank was made, and the
    options of the build.

    Attributes:
        model: The name of the model that gave the sentences their vectors.
        model_sha256: SHA-256 of the card of that model, without purposes.
        public: Whether the maker of the bank declared that the bank has no private text.
        seed: The seed of the choice of sentences.
        least_words: The smallest number of words of a sentence, without punctuation.
        least_known: The smallest share of the words of a sentence that the model knows.
        screen: The parts of the public list whose words occur in no sentence.
        levels: The levels of protection; empty for a bank that was built from too few texts.
    """

    format: int
    lexveil: str
    model: str
    model_sha256: Sha256
    language: str
    public: bool
    sentences: int
    dimensions: int
    seed: int
    least_words: int
    most_words: int
    least_known: float
    screen: ScreenRecord
    sources: list[BankSource]
    levels: list[BankLevel]
    files: dict[str, Sha256]


@dataclass(frozen=True, slots=True, repr=False)
class SentenceBank:
    """An opened sentence bank, with the words and the purposes (preserved word scales) of a model.

    Attributes:
        sha256: SHA-256 of the bank's metadata card, which lists the hashes of all other files.
        texts: the N sentences.
        n_words: (N,) the number of words of each sentence.
        space: the space that gives vectors to texts.
        vectors: (N, p) the vectors of the sentences, with an axis for each purpose.
        units: the tokens of the sentences.
        public: the tokens of some public texts.
    """

    folder: Path
    card: BankCard
    sha256: str
    texts: Strings
    n_words: Ids
    space: SentenceSpace
    vectors: Vectors
    units: Units
    public: CutTexts

    def __len__(self) -> int:
        return len(self.vectors)


def without_purposes(model: Model) -> Model:
    """Return a model without its purposes (preserved word scales). Sentence banks belong to models
    without purposes.
    """
    return replace(model, purposes=())


def vectors_sha256(model: Model) -> str:
    """Return the SHA-256 of the metadata card of the model that gives sentences their vectors. It
    is the same for all purposes.
    """
    return without_purposes(model).reference(STRATEGY).sha256


def has_usual_tem(model: Model) -> bool:
    """Return whether the project uses the default truncation parameter of the mechanism TEM, which
    draws sentences. Levels and linkage of banks are measured with this parameter.
    """
    return bool(model.params.mechanisms.tem.beta == TemParameters().beta)


def units_of_texts(texts: Sequence[str], model: Model) -> Units:
    """Return the tokens of texts as rows of the model. Each text is one unit."""
    encoded = encode(texts, model.lexicon(STRATEGY))
    return Units(encoded.rows, encoded.offsets())


def write_bank(
    folder: Path,
    table: pa.Table,
    model: Model,
    about: Mapping[str, Any],
    public: CutTexts,
    levels_of: Callable[[SentenceSpace, Vectors], list[BankLevel]],
) -> BankCard:
    """Write the files of a sentence bank into a folder.

    Args:
        table: the sentences, with the columns text and n_words.
        about: the fields of the metadata card that do not follow from the other arguments.
        public: the tokens of some public texts.
        levels_of: function that computes the protection levels from a space and from the vectors of
            the sentences.
    """
    base = without_purposes(model)
    units = units_of_texts(Strings(table.column("text").combine_chunks()), base)
    space = SentenceSpace.fitted(base.embedding(STRATEGY), units)
    vectors = space.embed(units)
    arrays: dict[str, npt.NDArray[Any]] = {
        "component": space.component,
        "rows": units.rows.astype(np.int32),
        "starts": units.starts,
        "text_rows": public.texts.rows.astype(np.int32),
        "text_sentences": public.sentences.starts,
        "text_starts": public.texts.starts,
        "vectors": vectors,
    }
    with atomic_directory(folder) as partial:
        write_arrays(partial, arrays)
        pq.write_table(table.select(["text", "n_words"]), partial / TABLE, **PARQUET)
        card = BankCard(
            **about,
            format=FORMAT,
            lexveil=version(),
            model=base.name,
            model_sha256=base.reference(STRATEGY).sha256,
            language=base.language,
            sentences=len(units),
            dimensions=space.dimensions,
            levels=levels_of(space, vectors),
            files={file.name: sha256(file) for file in sorted(partial.iterdir())},
        )
        write_json(card.to_dict(), partial / CARD)
    return card


def read_card(folder: Path) -> BankCard:
    """Return the metadata card of a sentence bank.

    Raises:
        RequestError: if the folder is no sentence bank, or if the bank has another format.
    """
    try:
        content = (folder / CARD).read_bytes()
        _check_format(folder / CARD, json.loads(content))
        return BankCard.model_validate_json(content)
    except FileNotFoundError:
        raise RequestError(
            f"{folder}: the folder is no bank of sentences, because it lacks the file "
            f"{CARD}; make a bank of public texts: lexveil sentences build PUBLIC.jsonl -o "
            f"{folder} --public"
        ) from None
    except (OSError, ValueError) as error:
        raise RequestError(
            f"{folder / CARD}: the file cannot be read as the card of a bank "
            f"({type(error).__name__}); build the bank again, by lexveil sentences build"
        ) from None


def _check_format(file: Path, card: object) -> None:
    """Raise an error if the metadata card of a sentence bank has another format than that of this
    version. Such a card may lack fields.

    Raises:
        RequestError: if the format is another.
    """
    if isinstance(card, dict) and card.get("format", FORMAT) != FORMAT:
        raise RequestError(
            f"{file}: the bank has format {card['format']}, but this version reads format "
            f"{FORMAT}; build the bank again by lexveil sentences build, or a project's bank by "
            "lexveil run"
        )


def open_bank(folder: Path, model: Model) -> SentenceBank:
    """Open a sentence bank for a model and its purposes (preserved word scales), and check every
    file of the bank.

    Raises:
        RequestError: if the bank is missing, edited, too small or of another model, or if a purpose
            has too large a weight or gives all sentences the same score.
    """
    card = read_card(folder)
    _check_model(folder, card, model)
    if card.sentences < FEWEST:
        raise RequestError(
            f"{folder}: the bank has {card.sentences:,} sentences, but a bank needs at "
            f"least {FEWEST:,}; build a bank of more texts"
        )
    if {*card.files} != {TABLE, *(f"{name}.npy" for name in ARRAYS)}:
        raise _edited(folder / CARD)
    for name, digest in card.files.items():
        file = folder / name
        if not file.is_file() or sha256(file) != digest:
            raise _edited(file)
    table = pq.read_table(folder / TABLE)
    component, rows, starts, text_rows, text_sentences, text_starts, vectors = (
        np.load(folder / f"{name}.npy", allow_pickle=False) for name in ARRAYS
    )
    units = Units(rows.astype(np.int64), starts)
    of_texts = text_rows.astype(np.int64)
    words = without_purposes(model).embedding(STRATEGY)
    space = SentenceSpace(np.asarray(words.vectors), token_weights(words.counts), component)
    if (
        len(table) != card.sentences
        or vectors.shape != (card.sentences, space.dimensions)
        or len(units) != card.sentences
    ):
        raise _edited(folder / CARD)
    if model.purposes:
        space = _with_purposes(space, model, units)
        vectors = space.embed(units)
    texts = Strings(table.column("text").combine_chunks().cast(pa.large_string()))
    n_words = table.column("n_words").to_numpy().astype(np.int64)
    return SentenceBank(
        folder=folder,
        card=card,
        sha256=sha256(folder / CARD),
        texts=texts,
        n_words=n_words,
        space=space,
        vectors=vectors,
        units=units,
        public=CutTexts(Units(of_texts, text_starts), Units(of_texts, text_sentences)),
    )


def _check_model(folder: Path, card: BankCard, model: Model) -> None:
    base = without_purposes(model)
    if card.model_sha256 != base.reference(STRATEGY).sha256:
        raise RequestError(
            f"{folder}: the bank was built with model {card.model} "
            f"({card.model_sha256[:12]}), but model {base.name} "
            f"({base.reference(STRATEGY).sha256[:12]}) has other vectors; name the first "
            "model by --model, or build a bank with the second: lexveil sentences build "
            f"--model {base.name}"
        )


def _with_purposes(space: SentenceSpace, model: Model, units: Units) -> SentenceSpace:
    for purpose in model.purposes:
        if purpose.weight > LARGEST_WEIGHT:
            raise RequestError(
                f"purpose {purpose}: the weight of a purpose over sentences is at most "
                f"{LARGEST_WEIGHT:g}; write {purpose.name}={LARGEST_WEIGHT:g} or less"
            )
    tokens = without_purposes(model).embedding(STRATEGY).tokens
    try:
        return space.with_purposes(tokens, model.purposes, units)
    except ValueError as error:
        raise RequestError(
            f"purpose {error}: all sentences of the bank have the same score; remove the "
            "purpose, or build a bank of texts that have words of its scale"
        ) from None


def _edited(file: Path) -> RequestError:
    return RequestError(
        f"{file}: the hash of the file differs from the hash in the bank's card, so the "
        "file was edited or is not complete; build the bank again, by lexveil sentences "
        f"build ({option('bank')})"
    )
