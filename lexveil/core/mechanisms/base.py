"""Base classes and protocols of mechanisms, and the table in which mechanisms register.

A mechanism is one file of this package. Its class states name, metric, unit, guarantee and
exactness, names the model of its parameters, and registers itself. It is built by ``build``, which
asks a ``Space`` for what the mechanism needs, and rewrites texts by ``replace_texts``. Engine,
configuration, command line, records, report and generic tests derive from these. Its file imports
neither numba nor SciPy at the top: compiled code stands in ``kernels`` and is loaded on first use.
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
    Protocol,
    Self,
    TypeVar,
    runtime_checkable,
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

# A text's noise is drawn this many tokens at a time, which bounds memory for a text of any length.
# It is part of what a seed means: another value gives other experiments.
DRAW = 4096
MOST_NOISE = 10_000_000  # bytes of noise drawn before words are searched for; changes no result

# The generator of all texts, in a release; or a function that gives that of each text, in an
# experiment, so that batches change no result.
Generators = np.random.Generator | Callable[[int], np.random.Generator]


class PublicCounts(NamedTuple):
    """Public counts of the V words of a mechanism: their lengths in words, their frequencies, and
    their bigrams.

    Attributes:
        n_words: (V,) number of words in each token.
        counts: (V,) occurrences of each token.
        bigrams: counts of adjacent tokens; None where they were not counted.
        causal: a language model of the tokens; None where none is used.
    """

    n_words: Ids
    counts: Ids
    bigrams: Bigrams | None = None
    causal: CausalWords | None = None


@runtime_checkable
class ClosedForm(Protocol):
    """A mechanism whose distribution is known in closed form."""

    def log_pmf(self, ids: Ids, epsilon: Floats, before: int = -1) -> Floats:
        """Return log probabilities ln Pr[M(w) = u] for each of n ids and every word
        u, shape (n, W), after the word ``before``; -1 if no word is before it. Most mechanisms
        ignore it.
        """


class Space:
    """The words of a mechanism, with public data about the words. ``Mechanism.build`` asks the
    space for the data that the mechanism needs.

    Args:
        vectors: (W, p) vectors of the words.
        orders: (n_lists, W) word orders: ``orders[l][i]`` is the word at index i of list l.
        near: precomputed lists of near words; a mechanism that needs more computes them.
        public: public counts of the words; None if each token is one word and nothing is known of
            the words after it.
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
        """Return the (W, p) vectors of the words."""
        return self._vectors

    def orders(self, lists: str) -> Sequence[Orders] | Orders:  # noqa: ARG002
        """Return the word orders of a list set, by the name of the set; from now on the space has
        the words of the lists alone.

        Raises:
            ParameterError: if there are none.
        """
        if self._orders is None:
            raise ParameterError("the mechanism works on lists of the words, and none was given")
        return self._orders

    def near(self) -> NearTable | None:
        """Return the precomputed lists of near words; None if there are none."""
        return self._near

    def n_words(self) -> Ids | None:
        """Return the (W,) number of words in each token; None if each token is one word."""
        return None if self._public is None else self._public.n_words

    def counts(self) -> Ids | None:
        """Return the (W,) public number of occurrences of each token; None if unknown."""
        return None if self._public is None else self._public.counts

    def bigrams(self) -> Bigrams | None:
        """Return the public counts of adjacent tokens; None if they were not counted."""
        return None if self._public is None else self._public.bigrams

    def causal(self, model: str) -> CausalWords | None:  # noqa: ARG002
        """Return a causal language model of the tokens, by its name; None if there is none."""
        return None if self._public is None else self._public.causal


class TextTokens(NamedTuple):
    """n tokens of texts, in the order of writing. The m tokens whose replacements are drawn are
    numbered from 0.

    Attributes:
        is_first: (n,) whether the token begins a text.
        kind: (n,) DRAWN, FOLLOWS, KEPT or SKIPPED of ``rejection``.
        about: (n,) number of a drawn token among the drawn; place of the token that a following
            token copies; row of a kept token among the tokens that the model of words knows, -1 if
            it has none, or -2 - i if it has none and is the i-th of some words.
    """

    is_first: Flags
    kind: Ids
    about: Ids


