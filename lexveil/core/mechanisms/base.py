"""Base classes and protocols of mechanisms, and the table in which mechanisms register.

A mechanism is one file of this package. Its class states name, metric, unit, guarantee and
exactness, names the model of its parameters, and registers itself. ``build`` creates a mechanism:
it asks a ``Space`` for the data that the mechanism needs. ``replace_texts`` rewrites texts. Engine,
configuration, command line, records, report and generic tests use only these. The file of a
mechanism imports neither numba nor SciPy at the top: compiled code is in ``kernels`` and is loaded
on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from itertools import pairwise
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    NamedTuple,
    Self,
    TypeVar,
)

import numpy as np

from lexveil.base.errors import ParameterError
from lexveil.base.parameters import Section, validated
from lexveil.base.types import Flags, Floats, Ids, ModelRows, Noise, Orders, Vectors, WordNumbers
from lexveil.core.mechanisms.rejection import DRAWN, FOLLOWS

if TYPE_CHECKING:
    from lexveil.core.embeddings.bigrams import Bigrams
    from lexveil.core.embeddings.neighborhoods import NearTable, Neighborhoods
    from lexveil.core.mechanisms.causal_measure import CausalWords

P = TypeVar("P", bound=Section)
C = TypeVar("C", bound="type[Mechanism]")

# The noise of a text is drawn in blocks of this many tokens, so that memory does not grow with the
# text. Another value would change the outputs of every seed.
DRAW = 4096
# bytes of noise that are drawn before the search for words; the value changes no result
MOST_NOISE = 10_000_000

# In a release one generator for all texts. In an experiment a function that returns the generator
# of each text, so that batches change no result.
Generators = np.random.Generator | Callable[[int], np.random.Generator]


class PublicCounts(NamedTuple):
    """Public counts of the V words of a mechanism.

    Attributes:
        n_words: (V,) number of words in each token.
        counts: (V,) occurrences of each token.
        bigrams: counts of adjacent tokens; None if bigrams were not counted.
        causal: a language model of the tokens; None if no language model is used.
    """

    n_words: Ids
    counts: Ids
    bigrams: Bigrams | None = None
    causal: CausalWords | None = None


class Space:
    """Vocabulary of a mechanism, with public data about its words. ``Mechanism.build`` asks the
    space for the data that the mechanism needs.

    Args:
        vectors: (W, p) vectors of the words.
        orders: (n_lists, W) word orders: ``orders[l][i]`` is the word at index i of list l.
        near: precomputed lists of near words. A mechanism that needs longer lists computes them.
        public: public counts of the words; None if each token is one word and there are no counts.
    """

    def __init__(
        self,
        vectors: Vectors,
        orders: Sequence[Orders] | Orders | None = None,
        near: NearTable | None = None,
        public: PublicCounts | None = None,
    ) -> None:
        self._vectors = vectors
        self._orders = orders
        self._near = near
        self._public = public

    def vectors(self) -> Vectors:
        """Return the (W, p) word vectors."""
        return self._vectors

    def orders(self, lists: str) -> Sequence[Orders] | Orders:  # noqa: ARG002
        """Return the word orders of the list set named ``lists`` (orders of the words, each with
        similar words side by side). After this call, the space contains only the words of these
        orders.

        Raises:
            ParameterError: if the space has no word orders.
        """
        if self._orders is None:
            raise ParameterError("the mechanism needs word lists, but received none")
        return self._orders

    def near(self) -> NearTable | None:
        """Return the precomputed lists of the nearest words of each word; None if the space has no
        lists.
        """
        return self._near

    def n_words(self) -> Ids | None:
        """Return the (W,) number of words in each token; None if each token is one word."""
        return None if self._public is None else self._public.n_words

    def counts(self) -> Ids | None:
        """Return the (W,) public number of occurrences of each token; None if unknown."""
        return None if self._public is None else self._public.counts

    def bigrams(self) -> Bigrams | None:
        """Return the public counts of adjacent tokens; None if bigrams were not counted."""
        return None if self._public is None else self._public.bigrams

    def causal(self, model: str) -> CausalWords | None:  # noqa: ARG002
        """Return the causal language model named ``model``, prepared for the tokens; None if the
        space has no language model.
        """
        return None if self._public is None else self._public.causal


class TextTokens(NamedTuple):
    """The n tokens of some texts, in the order of writing. m of them are drawn; these are numbered
    from 0.

    Attributes:
        is_first: (n,) whether the token begins a text.
        kind: (n,) DRAWN, FOLLOWS, KEPT or SKIPPED, as ``rejection`` defines them.
        about: (n,) a number whose meaning depends on ``kind``. DRAWN: the number of the token among
            the drawn tokens. FOLLOWS: the position of the token whose output it copies. KEPT: the
            row of the token in the model of words, -1 if it has no row, or -2 - i if it has no row
            and is the i-th word of a separate list.
    """

    is_first: Flags
    kind: Ids
    about: Ids


class Mechanism:
    """Base class of mechanisms. A mechanism replaces token ids by randomly drawn token ids, and
    states its privacy guarantee.

    The randomness of one document is drawn first (``noise``), from that document's own generator.
    The rest (``replace``) is deterministic and may be done for many documents at once, in any
    batches, with the same result. ``replace_texts`` draws the noise and the replacements for the
    tokens of whole texts.

    Attributes:
        name: name in the registry.
        metric, unit: name and short symbol of the distance in the guarantee.
        guarantee: the proven statement, as a formula.
        exactness: how exactly the distribution is sampled; every record lists this as a condition
            of the guarantee.
        sampled: description of the draw for a token that is sampled, independent of its word.
        law: name of the output distribution's form. ``lexveil.readers.unigram`` chooses the
            adversary by this name. Empty if the distribution has no closed form for an adversary.
        reads_texts: whether a language model reads the text before each draw.
        has_few_sources: whether each output has only a few likely source words, so that an
            adversary can distinguish them by their context.
        may_lack_words: whether the mechanism may be built over only a part of the vocabulary.
        near: lists of near words that the mechanism uses; None if it uses none.
        stretch: largest ratio of the guarantee's distance to the Euclidean distance of vectors.
        searched: number of coordinates that the search for one replacement reads.
        no_guarantee: why the guarantee does not hold in this configuration; None if it holds.
        delta: probability that the privacy loss of a draw exceeds its bound.
        post_processing: later processing of the outputs, which does not use the input; None if
            there is none.
        size: W, the number of words.
        vectors: (W, p) vectors of the words; only mechanisms that use vectors have them.
    """

    name: str
    metric: str
    unit: str
    guarantee: str
    exactness: str = "continuous noise is drawn in float64, exact up to its rounding"
    sampled: str = "a uniform draw from the vocabulary"
    law: str = ""
    reads_texts: bool = False
    has_few_sources: bool = False
    may_lack_words: bool = False
    near: Neighborhoods | None = None
    stretch: float = 1.0
    searched: int = 0
    Parameters: ClassVar[type[Section]] = Section

    no_guarantee: str | None = None
    delta: float = 0.0
    post_processing: str | None = None
    size: int
    vectors: Vectors

    @classmethod
    def build(cls, space: Space, parameters: Mapping[str, Any]) -> Self:
        """Build the mechanism over the words of a space.

        Raises:
            ParameterError: if a parameter is unknown or out of range, or incompatible with the
                words.
        """
        # each class has its own parameters
        return cls(space.vectors(), **parameters)  # type: ignore[call-arg]

    def remapped(self, space: Space, parameters: Mapping[str, Any]) -> Mechanism:
        """Return this mechanism followed by ``rank_remap``, a post-processing, if this mechanism
        adds noise to a vector to choose its output. Return any other mechanism unchanged.
        """
        del space, parameters
        return self

    @classmethod
    def checked(cls, model: type[P], parameters: dict[str, object]) -> P:
        """Validate the parameters of a mechanism and return them as a model, with defaults for
        missing ones.

        Raises:
            ParameterError: if a parameter is unknown, mistyped or out of range.
        """
        return validated(model, parameters, named=lambda key: f"{cls.name}.{key}", by_name=True)

    def fresh(self) -> Self:
        """Return a copy of the mechanism for other texts, without the lists of near words that
        were computed for earlier texts.
        """
        mechanism = copy(self)
        for name, part in vars(self).items():
            if hasattr(part, "fresh"):
                setattr(mechanism, name, part.fresh())
        return mechanism

    def noise(self, epsilon: Floats, rng: np.random.Generator) -> Noise:
        """Draw the noise of n tokens, one row per token.

        Args:
            epsilon: (n,) epsilon of each token, in 1 / units of the metric.

        Raises:
            ParameterError: if an epsilon is not finite and greater than 0.
        """
        raise NotImplementedError

    def replace(self, ids: Ids, epsilon: Floats, noise: Noise) -> Ids:
        """Return the replacement of each of n token ids, shape (n,). ``epsilon`` must be the same
        array that ``noise`` received.
        """
        raise NotImplementedError

    def replace_after(
        self,
        ids: Ids,
        epsilon: Floats,
        noise: Noise,
        before: Ids | None,  # noqa: ARG002
    ) -> Ids:
        """Return the replacement of each of n token ids, given the token written before each.

        Args:
            before: (n,) embedding row of the token written before each. Most mechanisms ignore it.
        """
        return self.replace(ids, epsilon, noise)

    def replace_queries(self, queries: Vectors, of: Ids, epsilon: Floats, noise: Noise) -> Ids:
        """Return the replacement of each of n draws for query vectors, such as sentence vectors,
        which need not be vectors of words. A mechanism that draws no sentences does not implement
        this method.

        Args:
            queries: (q, p) query vectors.
            of: (n,) the query of each draw.
            epsilon, noise: the epsilon and the noise of each draw.
        """
        raise NotImplementedError

    def replace_texts(
        self,
        texts: TextTokens,
        ids: WordNumbers,
        epsilon: Floats,
        generators: Generators,
        written: ModelRows | None = None,
        words: Sequence[str] = (),
    ) -> WordNumbers:
        """Replace the tokens of whole texts by randomly drawn words.

        This implementation draws each token independently. A mechanism whose weights depend on the
        text before a token overrides this method and draws in the order of writing.

        Args:
            texts: n tokens, m of which are drawn.
            ids: (m,) the words of the drawn tokens; -1 for an unknown word, which is sampled.
            epsilon: (m,) epsilon of each drawn token; 0 for unknown words.
            generators: one generator for all texts, or a function that returns the generator of a
                text, given the number of the text from 0.
            written: (W,) for each word, the row of its written form among the tokens of a word
                model; None if each word is its own written form.
            words: list of words to which kept tokens without a row refer.

        Returns:
            (n,) the word drawn for each token; -1 for kept or skipped tokens.
        """
        del written, words
        drawn = np.full(len(ids), -1, dtype=np.int64)
        # tokens with drawn noise whose replacements are still to be searched
        waiting: list[tuple[Ids, Noise]] = []

        def search() -> None:
            if waiting:
                pending = np.concatenate([tokens for tokens, _ in waiting])
                noise = np.concatenate([of_tokens for _, of_tokens in waiting])
                drawn[pending] = self.replace(ids[pending], epsilon[pending], noise)
                waiting.clear()

        size = 0
        for start, stop, rng in by_generator(texts, generators):
            to_sample = start + np.flatnonzero(ids[start:stop] < 0)
            to_perturb = start + np.flatnonzero(ids[start:stop] >= 0)
            if len(to_sample):
                drawn[to_sample] = rng.integers(self.size, size=len(to_sample))
            for first in range(0, len(to_perturb), DRAW):
                drawn_for = to_perturb[first : first + DRAW]
                waiting.append((drawn_for, self.noise(epsilon[drawn_for], rng)))
                size += waiting[-1][1].nbytes
                if size >= MOST_NOISE:
                    search()
                    size = 0
        search()
        return spread(texts, drawn)

    def needs_lists(self, epsilon: float) -> bool:  # noqa: ARG002
        """Return whether most words need their lists of nearest words at this epsilon."""
        return False

    def distance(self, first: Ids, second: Ids) -> Floats:
        """Return the distance of the guarantee for n pairs of token ids, shape (n,)."""
        raise NotImplementedError

    def distances_of(self, ids: Ids) -> Floats:
        """Return approximate distances from n words to all W words, (n, W). They serve surveys and
        must not serve a guarantee.
        """
        every = np.arange(self.size)
        return np.array([self.distance(np.full(self.size, word), every) for word in ids.tolist()])

    @classmethod
    def has_closed_form(cls) -> bool:
        """Return whether the probabilities of the outputs have a closed form, which is so if the
        class has its own ``log_pmf``.
        """
        return cls.log_pmf is not Mechanism.log_pmf

    def log_pmf(self, ids: Ids, epsilon: Floats, before: int = -1) -> Floats:
        """Return log probabilities ln Pr[M(w) = u] for each of n ids and every word u, shape (n,
        W).

        Args:
            before: the word before each id; -1 if no word precedes the id. Most mechanisms ignore
                it.
        """
        raise NotImplementedError

    def log_pmf_of(self, queries: Vectors, epsilon: Floats) -> Floats:
        """Return log probabilities, shape (n, W), of every output for each of n query vectors; see
        ``replace_queries``.
        """
        raise NotImplementedError

    def privacy_loss(self, epsilon: Floats, distance: Floats) -> Floats:
        """Return the privacy map: an upper bound on the privacy loss |ln Pr[M(w)=y] - ln
        Pr[M(w')=y]| of each of n tokens, in nats, shape (n,).

        Each class must define this map itself, because the map holds for the code of that class
        only. A derived class without its own definition claims nothing.

        Args:
            epsilon: (n,) in 1 / units of the metric.
            distance: (n,) distance between w and w'.
        """
        raise NotImplementedError

    @property
    def is_proven(self) -> bool:
        """Whether the class itself defines ``privacy_loss``, and the bound holds for the configured
        parameters.
        """
        return self.no_guarantee is None and "privacy_loss" in type(self).__dict__


def by_generator(
    texts: TextTokens, generators: Generators
) -> Iterator[tuple[int, int, np.random.Generator]]:
    """Yield each random generator with the range of drawn tokens that use it (first token, and the
    token after the last), in the order of writing.
    """
    is_drawn = texts.kind == DRAWN
    n_drawn = int(is_drawn.sum())
    if isinstance(generators, np.random.Generator):
        yield 0, n_drawn, generators
        return
    text_of = np.cumsum(texts.is_first)[is_drawn] - 1
    starts = np.flatnonzero(np.diff(text_of, prepend=-1))
    bounds = pairwise([*starts.tolist(), n_drawn])
    for text, (start, stop) in zip(text_of[starts].tolist(), bounds, strict=True):
        yield start, stop, generators(text)


def spread(texts: TextTokens, drawn: Ids) -> WordNumbers:
    """Expand the drawn words from the drawn tokens to all n tokens: each drawn token has its own
    word, each token that copies a drawn token has the word of that token, and all other tokens have
    -1.
    """
    out = np.full(len(texts.kind), -1, dtype=np.int64)
    out[texts.kind == DRAWN] = drawn
    follows = texts.kind == FOLLOWS
    out[follows] = out[texts.about[follows]]
    return WordNumbers(out)


def check_epsilon(epsilon: Floats) -> None:
    """Raise ParameterError unless every epsilon is finite and greater than 0."""
    if not (np.isfinite(epsilon).all() and (epsilon > 0).all()):
        raise ParameterError("every epsilon of a perturbed token must be finite and greater than 0")


class EuclideanMechanism(Mechanism):
    """Base class of mechanisms over word vectors, with a guarantee in their Euclidean distance.

    Attributes:
        vectors: (V, p) vectors of the input and output words.
        search: exact search for the nearest words.
    """

    metric = "Euclidean distance of the embedding"
    unit = "embedding distance"
    guarantee = "Pr[M(w)=y] <= exp(ε·d(w,w'))·Pr[M(w')=y]"

    def __init__(self, vectors: Vectors) -> None:
        from lexveil.core.embeddings.exact_search import ExactSearch

        self.search = ExactSearch(vectors)
        self.vectors = self.search.vectors
        self.size = len(self.vectors)

    def distance(self, first: Ids, second: Ids) -> Floats:
        """Return the Euclidean distance for n pairs of token ids, shape (n,)."""
        from lexveil.core.embeddings.exact_search import pair_distances

        return pair_distances(self.vectors, first, second)

    def distances_of(self, ids: Ids) -> Floats:
        """Return approximate Euclidean distances, as in ``Mechanism``. The error is about 1e-3 of
        the length of the vectors, because float32 products cancel.
        """
        return product_distances(self.vectors[ids], self.vectors)


def product_distances(first: Vectors, second: Vectors) -> Floats:
    """Return the Euclidean distances of n vectors to m other vectors, (n, m), computed from float32
    products.
    """
    squares = [np.einsum("vp,vp->v", vectors, vectors) for vectors in (first, second)]
    squared = squares[0][:, None] + squares[1] - 2 * (first @ second.T)
    distances: Floats = np.sqrt(np.maximum(squared, 0), dtype=np.float64)
    return distances


REGISTERED: dict[str, type[Mechanism]] = {}


def register(mechanism: C) -> C:
    """Add a mechanism class to the registry, under the name of its module."""
    module = mechanism.__module__.rpartition(".")[2]
    if mechanism.name != module:
        raise ParameterError(
            f"mechanism {mechanism.name} is defined in {module}.py; its module must be named "
            f"{mechanism.name}.py"
        )
    REGISTERED[mechanism.name] = mechanism
    return mechanism
