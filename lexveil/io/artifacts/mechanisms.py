"""Building of a mechanism from params.yaml and the artifacts that it needs."""

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
    """A public causal language model by which a mechanism may weigh words.

    Attributes:
        language: language of the model.
        make: loads the model.
        weights: returns the file of its weights, whose hash is in records.
    """

    language: str
    make: Callable[[], PieceModel]
    weights: Callable[[], Path]


def _smollm2() -> Path:
    return Path(smollm2.SmolLm2.folder(CHOSEN_BY)) / smollm2.FILE


# Causal models by their name in the parameter.
CAUSAL_MODELS = {
    smollm2.SmolLm2.name: CausalModel(
        smollm2.SmolLm2.language, partial(smollm2.SmolLm2, CHOSEN_BY), _smollm2
    )
}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A mechanism over the words that it may replace and put out.

    Attributes:
        parameters: parameters of this mechanism, for the record.
        files: files besides the embedding from which it was made, by name.
        key: cache key of the near-word lists that it uses and that no project has; None if it needs
            none.
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
        """Existing near-word lists of the mechanism; None if the mechanism uses no lists."""
        return None if self.mechanism.near is None else self.mechanism.near.table

    def open_near_lists(self) -> NearTable | None:
        """Return the near-word lists that exist for the mechanism's vectors, whether or not the
        mechanism draws by the lists; None if there are no lists.
        """
        if self.mechanism.near is not None:
            return self.mechanism.near.table
        return _near_lists(self.near_folder, key_of(self.vocabulary.vectors))

    def fresh(self) -> Prepared:
        """Return the same mechanism for other texts, with its cached results; see
        ``Mechanism.fresh``.
        """
        return replace(self, mechanism=self.mechanism.fresh())

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Return a result that depends on the mechanism alone and on no text, computing it at the
        first call.
        """
        if name not in self._kept:
            self._kept[name] = make()
        return cast(T, self._kept[name])

    def keep_lists(
        self, epsilon: float, n_tokens: int | None = None, *, waits: bool = False
    ) -> bool:
        """Compute the near-word lists whose cost pays off in a text of ``n_tokens`` tokens, and
        store the lists in the user's cache.

        By Zipf's law the word at rank r occurs about n / (r ln V) times among n tokens; a list pays
        off if its word is expected to occur at least once. A short text therefore needs no lists in
        advance. Lists change no result.

        Args:
            epsilon: epsilon of a token; the mechanism needs no lists at some epsilons.
            n_tokens: number of tokens of the text; None computes the lists of all words.
            waits: whether to wait for another process that computes the same lists; otherwise this
                one continues without them.

        Returns:
            Whether there may be more lists now.
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
        LOG.info(f"near words: lists of {n_words - n_there:,} words, made once, into {folder}")
        progress = Progress("near words", n_words - n_there, "lists")
        try:
            add_lists(
                folder, near.vectors, self.key, n_words, on_step=progress.advance, waits=waits
            )
        except OSError as error:
            why = f"{folder} cannot be written ({error.strerror})"
            LOG.warning(f"near words: {why}; made for this run alone")
        near.table = open_lists(folder, self.key) or near.table
        return True

    def hashes(self) -> dict[str, str]:
        """Return the sha256 of its files by name. They are computed once, because the files may be
        replaced while a service has their content in memory.
        """
        return dict(
            self.once("hashes", lambda: {name: sha256(file) for name, file in self.files.items()})
        )

    def base_measure(self) -> dict[str, str]:
        """Return the language model that weighs its words, with the sha256 of the weights, for the
        ledger; empty if there is none.
        """
        if not self.mechanism.reads_texts:
            return {}
        return {
            "base_measure": " ".join(f"{name} {digest}" for name, digest in self.hashes().items())
        }


class ModelSpace(Space):
    """The words of an embedding that a mechanism may replace and put out. What the mechanism asks
    for is loaded then, and its files are noted for the record.

    Attributes:
        vocabulary: the words; of a mechanism on lists those of its list set.
        files: files besides the embedding that were asked for, by name.
        key: cache key of lists of near words that were asked for and that no project has; None if
            there is no need of any.
        near_folder: folder of the project with lists of near words; None outside of projects.
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
        """Return the vectors of the words.

        Raises:
            RequestError: if no word is left.
        """
        self._require_words()
        return self.vocabulary.vectors

    def _require_words(self) -> None:
        if not len(self.vocabulary.rows):
            where = self._source.place(self._segmentation)
            raise RequestError(f"{where} holds no word to replace words by; enlarge the corpus")

    def orders(self, lists: str) -> Orders:
        """Return the word orders of a list set; from now on the vocabulary has its words alone.

        Raises:
            MissingArtifactError: if the list set was not made.
            RequestError: if the model has purposes: the order of the words has no axes.
        """
        if self._purposes:
            raise RequestError(
                f"{option('mechanism')}: the mechanism works on a list of the words, "
                f"whose order no purpose changes; take {option('mechanism')} tem, or leave the "
                "purpose out"
            )
        listed, self.files = self._source.word_lists(self._segmentation, lists)
        self.vocabulary, orders = over_lists(listed, self._space, self.vocabulary)
        self._require_words()
        return orders

    def near(self) -> NearTable | None:
        """Return the existing lists of near words."""
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
        """Return the causal language model of the tokens."""
        if self._causal is None:
            return None
        weights = self._causal.weights()
        self.files = {f"{model}/{weights.name}": weights}
        return CausalWords(self._causal.make, self._space.tokens, self.vocabulary.rows)


def prepare(name: str, space: ModelSpace, params: MechanismParams) -> Prepared:
    """Build the mechanism ``name`` over the words of an embedding, or over those of its list set.

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
    """Open the near-word lists of a project, or the near-word lists in the user's cache if the
    project has none.
    """
    return (of_project and open_lists(of_project, key)) or open_lists(cache_folder(key), key)


def _bigrams(segmentation: str, source: ModelSource) -> tuple[Bigrams, dict[str, Path]]:
    """Load the bigram counts of an embedding, and return them with their files."""
    if (counted := source.bigrams(segmentation)) is None:
        raise RequestError(
            f"model {source.name} has no counts of pairs of words, which tem_context needs to "
            f"weigh words; take {option('mechanism')} tem, or a model with such counts, like en"
        )
    return counted, source.bigram_files(segmentation)


def over_lists(
    lists: WordLists, space: WordSpace, vocabulary: Vocabulary
) -> tuple[Vocabulary, Orders]:
    """Restrict a vocabulary to the words of a list set, and return it with the orders of the set
    over its numbers.

    A word that is not in every list would make the choice of a list depend on the word, so it
    counts as out of vocabulary.
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
