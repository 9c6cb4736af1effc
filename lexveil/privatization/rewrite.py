"""Rewrite a batch of texts, token by token, and account for every token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lexveil.accounting.budgets import Action, Policy
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.mechanisms.registry import Mechanism
from lexveil.privatization.count import Plan, plan_tokens
from lexveil.text.encode import Encoded, Lexicon, encode
from lexveil.text.pieces import Pieces
from lexveil.text.render import render, render_in_layout
from lexveil.types import Floats, Ids

# A text's noise is drawn this many tokens at a time, which bounds memory for a text of any length. It is part of
# what a seed means: another value gives other experiments.
DRAW = 4096
FEW = 8  # times more words than tokens, and only those that were drawn are written out
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
        rows: (n,) row of the output token in the embedding; -1 where kept or dropped.
        out_words: (n,) words in the output token; 0 where dropped.
    """

    encoded: Encoded
    texts: list[str]
    action: npt.NDArray[np.int8]
    epsilon: Floats
    rows: Ids
    out_words: npt.NDArray[np.int8]

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
    """What texts are rewritten with.

    Attributes:
        keep_layout: copy the writer's white space and capitals, which nothing protects.
    """

    lexicon: Lexicon
    vocabulary: Vocabulary
    mechanism: Mechanism
    policy: Policy
    keep_layout: bool = field(default=False, kw_only=True)


def rewrite(
    texts: Sequence[str],
    epsilon: Floats,
    components: Components,
    generator: Callable[[int], np.random.Generator],
    planned: tuple[Encoded, Plan] | None = None,
) -> Rewritten:
    """Rewrite a batch of texts.

    Args:
        epsilon: (n_texts,) for each token of the text that pays, from its plan.
        generator: gives the generator of text i of the batch. In an experiment it belongs to that text alone, so
            that batches change no result.
        planned: the texts' tokens and what is to happen to each, where that was worked out before.
    """
    lexicon, vocabulary, mechanism = components.lexicon, components.vocabulary, components.mechanism
    encoded = planned[0] if planned else encode(texts, lexicon)
    plan = planned[1] if planned else plan_tokens(encoded, vocabulary.number, components.policy)
    known, action, pays = plan.known, plan.action, plan.pays
    own = np.ones(len(action), dtype=bool) if plan.leader is None else plan.leader == np.arange(len(action))
    spent = np.where(pays, epsilon[encoded.text_of], 0.0)
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

    size = 0
    for i in range(len(texts)):
        text = slice(offsets[i], offsets[i + 1])
        to_perturb = offsets[i] + np.flatnonzero(pays[text])
        to_sample = offsets[i] + np.flatnonzero(sampled[text])
        if not len(to_perturb) and not len(to_sample):
            continue
        rng = generator(i)
        numbers[to_sample] = rng.integers(len(vocabulary.rows), size=len(to_sample))
        for start in range(0, len(to_perturb), DRAW):
            drawn_for = to_perturb[start : start + DRAW]
            waiting.append((drawn_for, mechanism.noise(spent[drawn_for], rng)))
            size += waiting[-1][1].nbytes
            if size >= MOST_NOISE:
                search()
                size = 0
    search()
    if plan.leader is not None:
        numbers = numbers[plan.leader]

    rows = np.where(numbers >= 0, vocabulary.rows[numbers], -1) if len(vocabulary.rows) else numbers
    new, kept = rows >= 0, np.flatnonzero(action == Action.KEPT.value)
    # Only single words are kept: every collocation has a vector.
    words = [encoded.words[first] for first in encoded.first_word[kept].tolist()]
    out_words = np.zeros(len(action), dtype=np.int8)
    out_words[new] = lexicon.n_words[rows[new]]
    out_words[kept] = 1
    if components.keep_layout:
        tokens: list[str | None] = [lexicon.tokens[row] if row >= 0 else None for row in rows.tolist()]
        for token, word in zip(kept.tolist(), words, strict=True):
            tokens[token] = word
        rewritten = render_in_layout(tokens, encoded, texts)
    else:
        pieces = Pieces.of(words)
        written, spacing = np.empty(len(action), dtype=object), np.zeros(len(action), dtype=np.int8)
        out = rows[new]
        if len(out) * FEW > len(lexicon.tokens):
            written[new], spacing[new] = lexicon.pieces.written[out], lexicon.pieces.place[out]
        else:
            drawn = Pieces.of([lexicon.tokens[row] for row in out.tolist()])
            written[new], spacing[new] = drawn.written, drawn.place
        written[kept], spacing[kept] = pieces.written, pieces.place
        stay = action != Action.DROPPED.value
        rewritten = render(Pieces(written[stay], spacing[stay]), encoded.text_of[stay], len(texts))
    return Rewritten(encoded, rewritten, action, spent, rows, out_words)


def count_actions(kind: npt.NDArray[np.int8], action: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """How many tokens of each class met each action, shape (4 classes, 4 actions)."""
    return np.bincount(kind.astype(np.int64) * 4 + action, minlength=16).reshape(4, 4)
