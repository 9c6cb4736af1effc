"""Count what a budget is spread over, before any noise is drawn."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lexveil.accounting.budgets import Action, Codes, Policy
from lexveil.accounting.shares import WHOLE, ShareClasses
from lexveil.detectors.detection import Detection
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
        share: (n,) class of each that decides its share of the budget, as a number in
            ``shares.CLASSES``; None if all have the same share.
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
        return (
            perturbed
            if self.leader is None
            else perturbed & (self.leader == np.arange(len(self.action)))
        )


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
        number: (V,) number of each row of the embedding among the words of the mechanism, -1 where
            it is none.
        document_of: (n_texts,) the document of each text, if equal tokens of a document are to be
            replaced alike.
        shares: the class of each row of the embedding that decides its share; None if all have the
            same.
    """
    known = np.where(encoded.rows >= 0, number[encoded.rows], -1) if len(number) else encoded.rows
    action = policy.actions(encoded.kind, known >= 0)
    leader = None if document_of is None else _leaders(encoded, known, action, document_of)
    if shares is None:
        return TokenPlan(known, action, leader)
    share = shares.of(encoded.rows)
    return TokenPlan(known, action, leader, share, shares.parts[share])


def _leaders(encoded: Encoded, known: Ids, action: npt.NDArray[np.int8], document_of: Ids) -> Ids:
    """The first token of the same document that is the same word or collocation; of all others, the
    token itself.
    """
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
    leader[replaced[order]] = np.repeat(
        replaced[order][starts], np.diff(np.append(starts, len(order)))
    )
    return leader


def count_planned(encoded: Encoded, plan: TokenPlan, owner: Ids, n: int) -> Ids:
    """Counts per document: words, tokens, parts that are paid for, parts of words. Shape (4, n).

    A part is a token that epsilon is spent on, or several where its class has a share of its own.
    Parts of words are those by which S1 and S2 divide a budget, see ``_word_parts``.

    Args:
        owner: (n_texts,) the document of each text.
        n: how many documents there are.
    """
    pays, document = plan.pays, owner[encoded.text_of]
    weights = [
        encoded.n_words * (encoded.kind != TokenClass.PUNCTUATION.value),
        np.ones(len(pays)),
        pays if plan.parts is None else pays * plan.parts,
        _word_parts(encoded, plan),
    ]
    return np.stack(
        [np.bincount(document, weights=weight, minlength=n) for weight in weights]
    ).astype(np.int64)


def _word_parts(encoded: Encoded, plan: TokenPlan) -> Ids:
    """(n,) parts by which each token counts where a budget is divided by words.

    A perturbed token counts by its words and its class's share, paid for or a copy. Any other word
    counts as a word of no class, so that its class does not show in the ε of others; and a piece
    that a detector found as one word, so that its length does not. Punctuation counts where it is
    perturbed.
    """
    perturbed = plan.action == Action.PERTURBED.value
    others: Ids = encoded.n_words.astype(np.int64)
    others[encoded.kind == TokenClass.FOUND.value] = 1
    others[encoded.kind == TokenClass.PUNCTUATION.value] = 0
    if plan.parts is None:
        return np.where(perturbed, encoded.n_words, others)
    return np.where(perturbed, encoded.n_words * plan.parts, others * WHOLE)


def count_tokens(texts: Sequence[str], lexicon: Lexicon, policy: Policy) -> Ids:
    """Counts per text: words, tokens, tokens to be perturbed, and words by which S1 and S2 divide.
    Shape (4, n).
    """
    number = np.arange(len(lexicon.tokens))
    parts = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        encoded = encode(batch, lexicon)
        parts.append(
            count_planned(
                encoded, plan_tokens(encoded, number, policy), np.arange(len(batch)), len(batch)
            )
        )
    return np.concatenate(parts, axis=1) if parts else np.zeros((4, 0), dtype=np.int64)


FoundCounts = Counter[tuple[str, str]]  # tokens by type and action
Written = Mapping[int, str]  # by token, what stands in its place

DIGIT, UPPER, LOWER = "9", "A", "a"  # how a form shows what is drawn anew
_ALPHABETS = {DIGIT: string.digits, UPPER: string.ascii_uppercase, LOWER: string.ascii_lowercase}
# what --consistent makes equal where found tokens are
_ALIKE = (Action.SAMPLED.value, Action.DIGITS.value)


