"""Construction of a mechanism from params.yaml and from the artifacts that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from lexveil.base.errors import RequestError, option
from lexveil.base.logs import logger
from lexveil.base.runtime.hashes import sha256
from lexveil.base.types import Ids, ModelRows, Orders, Vectors, WordNumbers
from lexveil.core.accounting.budgets import Policy
from lexveil.core.accounting.vocabulary import Vocabulary
from lexveil.core.embeddings.bigrams import Bigrams
from lexveil.core.embeddings.neighborhoods import NearTable
from lexveil.core.embeddings.purposes import Purpose
from lexveil.core.embeddings.word_orders import WordLists
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.core.language_models import smollm2
from lexveil.core.mechanisms.base import Space
from lexveil.core.mechanisms.causal_measure import CausalWords
from lexveil.core.mechanisms.registry import Mechanism, build_mechanism
from lexveil.core.text.piece_models import PieceModel
from lexveil.io.artifacts.model_source import ModelSource
from lexveil.io.artifacts.neighborhoods import (
    LISTS_AT_A_TIME,
    MappedTable,
    add_lists,
    cache_folder,
    key_of,
    open_lists,
)
from lexveil.io.config import MechanismParams
from lexveil.io.execution.stage import Progress

LOG = logger(__name__)

T = TypeVar("T")

CHOSEN_BY = "mechanisms.tem_context.model"


@dataclass(frozen=True, slots=True)
class CausalModel:
    """Reference to a public causal language model that a mechanism uses to weight output words.

    Attributes:
        language: language of the model.
        make: function that loads the model.
        weights: function that returns the file of the model's weights. Records state the hash of
            that file.
    """

    language: str
    make: Callable[[], PieceModel]
    weights: Callable[[], Path]


def _smollm2() -> Path:
    return Path(smollm2.SmolLm2.folder(CHOSEN_BY)) / smollm2.FILE


# Causal models, by the value of the parameter that chooses one.
CAUSAL_MODELS = {
    smollm2.SmolLm2.name: CausalModel(
        smollm2.SmolLm2.language, partial(smollm2.SmolLm2, CHOSEN_BY), _smollm2
    )
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A mechanism that is ready for use, with the words that it may replace and write.

    Attributes:
        parameters: parameters of the mechanism, for the privacy record.
        files: files from which the mechanism was made, by name, without the files of the embedding.
        key: cache key of the near-word lists that the mechanism uses. The key is None if the
            mechanism uses no lists, or if the project has the lists.
        near_folder: folder of the project with near-word lists of its embedding; None outside of
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
        """The near-word lists (nearest words of each word) of the mechanism, if they exist. The
        result is None if the mechanism uses no lists.
        """
        return None if self.mechanism.near is None else self.mechanism.near.table

    def open_near_lists(self) -> NearTable | None:
        """Return the existing near-word lists for the mechanism's vectors, even if the mechanism
        does not draw from lists. The result is None if no lists exist.
        """
        if self.mechanism.near is not None:
            return self.mechanism.near.table
        return _near_lists(self.near_folder, key_of(self.vocabulary.vectors))

    def fresh(self) -> Prepared:
        """Return a copy of this object for other texts, with the cached results of the mechanism;
        see ``Mechanism.fresh``.
        """
        return replace(self, mechanism=self.mechanism.fresh())

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Return the result of ``make``, which depends on the mechanism alone and on no text. The
        result is computed at the first call for a name.
        """
        if name not in self._kept:
            self._kept[name] = make()
        return cast(T, self._kept[name])

    def keep_lists(
        self, epsilon: float, n_tokens: int | None = None, *, waits: bool = False
    ) -> bool:
        """Compute near-word lists (nearest words of each word) that save time in a text of
        ``n_tokens`` tokens, and store them in the user's cache.

        By Zipf's law the word at rank r occurs about n / (r ln V) times among n tokens. Computing a
        word's list saves time if the word is expected to occur at least once. A short text
        therefore needs no lists in advance. Lists change no result.

        Args:
            epsilon: epsilon of a token; the mechanism needs no lists at some epsilons.
            n_tokens: number of tokens of the text; None computes the lists of all words.
            waits: whether to wait for another process that computes the same lists. Otherwise this
                process continues without the lists.

        Returns:
            Whether the cache may have new lists.
        """
        near = self.mechanism.near
        if self.key is None or near is None or not self.mechanism.needs_lists(epsilon):
            return False
        n_words = self.mechanism.size
        if n_tokens is not None:
            n_words = min(
                n_words,
                int(n_tokens / np.log(max(n_words, 3))) // LISTS_AT_A_TIME * LISTS_AT_A_TIME,
            )
        n_there = len(near.table)
        if n_words <= n_there:
            return False
        folder = cache_folder(self.key)
        LOG.info(f"near words: computing lists of {n_words - n_there:,} words once, into {folder}")
        progress = Progress("near words", n_words - n_there, "lists")
        try:
            add_lists(
                folder, near.vectors, self.key, n_words, on_step=progress.advance, waits=waits
            )
        except OSError as error:
            why = f"{folder} cannot be written ({error.strerror})"
            LOG.warning(f"near words: {why}; the lists are computed for this run alone")
        near.table = open_lists(folder, self.key) or near.table
        return True

    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of the mechanism's files by name. The hashes are computed once,
        because the files may be replaced while a service has their content in memory.
        """
        return dict(
            self.once("hashes", lambda: {name: sha256(file) for name, file in self.files.items()})
        )

    def base_measure(self) -> dict[str, str]:
        """Return the name of the language model that weights the mechanism's output words, with the
        SHA-256 of its weights, for the ledger. The result is empty if there is no language model.
        """
        if not self.mechanism.reads_texts:
            return {}
        return {
            "base_measure": " ".join(f"{name} {digest}" for name, digest in self.hashes().items())
        }


class ModelSpace(Space):
    """The words of an embedding that a mechanism may replace and write. Vectors, counts and other
    parts are loaded when the mechanism asks for them, and their files are noted for the privacy
    record.

    Attributes:
        vocabulary: the words. For a mechanism on word lists, these are the words of its list set.
        files: loaded files by name, without the files of the embedding.
        key: cache key of the near-word lists that the mechanism asked for. The key is None if the
            mechanism asked for no lists, or if the project has the lists.
        near_folder: folder of the project with near-word lists; None outside of projects.
    """

    def __init__(
        self,
        segmentation: str,
        space: WordSpace,
        policy: Policy,
        source: ModelSource,
        causal: CausalModel | None = None,
        purposes: Sequence[Purpose] = (),
    ) -> None:
        self._segmentation = segmentation
        self._space = space
        self._source = source
        self._causal = causal
        self._purposes = purposes
        self.vocabulary = Vocabulary.of(space.tokens, space.vectors, policy)
        self.files: dict[str, Path] = {}
        self.key: str | None = None
        self.near_folder = source.near_folder(segmentation)

    def vectors(self) -> Vectors:
        """Return the vectors of the words that the mechanism may replace and write.

        Raises:
            RequestError: if there is no such word.
        """
        self._require_words()
        return self.vocabulary.vectors

    def _require_words(self) -> None:
        if not len(self.vocabulary.rows):
            where = self._source.place(self._segmentation)
            raise RequestError(
                f"{where} has no word that may replace other words; enlarge the corpus"
            )

    def orders(self, lists: str) -> Orders:
        """Return the word orders of a set of word lists, and restrict the vocabulary to the words
        of the set.

        Raises:
            MissingArtifactError: if the list set was not made.
            RequestError: if the model has purposes, because word orders have no axes for purposes.
        """
        if self._purposes:
            raise RequestError(
                f"{option('mechanism')}: the mechanism works on an order of the words, "
                f"which no purpose changes; take {option('mechanism')} tem, or remove the "
                "purpose"
            )
        listed, self.files = self._source.word_lists(self._segmentation, lists)
        self.vocabulary, orders = over_lists(listed, self._space, self.vocabulary)
        self._require_words()
        return orders

    def near(self) -> NearTable | None:
        """Return the existing near-word lists (nearest words of each word). The result is None if
        there are none.
        """
        key = key_of(self.vocabulary.vectors)
        near = _near_lists(self.near_folder, key)
        is_complete = near is not None and near.folder == self.near_folder
        self.key = None if is_complete else key
        return near

    def n_words(self) -> Ids:
        """Return the number of words in each token."""
        return self._space.n_words[self.vocabulary.rows]

    def counts(self) -> Ids:
        """Return the occurrences of each token in the corpus."""
        return self._space.counts[self.vocabulary.rows]

    def bigrams(self) -> Bigrams:
        """Return the counts of adjacent tokens in the corpus."""
        bigrams, self.files = _bigrams(self._segmentation, self._source)
        return bigrams.onto(self.vocabulary.number)

    def causal(self, model: str) -> CausalWords | None:
        """Return the causal language model for the tokens. The result is None if there is no
        language model of this name.
        """
        if self._causal is None:
            return None
        weights = self._causal.weights()
        self.files = {f"{model}/{weights.name}": weights}
        return CausalWords(self._causal.make, self._space.tokens, self.vocabulary.rows)


def prepare(name: str, space: ModelSpace, params: MechanismParams) -> Prepared:
    """Build the mechanism ``name`` over the words of an embedding or of a set of word lists.

    Raises:
        RequestError: if no word is left.
        MissingArtifactError: if the list set was not made.
        ParameterError: if a parameter does not suit the mechanism or the words.
    """
    given = params.model_dump()
    shown = getattr(params, name).model_dump(by_alias=True)
    mechanism = build_mechanism(name, space, given)
    if mechanism.post_processing is not None:
        remap = given["rank_remap"]
        shown["rank_remap"] = {key: value for key, value in remap.items() if key != "enabled"}
    return Prepared(mechanism, space.vocabulary, shown, space.files, space.key, space.near_folder)


def _near_lists(of_project: Path | None, key: str) -> MappedTable | None:
    """Open the near-word lists of a project. If the project has no lists, open the lists in the
    user's cache.
    """
    return (of_project and open_lists(of_project, key)) or open_lists(cache_folder(key), key)


def _bigrams(segmentation: str, source: ModelSource) -> tuple[Bigrams, dict[str, Path]]:
    """Load the bigram counts of an embedding, and return them with their files by name.

    Raises:
        RequestError: if the model has no counts.
    """
    if (counted := source.bigrams(segmentation)) is None:
        raise RequestError(
            f"model {source.name} has no counts of word pairs, but tem_context weighs words "
            f"by such counts; take {option('mechanism')} tem, or a model with counts, such "
            "as en"
        )
    return counted, source.bigram_files(segmentation)


def over_lists(
    lists: WordLists, space: WordSpace, vocabulary: Vocabulary
) -> tuple[Vocabulary, Orders]:
    """Restrict a vocabulary to the words of a set of word lists. Return the restricted vocabulary,
    and the orders of the set in terms of its word numbers.

    A word that is missing from one of the lists would make the choice of a list depend on the word,
    so it counts as out of vocabulary.
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
    # ``only`` numbers the remaining words in the order of the lists, which differs from that of the
    # vocabulary.
    renumbered = np.empty(len(rows), dtype=np.int32)
    renumbered[np.argsort(np.argsort(in_lists[in_lists >= 0]))] = np.arange(
        len(rows), dtype=np.int32
    )
    orders = renumbered[lists.only(keep).orders]
    vectors = np.ascontiguousarray(space.vectors[rows])
    return Vocabulary(ModelRows(rows), WordNumbers(number), vectors), orders
