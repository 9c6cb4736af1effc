"""Count what a budget is spread over, before any noise is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lexveil.accounting.budgets import Action, Codes, Policy
from lexveil.accounting.shares import ShareClasses
from lexveil.text.encode import Encoded, Lexicon, TokenClass, encode
from lexveil.types import Ids

BATCH = 5_000  # texts tokenized at a time


@dataclass(frozen=True, slots=True)
class TokenPlan:
    """What is to happen to the n tokens of a batch of texts.

    Attributes:
        known: (n,) number of the token among the words of the mechanism; -1 if it is none of them.
        action: (n,) ``Action`` of each.
        leader: (n,) the token of which each takes the replacement; None if each has its own.
        share: (n,) class of each that decides its share of the budget, as a number in ``shares.CLASSES``; None if all
            have the same share.
        parts: (n,) the parts of the budget that each gets if it pays; None if all get one.
    """

    known: Ids
    action: npt.NDArray[np.int8]
    leader: Ids | None
    share: Codes | None = None
    parts: Ids | None = None

    @property
    def pays(self) -> npt.NDArray[np.bool_]:
        """(n,) whether epsilon is spent on the token: perturbed, and on its own account."""
        perturbed: npt.NDArray[np.bool_] = self.action == Action.PERTURBED.value
        return perturbed if self.leader is None else perturbed & (self.leader == np.arange(len(self.action)))


def plan_tokens(
    encoded: Encoded,
    number: Ids,
    policy: Policy,
    document_of: Ids | None = None,
    shares: ShareClasses | None = None,
) -> TokenPlan:
    """Decide what is to happen to each token.

    Args:
        encoded: the tokens of a batch.
        number: (V,) number of each row of the embedding among the words of the mechanism, -1 where it is none.
        document_of: (n_texts,) the document of each text, if equal tokens of a document are to be replaced alike.
        shares: the class of each row of the embedding that decides its share; None if all have the same.
    """
    known = np.where(encoded.rows >= 0, number[encoded.rows], -1) if len(number) else encoded.rows
    action = policy.actions(encoded.kind, known >= 0)
    leader = None if document_of is None else _leaders(encoded, known, action, document_of)
    if shares is None:
        return TokenPlan(known, action, leader)
    share = shares.of(encoded.rows)
    return TokenPlan(known, action, leader, share, shares.parts[share])


def _leaders(encoded: Encoded, known: Ids, action: npt.NDArray[np.int8], document_of: Ids) -> Ids:
    """The first token of the same document that is the same word or collocation; of all others, the token itself."""
    leader = np.arange(len(known))
    replaced = np.flatnonzero((action == Action.PERTURBED.value) | (action == Action.SAMPLED.value))
    token = encoded.rows[replaced].copy()
    # What has no row of the embedding is known by its form; such a token is always a single word.
    forms: dict[str, int] = {}
    for i in np.flatnonzero(token < 0).tolist():
        form = encoded.words[int(encoded.first_word[replaced[i]])]
        token[i] = -1 - forms.setdefault(form, len(forms))
    document = document_of[encoded.text_of[replaced]]
    order = np.lexsort((replaced, token, document))
    same = (np.diff(token[order]) == 0) & (np.diff(document[order]) == 0)
    starts = np.flatnonzero(np.concatenate([[True], ~same]))[: len(order)]
    leader[replaced[order]] = np.repeat(replaced[order][starts], np.diff(np.append(starts, len(order))))
    return leader


def count_planned(encoded: Encoded, plan: TokenPlan, owner: Ids, n: int) -> Ids:
    """Count per document: words, tokens, parts of the budget, words in those parts. Shape (4, n).

    A part is a token that epsilon is spent on, or several where its class has a share of its own.

    Args:
        owner: (n_texts,) the document of each text.
        n: how many documents there are.
    """
    pays, document = plan.pays, owner[encoded.text_of]
    parts = pays if plan.parts is None else pays * plan.parts
    weights = [
        encoded.n_words * (encoded.kind != TokenClass.PUNCTUATION.value),
        np.ones(len(pays)),
        parts,
        encoded.n_words * parts,
    ]
    return np.stack([np.bincount(document, weights=weight, minlength=n) for weight in weights]).astype(np.int64)


def count_tokens(texts: Sequence[str], lexicon: Lexicon, policy: Policy) -> Ids:
    """Count per text: words, tokens, tokens to be perturbed, words in those. Shape (4, n)."""
    number = np.arange(len(lexicon.tokens))
    parts = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        encoded = encode(batch, lexicon)
        parts.append(count_planned(encoded, plan_tokens(encoded, number, policy), np.arange(len(batch)), len(batch)))
    return np.concatenate(parts, axis=1) if parts else np.zeros((4, 0), dtype=np.int64)
