"""What becomes of tokens that a detector found: their fates in a plan, and what is written in their place.

What is written is a function of the disclosed structure and of noise: of the type (placeholder), of which found tokens
of a document are equal (pseudonym), of the form of a number (digits), and never of more.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from lexveil.accounting.budgets import Action, Codes
from lexveil.detectors.detection import Detection
from lexveil.privatization.engine.plan import TokenPlan
from lexveil.text.encode import Encoded, TokenClass
from lexveil.types import Ids

FoundCounts = Counter[tuple[str, str]]  # tokens by type and action
Written = Mapping[int, str]  # by token, what stands in its place

DIGIT, UPPER, LOWER = "9", "A", "a"  # how a form shows what is drawn anew
_ALPHABETS = {DIGIT: string.digits, UPPER: string.ascii_uppercase, LOWER: string.ascii_lowercase}
_ALIKE = (Action.SAMPLED.value, Action.DIGITS.value)  # what --consistent makes equal where found tokens are


def plan_found(
    encoded: Encoded, plan: TokenPlan, detection: Detection, document_of: Ids, *, consistent: bool
) -> TokenPlan:
    """A plan with the fates of the tokens that a detector found.

    Args:
        document_of: (n_texts,) the document of each text.
        consistent: equal tokens of a document are replaced alike; those that get pseudonyms always are.
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
            key = (int(document_of[encoded.text_of[token]]), int(found.type[token]), _forms(encoded, token))
            leader[token] = first.setdefault(key, token)
    return replace(plan, action=action, leader=leader)


def _forms(encoded: Encoded, token: int) -> tuple[str, ...]:
    """The normal forms of a token's words; a name has 's or not."""
    first = int(encoded.first_word[token])
    numbers = encoded.word[first : first + int(encoded.n_words[token])].tolist()
    return tuple(encoded.forms[number].removesuffix("'s") for number in numbers)


def form_of(text: str) -> str:
    """The form of a number: what ``redrawn`` copies. Digits and letters are shown as 9, A or a, white space as one."""
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
    return "".join(choices if len(choices) == 1 else choices[int(rng.integers(len(choices)))] for choices in drawn)


def source_of(encoded: Encoded, texts: Sequence[str], token: int) -> str:
    """A token as it stands in its text."""
    first = int(encoded.first_word[token])
    last = first + int(encoded.n_words[token]) - 1
    return texts[int(encoded.text_of[token])][int(encoded.spans[first, 0]) : int(encoded.spans[last, 1])]


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
        generator: of all texts, in release mode; or gives that of a text, for what is drawn here alone.
    """
    found, written = encoded.found, dict[int, str]()
    if found is None:
        return written
    generators: dict[int, np.random.Generator] = {}
    names = dict[tuple[int, int], list[str]]()  # of a document and a type, those not drawn yet, in random order
    for token in np.flatnonzero(plan.action >= Action.PLACEHOLDER.value).tolist():
        leader = token if plan.leader is None else int(plan.leader[token])
        if leader != token:
            written[token] = written[leader]
            continue
        action, kind, text = int(plan.action[token]), int(found.type[token]), int(encoded.text_of[token])
        if action == Action.PLACEHOLDER.value:
            written[token] = f"[{found.types[kind]}]"
            continue
        if text not in generators:
            generators[text] = generator if isinstance(generator, np.random.Generator) else generator(text)
        if action == Action.DIGITS.value:
            written[token] = redrawn(form_of(source_of(encoded, texts, token)), generators[text])
            continue
        left = names.setdefault((int(document_of[text]), kind), [])
        if not left:  # at first, and once all have been drawn
            listed = detection.names_for(found.types[kind])
            left += [listed[number] for number in generators[text].permutation(len(listed)).tolist()]
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