class Mechanism:
    """Base class of mechanisms. A mechanism replaces token ids by token ids, and states its
    guarantee.

    The randomness of one document is drawn first (``noise``), from that document's own generator;
    the rest (``replace``) is deterministic and may be done for many documents at once, in any
    batches, with the same result. ``replace_texts`` does both for the tokens of whole texts.

    Attributes:
        name: name in the registry.
        metric, unit: the distance of the guarantee, in full and in short.
        guarantee: the proven statement, as a formula.
        exactness: how exactly the distribution is sampled: a condition of the guarantee in every
            record.
        sampled: description of the replacement of a sampled token.
        law: name of the form of its distribution, by which ``lexveil.readers.unigram`` chooses who
            reads its outputs; empty if there is no closed form to read by.
        reads_texts: whether a language model reads all of a text before each draw.
        has_few_sources: whether an output comes from a few words only, which a reader tells apart
            by their context.
        near: lists of near words that the mechanism draws by; None if it uses none.
        searched: how many coordinates are searched for the replacement of one token.
        no_guarantee: why the guarantee does not hold as configured; None where it does.
        delta: probability with which a draw may exceed its loss.
        post_processing: later processing of the outputs, which does not see the input; None if
            there is none.
        size: W, the number of words.
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
    near: Neighborhoods | None = None
    searched: int = 0
    Parameters: ClassVar[type[Section]] = Section

    no_guarantee: str | None = None
    delta: float = 0.0
    post_processing: str | None = None
    size: int

    @classmethod
    def build(cls, space: Space, parameters: Mapping[str, Any]) -> Self:
        """Build the mechanism over the words of a space.

        Raises:
            ParameterError: if a parameter is unknown or out of range, or does not suit the words.
        """
        return cls(space.vectors(), **parameters)  # type: ignore[call-arg]  # each takes its own

    def remapped(self, space: Space, parameters: Mapping[str, Any]) -> Mechanism:
        """Return the mechanism followed by ``rank_remap``, if the mechanism chooses its output by a
        noisy vector; return any other mechanism unchanged.
        """
        del space, parameters
        return self

    @classmethod
    def checked(cls, model: type[P], parameters: dict[str, object]) -> P:
        """Return the parameters as a validated model, with defaults for missing ones.

        Raises:
            ParameterError: if a parameter is unknown, mistyped or out of range.
        """
        return validated(model, parameters, named=lambda key: f"{cls.name}.{key}", by_name=True)

    def fresh(self) -> Self:
        """Return a copy for other texts, without the lists of near words that earlier
        texts caused.
        """
        mechanism = copy(self)
        for name, part in vars(self).items():
            if hasattr(part, "fresh"):
                setattr(mechanism, name, part.fresh())
        return mechanism

    def noise(self, epsilon: Floats, rng: np.random.Generator) -> Noise:
        """Draw the noise of n tokens with per-token ``epsilon`` (n,), in 1 / units of the metric;
        one row per token.

        Raises:
            ParameterError: if an epsilon is not finite and greater than 0.
        """
        raise NotImplementedError

    def replace(self, ids: Ids, epsilon: Floats, noise: Noise) -> Ids:
        """Return the replacement of each of n ids, shape (n,); ``epsilon`` must be that given to
        ``noise``.
        """
        raise NotImplementedError

    def replace_after(
        self,
        ids: Ids,
        epsilon: Floats,
        noise: Noise,
        before: Ids | None,  # noqa: ARG002
    ) -> Ids:
        """Return the replacement of each of n ids, given the token written before each: ``before``,
        (n,) rows of the embedding. Most mechanisms ignore it.
        """
        return self.replace(ids, epsilon, noise)

    def replace_texts(
        self,
        texts: TextTokens,
        ids: WordNumbers,
        epsilon: Floats,
        generators: Generators,
        written: ModelRows | None = None,
        words: Sequence[str] = (),
    ) -> WordNumbers:
        """Draw the tokens of texts.

        A mechanism that weighs replacements by the text before them draws in the order of writing;
        this one draws each token by itself.

        Args:
            texts: n tokens, m of which are drawn.
            ids: (m,) the words of the drawn tokens; -1 for an unknown word, which is sampled.
            epsilon: (m,) epsilon of each drawn token; 0 for unknown words.
            generators: the generator of all texts, or the generator of each text by its number,
                from 0.
            written: (W,) row of the written form of each word among the tokens of a model of
                words; None if each word is its own written form.
            words: the words to which kept tokens without a row point.

        Returns:
            (n,) the word drawn for each token; -1 for kept or skipped tokens.
        """
        del written, words
        drawn = np.full(len(ids), -1, dtype=np.int64)
        # tokens whose noise is drawn and whose replacement is not yet searched
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
        """Whether most words need their lists of near words at this epsilon."""
        return False

    def distance(self, first: Ids, second: Ids) -> Floats:
        """Return the guarantee's distance for n pairs of ids, shape (n,)."""
        raise NotImplementedError

    def distances_of(self, ids: Ids) -> Floats:
        """Return approximate distances of n words to all W words, (n, W): for surveys, never for a
        guarantee.
        """
        every = np.arange(self.size)
        return np.array([self.distance(np.full(self.size, word), every) for word in ids.tolist()])

    def privacy_loss(self, epsilon: Floats, distance: Floats) -> Floats:
        """Return the privacy map: an upper bound on |ln Pr[M(w)=y] - ln Pr[M(w')=y]| for n tokens,
        in nats, shape (n,).

        A class declares the map for its own code: a derived class without its own declaration
        claims nothing.

        Args:
            epsilon: (n,) in 1 / units of the metric.
            distance: (n,) distance between w and w'.
        """
        raise NotImplementedError

    @property
    def is_proven(self) -> bool:
        """Whether the class itself declares ``privacy_loss``, and the declared bound holds for the
        configured parameters.
        """
        return self.no_guarantee is None and "privacy_loss" in type(self).__dict__