def plan_found(
    encoded: Encoded, plan: TokenPlan, detection: Detection, document_of: Ids, *, consistent: bool
) -> TokenPlan:
    """A plan with the fates of the tokens that a detector found.

    Args:
        document_of: (n_texts,) the document of each text.
        consistent: equal tokens of a document are replaced alike; those that get pseudonyms always
            are.
    """
    found = encoded.found
    whole = np.flatnonzero(encoded.kind == TokenClass.FOUND.value)
    if found is None or not len(whole):
        return plan
    action: Codes = plan.action.copy()
    action[whole] = detection.codes(found.types)[found.type[whole]]
    alike = action[whole] == Action.PSEUDONYM.value
    if consistent:
        alike |= np.isin(action[whole], _ALIKE)
    leader = plan.leader
    if alike.any():
        leader = np.arange(len(action)) if leader is None else leader.copy()
        first: dict[tuple[int, int, tuple[str, ...]], int] = {}
        for token in whole[alike].tolist():
            key = (
                int(document_of[encoded.text_of[token]]),
                int(found.type[token]),
                _forms(encoded, token),
            )
            leader[token] = first.setdefault(key, token)
    return replace(plan, action=action, leader=leader)


def _forms(encoded: Encoded, token: int) -> tuple[str, ...]:
    """The normal forms of a token's words; a name has 's or not."""
    first = int(encoded.first_word[token])
    numbers = encoded.word[first : first + int(encoded.n_words[token])].tolist()
    return tuple(encoded.forms[number].removesuffix("'s") for number in numbers)


def form_of(text: str) -> str:
    """The form of a number: what ``redrawn`` copies. Digits and letters are shown as 9, A or a,
    white space as one.
    """
    return "".join(map(_form_of_character, " ".join(text.split())))


def _form_of_character(character: str) -> str:
    if character.isdigit():
        return DIGIT
    if character.isupper():
        return UPPER
    return character if character in string.punctuation or character == " " else LOWER


def redrawn(form: str, rng: np.random.Generator) -> str:
    """A text of a form, each digit and letter of it drawn uniformly."""
    drawn = (_ALPHABETS.get(character, character) for character in form)
    return "".join(
        choices if len(choices) == 1 else choices[int(rng.integers(len(choices)))]
        for choices in drawn
    )


def source_of(encoded: Encoded, texts: Sequence[str], token: int) -> str:
    """A token as it stands in its text."""
    first = int(encoded.first_word[token])
    last = first + int(encoded.n_words[token]) - 1
    return texts[int(encoded.text_of[token])][
        int(encoded.spans[first, 0]) : int(encoded.spans[last, 1])
    ]


def write_found(
    encoded: Encoded,
    plan: TokenPlan,
    texts: Sequence[str],
    detection: Detection,
    document_of: Ids,
    generator: np.random.Generator | Callable[[int], np.random.Generator],
) -> Written:
    """What is written in the place of found tokens, by the number of the token.

    Args:
        generator: of all texts, in release mode; or gives that of a text, for what is drawn here
            alone.
    """
    found, written = encoded.found, dict[int, str]()
    if found is None:
        return written
    generators: dict[int, np.random.Generator] = {}
    # of a document and a type, those not drawn yet, in random order
    names = dict[tuple[int, int], list[str]]()
    for token in np.flatnonzero(plan.action >= Action.PLACEHOLDER.value).tolist():
        leader = token if plan.leader is None else int(plan.leader[token])
        if leader != token:
            written[token] = written[leader]
            continue
        action, kind, text = (
            int(plan.action[token]),
            int(found.type[token]),
            int(encoded.text_of[token]),
        )
        if action == Action.PLACEHOLDER.value:
            written[token] = f"[{found.types[kind]}]"
            continue
        if text not in generators:
            generators[text] = (
                generator if isinstance(generator, np.random.Generator) else generator(text)
            )
        if action == Action.DIGITS.value:
            written[token] = redrawn(form_of(source_of(encoded, texts, token)), generators[text])
            continue
        left = names.setdefault((int(document_of[text]), kind), [])
        if not left:  # at first, and once all have been drawn
            listed = detection.names_for(found.types[kind])
            left += [
                listed[number] for number in generators[text].permutation(len(listed)).tolist()
            ]
        written[token] = left.pop()
    return written


def count_found(encoded: Encoded, action: Codes) -> FoundCounts:
    """How many found tokens of each type met each action."""
    found = encoded.found
    if found is None or not found.types:
        return Counter()
    tokens = np.flatnonzero(found.is_found)
    codes = found.type[tokens].astype(np.int64) * len(Action) + action[tokens]
    counted = np.bincount(codes, minlength=len(found.types) * len(Action)).reshape(-1, len(Action))
    labels = Action.labels(with_found=True)
    return Counter(
        {
            (found.types[kind], labels[code]): int(counted[kind, code])
            for kind, code in zip(*(axis.tolist() for axis in counted.nonzero()), strict=True)
        }
    )
