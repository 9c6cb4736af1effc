"""Plans of the action and the budget share of each token, made before any noise is drawn."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lexveil.base.types import Ids, WordNumbers
from lexveil.core.accounting.budgets import Action, Codes, Policy
from lexveil.core.accounting.shares import WHOLE, ShareClasses
from lexveil.core.detectors.detection import Detection
from lexveil.core.text.encode import Encoded, Lexicon, TokenClass, encode

TEXTS_AT_A_TIME = 5_000  # number of texts to tokenize at a time


@dataclass(frozen=True, slots=True)
class TokenPlan:
    """The planned action (such as perturb or keep) and budget share of each of the n tokens of a
    batch.

    Attributes:
        known: (n,) index of each token in the vocabulary of the mechanism; -1 if the token is not
            in it.
        action: (n,) ``Action`` of each token.
        leader: (n,) for each token, the earlier equal token whose replacement it copies, or itself;
            None if no token copies another.
        share: (n,) index in ``shares.CLASSES`` of the class that determines each token's share of
            the budget; None if all tokens have the same share.
        parts: (n,) number of parts of the budget that each token spends if it spends any; None if
            each such token spends one.
    """

    known: WordNumbers
    action: npt.NDArray[np.int8]
    leader: Ids | None
    share: Codes | None = None
    parts: Ids | None = None

    @property
    def pays(self) -> npt.NDArray[np.bool_]:
        """Whether each token spends epsilon, shape (n,). A token spends epsilon if it is perturbed
        and does not copy the replacement of an earlier equal token.
        """
        perturbed: npt.NDArray[np.bool_] = self.action == Action.PERTURBED.value
        return (
            perturbed
            if self.leader is None
            else perturbed & (self.leader == np.arange(len(self.action)))
        )


def plan_tokens(
    encoded: Encoded,
    number: WordNumbers,
    policy: Policy,
    document_of: Ids | None = None,
    shares: ShareClasses | None = None,
) -> TokenPlan:
    """Decide the action for each token, such as perturb, keep or drop.

    Args:
        encoded: the tokens of a batch.
        number: (V,) for each row of the embedding, its index in the vocabulary of the mechanism; -1
            if the row is not in it.
        policy: the action for each class of token.
        document_of: (n_texts,) the document of each text, if equal tokens of a document should get
            the same replacement; else None.
        shares: the class of each row of the embedding, which determines its budget share; None if
            all shares are equal.
    """
    numbers = np.where(encoded.rows >= 0, number[encoded.rows], -1) if len(number) else encoded.rows
    known = WordNumbers(numbers)
    action = policy.actions(encoded.kind, known >= 0)
    leader = None if document_of is None else _leaders(encoded, known, action, document_of)
    if shares is None:
        return TokenPlan(known, action, leader)
    share = shares.of(encoded.rows)
    return TokenPlan(known, action, leader, share, shares.parts[share])


def _leaders(encoded: Encoded, known: WordNumbers, action: Codes, document_of: Ids) -> Ids:
    """Return, for each token, the index of the first equal word or collocation in its document,
    whose replacement it copies. A token that is not replaced gets its own index.
    """
    leader = np.arange(len(known))
    replaced = np.flatnonzero((action == Action.PERTURBED.value) | (action == Action.SAMPLED.value))
    token = encoded.rows[replaced].copy()
    # A token without a row in the embedding is identified by its form. Such a token is always a
    # single word.
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
    """Count words, tokens, spent budget parts and word parts per document. Return an array of shape
    (4, n).

    A token that spends epsilon counts as one part, or as several parts if its class has a share of
    its own. Parts of words are the units by which S1 and S2 divide a budget, see ``_word_parts``.

    Args:
        encoded: the tokens of a batch.
        plan: the actions and shares of these tokens.
        owner: (n_texts,) the document of each text.
        n: number of documents.
    """
    pays = plan.pays
    document = owner[encoded.text_of]
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
    """Return the number of parts that each token contributes if a budget is divided by words, shape
    (n,).

    A perturbed token counts by its words and the share of its class, even if it copies the
    replacement of an earlier equal token. Any other word counts as a word without a class, so that
    the ε of other words does not disclose its class. A match of a detector that is one token counts
    as one word, so that the ε of other words does not disclose its length. Punctuation counts if it
    is perturbed.
    """
    perturbed = plan.action == Action.PERTURBED.value
    others: Ids = encoded.n_words.astype(np.int64)
    others[encoded.kind == TokenClass.FOUND.value] = 1
    others[encoded.kind == TokenClass.PUNCTUATION.value] = 0
    if plan.parts is None:
        return np.where(perturbed, encoded.n_words, others)
    return np.where(perturbed, encoded.n_words * plan.parts, others * WHOLE)


def count_tokens(texts: Sequence[str], lexicon: Lexicon, policy: Policy) -> Ids:
    """Count words, tokens, tokens to be perturbed, and word parts per text. Return an array of
    shape (4, n).

    Word parts are the units by which the strategies S1 and S2 divide the budget.
    """
    number = WordNumbers(np.arange(len(lexicon.tokens)))
    parts = []
    for start in range(0, len(texts), TEXTS_AT_A_TIME):
        batch = texts[start : start + TEXTS_AT_A_TIME]
        encoded = encode(batch, lexicon)
        parts.append(
            count_planned(
                encoded, plan_tokens(encoded, number, policy), np.arange(len(batch)), len(batch)
            )
        )
    return np.concatenate(parts, axis=1) if parts else np.zeros((4, 0), dtype=np.int64)


FoundCounts = Counter[tuple[str, str]]  # tokens by type and action
Written = Mapping[int, str]  # replacement text by number of the token

# characters of a number's form that are redrawn
DIGIT = "9"
UPPER = "A"
LOWER = "a"
_ALPHABETS = {DIGIT: string.digits, UPPER: string.ascii_uppercase, LOWER: string.ascii_lowercase}
# actions on detected tokens that are equal for equal tokens with --consistent
_ALIKE = (Action.SAMPLED.value, Action.DIGITS.value)


def plan_found(
    encoded: Encoded, plan: TokenPlan, detection: Detection, document_of: Ids, *, consistent: bool
) -> TokenPlan:
    """Return the plan of a batch after setting the actions for the tokens that a detector found.

    Args:
        encoded: the tokens of a batch, with the detected tokens.
        plan: the plan of these tokens without the detector.
        detection: the action for each type that the detector reports.
        document_of: (n_texts,) the document of each text.
        consistent: whether equal tokens of a document get the same replacement; tokens that get
            pseudonyms always do.
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
    """Return the normalized forms of a token's words, without a final 's, so that a name equals its
    genitive.
    """
    first = int(encoded.first_word[token])
    numbers = encoded.word[first : first + int(encoded.n_words[token])].tolist()
    return tuple(encoded.forms[number].removesuffix("'s") for number in numbers)


