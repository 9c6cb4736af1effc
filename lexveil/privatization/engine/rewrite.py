"""Rewrite a batch of texts, token by token, and account for every token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lexveil.accounting.budgets import Action, Codes
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.mechanisms.registry import Mechanism
from lexveil.privatization.engine.plan import TokenPlan
from lexveil.text.encode import Encoded, Lexicon, TokenClass, encode
from lexveil.text.pieces import Pieces, escaped
from lexveil.text.render import NOTHING, render, render_in_layout
from lexveil.text.strings import Strings
from lexveil.types import Flags, Floats, Ids

# A text's noise is drawn this many tokens at a time, which bounds memory for a text of any length. It is part of
# what a seed means: another value gives other experiments.
DRAW = 4096
FEW = 8  # times more words than tokens, and only those that were drawn are written out
MOST_WORDS = 127  # that are counted of what is written in the place of a token
MOST_NOISE = 10_000_000  # bytes of noise drawn before words are searched for; changes no result


@dataclass(frozen=True, repr=False)
class Rewritten:
    """A batch of rewritten texts and what happened to each of their n tokens.

    Attributes:
        encoded: the source's tokens. They hold source text and must not leave the process.
        texts: the rewritten texts.
        action: (n,) ``Action`` of each.
        epsilon: (n,) spent on the token; 0 unless perturbed, and 0 where the replacement is that of an equal token
            before it.
        rows: (n,) row of the output token in the embedding; -1 where kept, dropped or ``written``.
        out_words: (n,) words in the output token; 0 where dropped.
        share: (n,) class of each that decided its share of the budget; None if all had the same.
        parts: (n,) parts of the budget that each got if it paid; None if one each.
        written: what stands in the place of tokens that a detector found, by the number of the token.
    """

    encoded: Encoded
    texts: Sequence[str]
    action: npt.NDArray[np.int8]
    epsilon: Floats
    rows: Ids
    out_words: npt.NDArray[np.int8]
    share: Codes | None = None
    parts: Ids | None = None
    written: Mapping[int, str] = field(default_factory=dict)

    @cached_property
    def position(self) -> npt.NDArray[np.int32]:
        """(n,) place of each token in its text, from 0."""
        offsets = self.encoded.offsets()
        return (np.arange(len(self.action)) - offsets[self.encoded.text_of]).astype(np.int32)

    def per_text(self, values: npt.NDArray[np.float64] | npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Floats:
        """Sum a value per token over each text, shape (n_texts,)."""
        summed = np.bincount(self.encoded.text_of, weights=values, minlength=self.encoded.n_texts)
        return summed.astype(np.float64)  # whole numbers where there is no token at all


@dataclass(frozen=True, slots=True)
class Components:
    """What texts are rewritten with. It holds no generator, so no two processes can share one.

    Attributes:
        instead: (W,) the word that is written where each is drawn; None if it is always that word.
    """

    lexicon: Lexicon
    vocabulary: Vocabulary
    mechanism: Mechanism
    instead: Ids | None = None


def rewrite(
    texts: Sequence[str],
    planned: tuple[Encoded, TokenPlan],
    epsilon: Floats,
    components: Components,
    generator: np.random.Generator | Callable[[int], np.random.Generator],
    written: Mapping[int, str] = NOTHING,
    *,
    keep_layout: bool = False,
) -> Rewritten:
    """Rewrite a batch of texts.

    Args:
        planned: the texts' tokens and what is to happen to each.
        epsilon: (n_texts,) for each part of the budget that a token of the text pays.
        generator: of all texts, in release mode; or gives that of text i of the batch. In an experiment it belongs to
            that text alone, so that batches change no result.
        written: as of ``Rewritten``.
        keep_layout: copy the writer's white space and capitals, which nothing protects.
    """
    lexicon, vocabulary = components.lexicon, components.vocabulary
    encoded, plan = planned
    action, pays = plan.action, plan.pays
    spent = np.where(pays, epsilon[encoded.text_of], 0.0)
    if plan.parts is not None:
        spent *= plan.parts  # exact: few bits times few
    numbers = _draw(planned, spent, components, generator)
    if components.instead is not None:
        numbers = np.where(numbers >= 0, components.instead[numbers], -1)
    rows = np.where(numbers >= 0, vocabulary.rows[numbers], -1) if len(vocabulary.rows) else numbers
    new, kept = rows >= 0, np.flatnonzero(action == Action.KEPT.value)
    out_words = np.zeros(len(action), dtype=np.int8)
    out_words[new] = lexicon.n_words[rows[new]]
    out_words[kept] = 1  # only single words are kept: every collocation has a vector
    for token, text in written.items():
        out_words[token] = min(len(text.split()), MOST_WORDS)
    if keep_layout:
        tokens: list[str | None] = [lexicon.tokens[row] if row >= 0 else None for row in rows.tolist()]
        for token, first in zip(kept.tolist(), encoded.first_word[kept].tolist(), strict=True):
            tokens[token] = encoded.words[first]
        rewritten: Sequence[str] = render_in_layout(tokens, encoded, texts, written)
    else:
        rewritten = _in_plain_layout(encoded, lexicon, rows, kept, action != Action.DROPPED.value, written)
        if not isinstance(texts, Strings):
            rewritten = [*rewritten]
    return Rewritten(encoded, rewritten, action, spent, rows, out_words, plan.share, plan.parts, written)


def _draw(
    planned: tuple[Encoded, TokenPlan],
    spent: Floats,
    components: Components,
    generator: np.random.Generator | Callable[[int], np.random.Generator],
) -> Ids:
    """(n,) the word of the mechanism that each token becomes; -1 of those that are neither perturbed nor sampled.

    Args:
        spent: (n,) epsilon of each.
        generator: as of ``rewrite``.
    """
    vocabulary, mechanism = components.vocabulary, components.mechanism
    encoded, plan = planned
    known, action, pays = plan.known, plan.action, plan.pays
    own = np.ones(len(action), dtype=bool) if plan.leader is None else plan.leader == np.arange(len(action))
    sampled = (action == Action.SAMPLED.value) & own
    numbers = np.full(len(action), -1, dtype=np.int64)
    offsets = encoded.offsets()
    waiting: list[tuple[Ids, Floats]] = []  # tokens whose noise is drawn and whose replacement is not yet searched

    def search() -> None:
        if waiting:
            pending = np.concatenate([positions for positions, _ in waiting])
            noise = np.concatenate([drawn for _, drawn in waiting])
            numbers[pending] = mechanism.replace(known[pending], spent[pending], noise)
            waiting.clear()

    size, shared = 0, isinstance(generator, np.random.Generator)
    for i, (start, stop) in enumerate([(0, len(action))] if shared else pairwise(offsets.tolist())):
        to_perturb = start + np.flatnonzero(pays[start:stop])
        to_sample = start + np.flatnonzero(sampled[start:stop])
        if not len(to_perturb) and not len(to_sample):
            continue
        rng = generator if isinstance(generator, np.random.Generator) else generator(i)
        numbers[to_sample] = rng.integers(len(vocabulary.rows), size=len(to_sample))
        for first in range(0, len(to_perturb), DRAW):
            drawn_for = to_perturb[first : first + DRAW]
            waiting.append((drawn_for, mechanism.noise(spent[drawn_for], rng)))
            size += waiting[-1][1].nbytes
            if size >= MOST_NOISE:
                search()
                size = 0
    search()
    return numbers if plan.leader is None else numbers[plan.leader]


def _in_plain_layout(
    encoded: Encoded, lexicon: Lexicon, rows: Ids, kept: Ids, stays: Flags, written: Mapping[int, str]
) -> Sequence[str]:
    """The texts of output tokens, in ordinary spacing.

    Args:
        rows: (n,) row of each output token in the embedding, -1 where a token is kept or ``written``.
        kept: those that are.
        stays: (n,) whether there is an output token.
        written: as of ``Rewritten``.
    """
    form = encoded.word[encoded.first_word[kept]]
    is_kept = np.zeros(len(encoded.forms), dtype=bool)
    is_kept[form] = True
    numbers = np.flatnonzero(is_kept)
    forms = Pieces.of([encoded.forms[number] for number in numbers.tolist()])
    if (len(rows) - len(kept)) * FEW > len(lexicon.tokens):
        pieces, token = lexicon.pieces, rows.astype(np.int32)
    else:
        drawn, number = np.unique(rows, return_inverse=True)
        token = number.astype(np.int32)
        pieces = Pieces.of([lexicon.tokens[row] if row >= 0 else "" for row in drawn.tolist()])
    token[kept] = len(pieces.place) + (np.cumsum(is_kept, dtype=np.int32) - 1)[form]
    pieces = Pieces.joined(pieces, forms)
    if written:
        token[list(written)] = len(pieces.place) + np.arange(len(written), dtype=np.int32)
        pieces = Pieces.joined(pieces, Pieces.of([escaped(text) for text in written.values()]))
    text_of = encoded.text_of
    if not stays.all():
        token, text_of = token[stays], text_of[stays]
    return render(pieces, token, text_of, encoded.n_texts)


def unchanged(texts: Sequence[str]) -> Rewritten:
    """Every token kept, every text as it is."""
    encoded = encode(texts, Lexicon.build("word", [], None))
    n = len(encoded.rows)
    # No vocabulary is involved, so no word is out of it.
    encoded.kind[encoded.kind == TokenClass.OOV.value] = TokenClass.WORD
    return Rewritten(
        encoded,
        texts,
        action=np.full(n, Action.KEPT, dtype=np.int8),
        epsilon=np.zeros(n),
        rows=np.full(n, -1, dtype=np.int64),
        out_words=np.ones(n, dtype=np.int8),
    )


def count_actions(kind: npt.NDArray[np.int8], action: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """How many tokens of each class met each action, shape (n_classes, n_actions)."""
    shape = len(TokenClass), len(Action)
    return np.bincount(kind.astype(np.int64) * shape[1] + action, minlength=shape[0] * shape[1]).reshape(shape)
