"""Base measures from a causal language model: integer weights that are larger for a word that is
likely after all of the text before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from lexveil.base.types import Flags, Floats, Ids
from lexveil.core.mechanisms.base_measure import MASS_BITS, Halvings
from lexveil.core.text.piece_models import PieceModel

TEXTS = 128  # texts read in parallel
OPEN = 0.75  # share of unfinished texts at which finished ones are dropped from the batch
TOKENS_OF_A_CONTEXT = (
    96  # tokens of a text that form one context; the next token starts a new context
)
# greatest number of pieces in a context: a kept word of many thousands would fill the memory
PIECES = 500


class CausalWords(NamedTuple):
    """Public causal language model over the tokens of an embedding, not yet loaded.

    Attributes:
        make: function that loads the model. The function can be pickled even if the model cannot.
        tokens: R tokens that may be written; the words of a collocation joined by ``_``.
        rows: (V,) row of each word of a mechanism among the tokens.
    """

    make: Callable[[], PieceModel]
    tokens: Sequence[str]
    rows: Ids


class Course(NamedTuple):
    """Tokens of texts in order, some of which are not yet known, with functions that draw the
    unknown tokens.

    Attributes:
        is_first: (n,) whether the token begins a text.
        is_drawn: (n,) whether the token is drawn once all tokens before it are known.
        pieces: function that returns the pieces of a token; None while the token is not known.
        draw: function that draws some tokens, given their base measures m, (t, V). After the draw,
            the pieces of these tokens are known.
        in_order: whether some tokens copy the output of earlier tokens.
    """

    is_first: Flags
    is_drawn: Flags
    pieces: Callable[[int], list[int] | None]
    draw: Callable[[list[int], Ids], None]
    in_order: bool = False


class CausalMeasure:
    """Base measure m(y | c) of a word y after the text c, from a causal language model: max(1,
    round(C·2^-h(y)·μ(y | c)^κ)), whole numbers with a sum below 2^31. C is the same for all y.

    μ(y | c) = p(f(y) | c)·π(y). Here f(y) is the first piece of y, p the model's probability of a
    first piece after c, and π(y) the public share of y among the words that begin with that piece.
    c is the text before y within the same context, up to ``TOKENS_OF_A_CONTEXT`` tokens and
    ``PIECES`` pieces. At the beginning of a context c is empty.

    Attributes:
        words: language model and tokens.
        pieces: pieces of each token that may be written.
    """

    def __init__(self, words: CausalWords, counts: Ids, kappa: float, halvings: Halvings) -> None:
        """Load the language model and prepare the base measure.

        Args:
            words: language model and tokens.
            counts: (V,) count of each word.
            kappa: exponent κ.
            halvings: (V,) h, the number of times that the measure of each word is halved.
        """
        self.words = words
        self._counts = counts
        self._kappa = kappa
        self._halvings = halvings
        self._load()

    def _load(self) -> None:
        self.model = self.words.make()
        self.pieces = self.model.pieces([token.split("_") for token in self.words.tokens])
        first = np.array([self.pieces[row][0] for row in self.words.rows.tolist()], dtype=np.int64)
        self._first, self._place = np.unique(first, return_inverse=True)
        share = (self._counts + 1.0) / np.bincount(self._place, self._counts + 1.0)[self._place]
        self._own: Floats = np.exp2(-self._halvings.astype(np.float64)) * share**self._kappa

    def __getstate__(self) -> Mapping[str, Any]:
        return {name: vars(self)[name] for name in ("words", "_counts", "_kappa", "_halvings")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._load()

    @property
    def single(self) -> Ids:
        """(V,) base measure m of every word at the beginning of a text."""
        return self.of(-1)

    def of(self, before: int) -> Ids:
        """Return (V,) the base measure m of every word after a context of the single token
        ``before``; -1 means an empty context.
        """
        mass: Ids = self.after(np.array([before]))[0]
        return mass

    def after(self, before: Ids) -> Ids:
        """Return (n, V) the base measure m of every word after each of n contexts of one token; -1
        means an empty context.
        """
        numbers = np.empty((len(before), len(self._place)), dtype=np.int64)
        pieces = [
            row
            for token in before.tolist()
            for row in (self.pieces[token] if token >= 0 else [], None)
        ]

        def draw(places: list[int], mass: Ids) -> None:
            for place, row in zip(places, mass, strict=True):
                numbers[place // 2] = row
                pieces[place] = []

        is_drawn = np.arange(2 * len(before)) % 2 == 1
        self.walk(Course(~is_drawn, is_drawn, lambda place: pieces[place], draw))
        return numbers

    def walk(self, course: Course) -> None:
        """Draw the unknown tokens of texts in order, with many texts in parallel.

        The texts that are processed in parallel depend only on the number and the actions of their
        tokens.
        """
        starts = np.flatnonzero(course.is_first).tolist()
        cuts = [
            cut
            for start, stop in pairwise([*starts, len(course.is_first)])
            for cut in range(start, stop, TOKENS_OF_A_CONTEXT)
        ]
        parts = [np.arange(start, stop) for start, stop in pairwise([*cuts, len(course.is_first)])]
        until = [
            part[: int(drawn.max()) + 1]
            for part in parts
            if len(drawn := np.flatnonzero(course.is_drawn[part]))
        ]
        if not course.in_order:
            until.sort(key=len)
        for start in range(0, len(until), TEXTS):
            self._read([part.tolist() for part in until[start : start + TEXTS]], course)

    def _read(self, parts: list[list[int]], course: Course) -> None:
        """Feed each part to the language model up to a token that must be drawn, draw the token,
        and continue.
        """
        states = self.model.begin(len(parts), 1)
        at = [0] * len(parts)
        to_read = [deque[int]() for _ in parts]
        room = [PIECES] * len(parts)
        while still := [number for number, part in enumerate(parts) if at[number] < len(part)]:
            if len(still) <= OPEN * len(parts):
                states.only(np.array(still))
                parts = [parts[number] for number in still]
                at = [at[number] for number in still]
                to_read = [to_read[number] for number in still]
                room = [room[number] for number in still]
            ready = []
            for number, part in enumerate(parts):
                while not to_read[number] and at[number] < len(part):
                    pieces = course.pieces(part[at[number]])
                    if pieces is None:
                        if course.is_drawn[part[at[number]]]:
                            ready.append(number)
                        # otherwise the text waits for a token of another text of the same document
                        break
                    at[number] += 1
                    if at[number] < len(part):
                        to_read[number].extend(pieces[: room[number]])
                        room[number] = max(room[number] - len(pieces), 0)
            if ready:
                mass = self._mass(states.next_pieces(np.array(ready), self._first)[:, 0])
                course.draw([parts[number][at[number]] for number in ready], mass)
            elif any(to_read):
                is_read = np.array([[bool(pieces)] for pieces in to_read])
                states.read(
                    np.array([[pieces.popleft() if pieces else 0] for pieces in to_read]), is_read
                )

    def _mass(self, next_pieces: Floats) -> Ids:
        """Return (t, V) the base measure m of every word after the contexts of t texts.

        Args:
            next_pieces: (t, f) probabilities of the first pieces of words.
        """
        p = next_pieces.astype(np.float64) ** self._kappa
        weight = self._own * p[:, self._place]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # Rounding may add 1 to the mass of each of V words.
            scaled = weight * (
                (2.0**MASS_BITS - 2 * weight.shape[1])
                / (weight.sum(axis=1, keepdims=True) * (1 + 1e-9))
            )
        # NaN and infinity become 1, too.
        return np.where((scaled >= 1) & (scaled < 2.0**MASS_BITS), np.rint(scaled), 1.0).astype(
            np.int64
        )