def by_generator(
    texts: TextTokens, generators: Generators
) -> Iterator[tuple[int, int, np.random.Generator]]:
    """Yield the first of the drawn tokens that draw from each generator, and that after the last,
    in order of writing.
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
    """Return (n,) the drawn words: each drawn token has its own word, each token that follows a
    drawn token has the word of that token, and all others have -1.
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
    """Mechanism over word vectors, whose guarantee is in their Euclidean distance.

    Attributes:
        vectors: (V, p) vectors of the words that may go in and come out.
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
        """Return the distance d for n pairs of ids, shape (n,)."""
        from lexveil.core.embeddings.exact_search import pair_distances

        return pair_distances(self.vectors, first, second)

    def distances_of(self, ids: Ids) -> Floats:
        """Return approximate distances, see ``Mechanism``; the error is about 1e-3 of the length of
        the vectors, as float32 products cancel.
        """
        return product_distances(self.vectors[ids], self.vectors)


def product_distances(first: Vectors, second: Vectors) -> Floats:
    """Return Euclidean distances of n vectors to m others by float32 products, (n, m)."""
    squares = [np.einsum("vp,vp->v", vectors, vectors) for vectors in (first, second)]
    squared = squares[0][:, None] + squares[1] - 2 * (first @ second.T)
    distances: Floats = np.sqrt(np.maximum(squared, 0), dtype=np.float64)
    return distances


REGISTERED: dict[str, type[Mechanism]] = {}


def register(mechanism: C) -> C:
    """Enter a mechanism into the registry, under the name of its module."""
    module = mechanism.__module__.rpartition(".")[2]
    if mechanism.name != module:
        raise ParameterError(
            f"mechanism {mechanism.name} is defined in {module}.py; its module must be named "
            f"{mechanism.name}.py"
        )
    REGISTERED[mechanism.name] = mechanism
    return mechanism
