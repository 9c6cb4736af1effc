"""Toy vocabularies: invented vectors, lists and counts of words, on which a mechanism is audited
alone.

One vocabulary is a plane with a far word, in which vectors have a preferred direction. One is a
line. One has so many words that truncation and lists matter. Toy vocabularies are not projects: no
files are written, and there are no texts, budgets or ledgers. A toy project (``toy_project``) has
the words of the plane in its files, for faults that only a whole release shows. Both are necessary.
For example, only the toy vocabularies reveal with few samples that a covariance is computed from a
batch, and only releases have budgets, charges and written texts.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lexveil.auditing.distributions import AuditedSpace, Claim
from lexveil.base.types import Flags, Floats, Ids
from lexveil.core.embeddings.bigrams import Bigrams
from lexveil.core.mechanisms.base import PublicCounts
from lexveil.core.mechanisms.causal_measure import CausalWords

STEP = 0.5  # smallest distance of toy words, in units of 1/ε
# number and size of the groups of words in the large toy
GROUPS = 40
MEMBERS = 60
FOLLOWING = (0, 1, 2, 5)  # differences between a toy word's number and those of its followers
PIECES = 16  # number of pieces of the toys' language model; the last piece begins a text
# words of 3 to 24 letters that are in no vocabulary
UNKNOWN = (
    "vix",
    "zorblax",
    "quuxly",
    "glimtrops",
    "brindlewokken",
    "snarfblatterquistling",
    "wolframgestrickelzwirbel",
)
# words after which the invented language model has the same probabilities as at the beginning
UNLISTED = (".", "and", *UNKNOWN)
SYLLABLES = [consonant + vowel for consonant in "bdfgklmrvz" for vowel in "aeiou"]
GOLDEN = 2.399963  # the golden angle spreads words in a plane
FAR = 60.0  # distance of a far word in units of 1/ε, beyond TEM's γ (30 units for the large toy)


@dataclass(frozen=True, slots=True)
class Toy:
    """A toy vocabulary, and the words for which outputs are drawn.

    Attributes:
        contexts: if the output depends on the output token before it, the values of that token: -1
            for none, and one token.
        losses: whether the audit computes bounds on the privacy loss, which requires few words.
    """

    name: str
    space: AuditedSpace
    words: Ids
    losses: bool
    contexts: tuple[int, ...] = (-1,)

    def stretched(self, factor: float) -> Toy:
        """Return a copy of the toy whose distances are all multiplied by ``factor``."""
        return replace(
            self, space=replace(self.space, vectors=self.space.vectors * factor, _kept={})
        )


class ToyPieces:
    """Invented language model, in which the next word piece depends only on the piece before it.

    So the probabilities of a word depend only on the output token just before, as with bigrams.
    Words have one or two pieces.
    """

    name = "toy"

    def __init__(self) -> None:
        self._after = np.random.default_rng(11).dirichlet(np.full(PIECES, 0.5), PIECES)
        self._last: Ids = np.empty((0, 0), dtype=np.int64)

    def pieces(self, tokens: Sequence[Sequence[str]]) -> list[list[int]]:
        """Return the word pieces of each token, as in ``PieceModel``."""
        hashed = [
            -1 if words[-1] in UNLISTED else zlib.crc32(" ".join(words).encode())
            for words in tokens
        ]
        both = [[number % (PIECES - 1), number // PIECES % (PIECES - 1)] for number in hashed]
        return [
            [PIECES - 1] if number < 0 else two[: 1 + number % 3 // 2]
            for number, two in zip(hashed, both, strict=True)
        ]

    def begin(self, n_texts: int, n_beams: int) -> ToyPieces:
        """Return the initial beam states of some texts, as in ``PieceModel``."""
        begun = ToyPieces()
        begun._last = np.full((n_texts, n_beams), PIECES - 1)
        return begun

    def read(self, pieces: Ids, is_read: Flags) -> None:
        """Append the next word piece to some beams, as in ``BeamStates``."""
        self._last = np.where(is_read, pieces, self._last)

    def fork(self, text: int, parents: Ids) -> None:
        """Continue each beam of a text from its parent beam, as in ``BeamStates``."""
        self._last[text] = self._last[text, parents]

    def only(self, texts: Ids) -> None:
        """Discard the states of all texts except the given ones, as in ``BeamStates``."""
        self._last = self._last[texts]

    def next_pieces(self, texts: Ids, among: Ids | None = None) -> Floats:
        """Return the probabilities of the next word pieces, as in ``BeamStates``."""
        next_pieces: Floats = self._after[self._last[texts]]
        return next_pieces if among is None else next_pieces[..., among]


def places_of(shape: str) -> Floats:
    """Return the positions of the words of a toy vocabulary, (W, p), in units of 1/ε."""
    if shape == "line":
        return STEP * np.cumsum([0.0, 1.0, 1.07, 2.0, 1.4, 1.13, 1.6, 1.21])[:, None]
    if shape == "plane":  # five times as wide as high, and one word far from all others
        angle = np.arange(12) * GOLDEN
        places = np.sqrt(np.arange(12) + 0.5)[:, None] * np.column_stack(
            [np.cos(angle), np.sin(angle)]
        )
        gaps = np.linalg.norm(places[:, None] - places[None], axis=2)
        places *= STEP / gaps[~np.eye(12, dtype=bool)].min()
        places[:, 0] *= 5
        return np.asarray(np.vstack([places, [[FAR, 0.0]]]))
    draw = np.random.default_rng(2025)  # the positions are public
    groups = draw.standard_normal((GROUPS, 3)) * [20.0, 8.0, 3.0]
    places = np.repeat(groups, MEMBERS, axis=0) + draw.standard_normal((GROUPS * MEMBERS, 3)) * [
        0.8,
        0.5,
        0.3,
    ]
    return np.asarray(np.vstack([places, [[0.0, 3 * FAR, 0.0]]]))


def crowd(size: int) -> tuple[list[str], Floats]:
    """Return the words of a crowd, which is a cluster of very similar words of 6 to 18 letters,
    with their positions (size, 2) in units of 1/ε.

    The words lie within a quarter of a unit of each other and far from all other words. So a
    mechanism replaces each of them by any other of them, and hardly ever by itself.
    """
    words = []
    for at in range(size):
        numbers = [at, at // len(SYLLABLES), *range(3 * at, 3 * at + 7 * (1 + at % 7), 7)]
        words.append("".join(SYLLABLES[number % len(SYLLABLES)] for number in numbers))
    angle = np.arange(size) * GOLDEN
    radius = np.sqrt((np.arange(size) + 0.5) / max(size, 1)) / 8
    across = radius * np.cos(angle)
    up = radius * np.sin(angle)
    return words, np.column_stack([across, 1.5 * FAR + up])


def list_orders(places: Floats, n_lists: int) -> npt.NDArray[np.int32]:
    """Return orderings of the words, (n_lists, W): first by the first coordinate, then by falling
    last coordinate, then random orders.
    """
    orders = [np.argsort(places[:, 0], kind="stable"), np.argsort(-places[:, -1], kind="stable")]
    draw = np.random.default_rng(7)
    orders += [draw.permutation(len(places)) for _ in range(n_lists - 2)]
    return np.array(orders[:n_lists], dtype=np.int32)


def public_counts(n_words: Ids, tokens: Sequence[str] | None = None) -> PublicCounts:
    """Return invented corpus counts of words and bigrams. The words have falling frequencies, and
    each word is followed by itself and by a few words with higher numbers. The counts are so low
    that about half of the probability after a token comes from the frequency of words.

    Args:
        n_words: (W,) number of words in each token.
        tokens: the tokens that the invented language model reads; None means that the tokens are
            the numbers of the words.
    """
    w = len(n_words)
    first = np.repeat(np.arange(w), len(FOLLOWING))
    step = np.tile(FOLLOWING, w)
    followed = first % 4 != 3  # every fourth word has no followers
    counts = 1 + (first + step) % 2
    bigrams = Bigrams.of(first[followed], (first + step)[followed] % w, counts[followed], w)
    causal = CausalWords(
        ToyPieces, list(map(str, range(w))) if tokens is None else tokens, np.arange(w)
    )
    return PublicCounts(n_words, np.arange(w, 0, -1), bigrams, causal)


def toy(shape: str, epsilon: float, n_lists: int) -> Toy:
    """Return the toy vocabulary of one shape, scaled for a claim of ε. Its vectors are exact in
    float32.
    """
    places = places_of(shape) / epsilon
    vectors = places.astype(np.float32).astype(np.float64)
    w = len(vectors)
    words = np.arange(w) if w < 100 else np.array([0, MEMBERS // 2, w // 2, w - 2, w - 1])
    n_words = 1 + np.arange(w) % 3 // 2  # every third token has two words
    space = AuditedSpace(
        vectors, list_orders(places, n_lists) if n_lists else None, public_counts(n_words)
    )
    return Toy(f"toy: {shape} of {w:,} words", space, words.astype(np.int64), w < 100, (-1, w // 2))


def likeliest(claim: Claim, word: int, mass: Floats) -> Ids:
    """Return the words ordered by falling ``mass`` (W,); words of equal mass are ordered by rising
    distance from ``word``.
    """
    gap = claim.distances(np.array([word]), np.arange(claim.space.size))[0]
    return np.lexsort((gap, -mass)).astype(np.int64)
