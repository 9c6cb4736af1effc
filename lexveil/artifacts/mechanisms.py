"""Build a mechanism from params.yaml and the artifacts it needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from lexveil import paths
from lexveil.accounting.budgets import Policy
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.artifacts.bigrams import FILES, load_bigrams
from lexveil.artifacts.neighborhoods import (
    BLOCK,
    MappedTable,
    add_lists,
    cache_folder,
    key_of,
    open_lists,
)
from lexveil.artifacts.packaged_model import BIGRAMS, PackagedModel
from lexveil.artifacts.word_orders import load_word_orders
from lexveil.config import MechanismParams
from lexveil.embeddings.bigrams import Bigrams
from lexveil.embeddings.neighborhoods import NearTable
from lexveil.embeddings.word_orders import WordLists
from lexveil.embeddings.word_space import WordSpace
from lexveil.errors import RequestError, option
from lexveil.evaluation import smollm2
from lexveil.mechanisms.base import OnNeighbors, PublicCounts
from lexveil.mechanisms.causal_measure import CausalMeasure, CausalWords
from lexveil.mechanisms.registry import MECHANISMS, Mechanism, build_mechanism
from lexveil.runtime.hashes import sha256
from lexveil.runtime.stage import Progress
from lexveil.text.piece_models import PieceModel
from lexveil.types import Orders

T = TypeVar("T")

CHOSEN_BY = "mechanisms.tem_context.model"


@dataclass(frozen=True, slots=True)
class CausalModel:
    """A public causal language model by which a mechanism may weigh words.

    Attributes:
        language: whose words it knows.
        make: loads it.
        weights: returns its file, whose hash is in records.
    """

    language: str
    make: Callable[[], PieceModel]
    weights: Callable[[], Path]


def _smollm2() -> Path:
    return Path(smollm2.SmolLm2.folder(CHOSEN_BY)) / smollm2.FILE


# By the name that the parameter gives them.
CAUSAL_MODELS = {
    smollm2.SmolLm2.name: CausalModel(
        smollm2.SmolLm2.language, partial(smollm2.SmolLm2, CHOSEN_BY), _smollm2
    )
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A mechanism over the words it may take and give.

    Attributes:
        parameters: of this mechanism, for the record.
        files: what it was made from beside the embedding, by name.
        key: of the lists of near words that it uses and no project has; None if there are none to
            make.
        near_folder: where the project has lists of near words of its embedding; None outside of
            projects.
    """

    mechanism: Mechanism
    vocabulary: Vocabulary
    parameters: Mapping[str, Any]
    files: dict[str, Path]
    key: str | None = None
    near_folder: Path | None = None
    _kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def lists(self) -> NearTable | None:
        """The lists of near words that there are; None if it uses none."""
        return self.mechanism.near.table if isinstance(self.mechanism, OnNeighbors) else None

    def open_near_lists(self) -> NearTable | None:
        """The lists of near words that there are of its vectors, whether it draws by them or not;
        None if none.
        """
        if isinstance(self.mechanism, OnNeighbors):
            return self.mechanism.near.table
        return _near_lists(self.near_folder, key_of(self.vocabulary.vectors))

    def fresh(self) -> Prepared:
        """The same for other texts, with what is kept of it; see ``Mechanism.fresh``."""
        return replace(self, mechanism=self.mechanism.fresh())

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What follows from it alone and from no text, made when it is first asked for."""
        if name not in self._kept:
            self._kept[name] = make()
        return cast(T, self._kept[name])

    def keep_lists(
        self, epsilon: float, n_tokens: int | None = None, *, waits: bool = False
    ) -> bool:
        """Make the lists of near words that pay in a text of so many tokens, and keep them in the
        user's cache.

        By Zipf's law the word at rank r is about n / (r ln V) of n tokens; a list pays if its word
        is one of them. So a short text makes none in advance. Lists change no result.

        Args:
            n_tokens: None makes the lists of all words.
            waits: for another process that is at it; else this one goes on without what that one
                makes.

        Returns:
            Whether there may be more of them now.
        """
        mechanism = self.mechanism
        if (
            self.key is None
            or not isinstance(mechanism, OnNeighbors)
            or not mechanism.needs_lists(epsilon)
        ):
            return False
        n_words = mechanism.size
        if n_tokens is not None:
            n_words = min(n_words, int(n_tokens / np.log(max(n_words, 3))) // BLOCK * BLOCK)
        n_there = len(mechanism.near.table)
        if n_words <= n_there:
            return False
        folder = cache_folder(self.key)
        print(
            f"near words: lists of {n_words - n_there:,} words, made once, into {folder}",
            file=sys.stderr,
        )
        progress = Progress("near words", n_words - n_there, "lists", stream=sys.stderr)
        try:
            add_lists(
                folder, mechanism.vectors, self.key, n_words, on_step=progress.advance, waits=waits
            )
        except OSError as error:
            why = f"{folder} cannot be written ({error.strerror})"
            print(f"near words: {why}; made for this run alone", file=sys.stderr)
        mechanism.near.table = open_lists(folder, self.key) or mechanism.near.table
        return True

    def hashes(self) -> dict[str, str]:
        """The sha256 of its files, by name, computed once: they may be replaced while a service has
        what they held.
        """
        return dict(
            self.once("hashes", lambda: {name: sha256(file) for name, file in self.files.items()})
        )

    def base_measure(self) -> dict[str, str]:
        """The language model that weighs its words, with the sha256 of the weights, for the ledger;
        or nothing.
        """
        if not isinstance(getattr(self.mechanism, "mass", None), CausalMeasure):
            return {}
        return {
            "base_measure": " ".join(f"{name} {digest}" for name, digest in self.hashes().items())
        }


def prepare(
    name: str,
    segmentation: str,
    space: WordSpace,
    policy: Policy,
    params: MechanismParams,
    source: Path | PackagedModel = Path(),
    causal: CausalModel | None = None,
) -> Prepared:
    """Build mechanism ``name`` over the words of an embedding, or over those of its list set.

    Args:
        source: the project, or the model, that the embedding is of.
        causal: the language model that the mechanism weighs words by, if it does.

    Raises:
        RequestError: if no word is left.
        MissingArtifact: if the list set was not made.
        ParameterError: if a parameter does not suit the mechanism or the words.
    """
    given = params.model_dump()
    own = dict(given[name])
    shown = getattr(params, name).model_dump(by_alias=True)
    vocabulary, orders = Vocabulary.of(space.tokens, space.vectors, policy), None
    files: dict[str, Path] = {}
    if MECHANISMS[name].on_lists:
        chosen = own.pop("lists")
        lists, files = _lists(segmentation, chosen, source)
        vocabulary, orders = over_lists(lists, space, vocabulary)
    remapped = given["rank_remap"]["enabled"] and MECHANISMS[name].rank_remap
    if remapped:
        shown["rank_remap"] = {
            key: value for key, value in given["rank_remap"].items() if key != "enabled"
        }
    if not len(vocabulary.rows):
        where = (
            source.folder
            if isinstance(source, PackagedModel)
            else source / paths.embedding(segmentation)
        )
        raise RequestError(f"{where} holds no word to replace words by; enlarge the corpus")
    near_folder = source / paths.near_lists(segmentation) if isinstance(source, Path) else None
    if not (MECHANISMS[name].on_neighbors or remapped):
        mechanism = build_mechanism(name, vocabulary.vectors, given | {name: own}, orders)
        return Prepared(mechanism, vocabulary, shown, files, near_folder=near_folder)
    near = _near_lists(near_folder, key := key_of(vocabulary.vectors))
    public = PublicCounts(space.n_words[vocabulary.rows], space.counts[vocabulary.rows])
    if causal is not None:
        weights = causal.weights()
        files = {f"{own['model']}/{weights.name}": weights}
        public = public._replace(causal=CausalWords(causal.make, space.tokens, vocabulary.rows))
    elif MECHANISMS[name].in_context:
        bigrams, files = _bigrams(segmentation, source)
        public = public._replace(bigrams=bigrams.onto(vocabulary.number))
    mechanism = build_mechanism(
        name, vocabulary.vectors, given | {name: own}, near=near, public=public
    )
    is_complete = near is not None and near.folder == near_folder
    return Prepared(mechanism, vocabulary, shown, files, None if is_complete else key, near_folder)


def _near_lists(of_project: Path | None, key: str) -> MappedTable | None:
    """The lists of near words of a project, else those of the user's cache."""
    return (of_project and open_lists(of_project, key)) or open_lists(cache_folder(key), key)