def form_of(text: str) -> str:
    """Return the pattern of a text with digits, such as a phone number: 9, A or a for each digit
    and letter, and one space for any white space. ``redrawn`` keeps this pattern.
    """
    return "".join(map(_form_of_character, " ".join(text.split())))


def _form_of_character(character: str) -> str:
    if character.isdigit():
        return DIGIT
    if character.isupper():
        return UPPER
    return character if character in string.punctuation or character == " " else LOWER


def redrawn(form: str, rng: np.random.Generator) -> str:
    """Draw a random text with a given pattern, in which each digit and letter is drawn
    uniformly.
    """
    drawn = (_ALPHABETS.get(character, character) for character in form)
    return "".join(
        choices if len(choices) == 1 else choices[int(rng.integers(len(choices)))]
        for choices in drawn
    )


def source_of(encoded: Encoded, texts: Sequence[str], token: int) -> str:
    """Return a token as it is written in the source text."""
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
    """Return the replacement text of each token that a detector found, as a mapping from the index
    of the token.

    Args:
        encoded: the tokens of a batch, with the detected tokens.
        plan: the actions for these tokens.
        texts: the texts of the batch.
        detection: the names from which pseudonyms are drawn.
        document_of: (n_texts,) the document of each text.
        generator: in release mode, the generator of all texts; in an experiment, a function that
            returns a text's generator for these replacements.
    """
    found = encoded.found
    written = dict[int, str]()
    if found is None:
        return written
    generators: dict[int, np.random.Generator] = {}
    # names that have not been drawn yet, in random order, by document and type
    names = dict[tuple[int, int], list[str]]()
    for token in np.flatnonzero(plan.action >= Action.PLACEHOLDER.value).tolist():
        leader = token if plan.leader is None else int(plan.leader[token])
        if leader != token:
            written[token] = written[leader]
            continue
        action = int(plan.action[token])
        kind = int(found.type[token])
        text = int(encoded.text_of[token])
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
        if not left:  # the list of names is empty at first use, and after all names have been drawn
            listed = detection.names_for(found.types[kind])
            left += [
                listed[number] for number in generators[text].permutation(len(listed)).tolist()
            ]
        written[token] = left.pop()
    return written


def count_found(encoded: Encoded, action: Codes) -> FoundCounts:
    """Count the tokens that detectors found, by type and action."""
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