def bigram_files(segmentation: str, source: Path | PackagedModel) -> dict[str, Path]:
    """The files of the bigram counts of an embedding, by the names that a record gives them; none
    if there are none.
    """
    if isinstance(source, PackagedModel):
        files = source.files(*(f"{BIGRAMS}/{name}" for name in FILES))
    else:
        folder = paths.bigrams(segmentation)
        files = {f"bigrams/{segmentation}/{name}": source / folder / name for name in FILES}
    return files if all(file.exists() for file in files.values()) else {}


def _bigrams(segmentation: str, source: Path | PackagedModel) -> tuple[Bigrams, dict[str, Path]]:
    """The bigram counts of an embedding, and their files."""
    if not isinstance(source, PackagedModel):
        return load_bigrams(segmentation, source), bigram_files(segmentation, source)
    if (counted := source.bigrams(segmentation)) is None:
        raise RequestError(
            f"model {source.card.name} has no counts of which words follow each other, by "
            "which tem_context weighs "
            f"them; take {option('mechanism')} tem, or a model that has them, such as en"
        )
    return counted, bigram_files(segmentation, source)


def _lists(
    segmentation: str, name: str, source: Path | PackagedModel
) -> tuple[WordLists, dict[str, Path]]:
    """A list set, and its files by the names that a record gives them."""
    if isinstance(source, PackagedModel):
        return source.word_lists(segmentation, name), source.files(source.order_file(segmentation))
    folder = paths.word_orders(segmentation, name)
    files = {
        f"word_orders/{segmentation}/{name}/{file}": source / folder / file
        for file in ("words.txt", "orders.npy")
    }
    return load_word_orders(segmentation, name, source), files


def over_lists(
    lists: WordLists, space: WordSpace, vocabulary: Vocabulary
) -> tuple[Vocabulary, Orders]:
    """The part of a vocabulary that a list set knows, and the set's orders over its numbers.

    A word that is not in every list would make the choice of a list depend on the word, so it is
    out of vocabulary.
    """
    place = {token: number for number, token in enumerate(lists.words)}
    in_lists = np.array(
        [place.get(space.tokens[row], -1) for row in vocabulary.rows.tolist()], dtype=np.int64
    )
    rows = vocabulary.rows[in_lists >= 0]
    number = np.full(len(vocabulary.number), -1, dtype=np.int64)
    number[rows] = np.arange(len(rows))
    keep = np.zeros(len(lists.words), dtype=np.bool_)
    keep[in_lists[in_lists >= 0]] = True
    # ``only`` numbers what is left in the order of the lists' words; the vocabulary has an order of
    # its own.
    renumbered = np.empty(len(rows), dtype=np.int32)
    renumbered[np.argsort(np.argsort(in_lists[in_lists >= 0]))] = np.arange(
        len(rows), dtype=np.int32
    )
    orders = renumbered[lists.only(keep).orders]
    return Vocabulary(rows, number, np.ascontiguousarray(space.vectors[rows])), orders
