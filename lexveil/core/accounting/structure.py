"""Sensitivity of the disclosed text structure: how often replacing one word changes it, measured
on public texts.

The guarantee compares texts with the same number of tokens, the same fate of each token (whether it
is perturbed, kept or dropped) and the same ε_i. If the text itself determines how it is cut, as in
S2 to S4, one other word may change all three, and between such texts no privacy is claimed. The
frequency of such changes depends on collocations, vocabulary and policy, and not on a private text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lexveil.base.types import Flags, Floats, Ids
from lexveil.core.accounting.budgets import SEGMENTATION_OF, Action, Codes, Policy, divisors
from lexveil.core.accounting.results import Result
from lexveil.core.text.encode import Encoded, Lexicon, TokenClass, encode
from lexveil.core.text.languages import DEFAULT

PER_TEXT = 10  # replacements per text
TEXTS_AT_A_TIME = 2000  # changed texts tokenized per block
Z = 1.959963984540054  # normal quantile of a 95 % interval


class StructureFigures(Result):
    """Sensitivity of a text's structure to replacing one word, measured on public texts.

    Attributes:
        source: Description of the texts.
        number_changed: Share of the replacements that change the number of tokens.
        pattern_changed: Share of the replacements that change the number of tokens, or whether a
            token is perturbed, kept or dropped.
        structure_changed: Share of the replacements that change the number, fates, epsilon or kept
            words; no privacy is claimed between texts that differ in these.
    """

    source: str
    texts: int
    replacements: int
    number_changed: float
    pattern_changed: float
    structure_changed: float


class ReplacementShare(Result):
    """Share of the word replacements that have some effect, with its 95 % confidence interval over
    texts.
    """

    share: float
    low: float
    high: float


class StructureChange(Result):
    """Sensitivity of a text's structure to replacing one word, as shares of the replacements.

    Attributes:
        number: Share that changes the number of tokens.
        cuts: Share that changes the number of tokens, or the number of words in a token.
        pattern: Share that changes the number of tokens, or the fate of a token (perturbed, kept or
            dropped).
        epsilon: Share that changes the divisor of the budget, and with it every ε_i. The divisor is
            the number of all words in S1 and S2, and of perturbed tokens in S3 and S4.
        structure: Share that changes number, pattern, ε_i or kept words; no privacy is claimed
            between texts that differ in these.
    """

    number: ReplacementShare
    cuts: ReplacementShare
    pattern: ReplacementShare
    epsilon: ReplacementShare
    structure: ReplacementShare


class Replacements:
    """Sample of texts, with copies of them in which one word each is replaced.

    A word is a token of letters and digits. The word to replace is drawn uniformly from the words
    of a text. The other word is drawn by its frequency until it differs, and gets a capital if the
    replaced word had one. A copy is left out if the tokenizer gives it another number of words than
    its text.

    Attributes:
        texts: (n,) texts with at least one word.
        copies: (n_copies,) texts with one replaced word.
        text_of: (n_copies,) the text of each copy.

    Raises:
        ValueError: if there are fewer than two words to draw from.
    """

    def __init__(
        self,
        texts: Sequence[str],
        words: Sequence[str],
        counts: Ids,
        rng: np.random.Generator,
        language: str = DEFAULT,
    ) -> None:
        usable = np.fromiter(map(str.isalnum, words), dtype=np.bool_, count=len(words))
        candidates = [words[row] for row in np.flatnonzero(usable).tolist()]
        if len(candidates) < 2:
            raise ValueError("there are fewer than two words to draw from")
        steps = np.cumsum(np.asarray(counts, dtype=np.float64)[usable])
        lexicon = Lexicon.build("word", [], None, language)
        before = encode(texts, lexicon)
        places = np.flatnonzero([word.isalnum() for word in before.words])
        rows, starts, sizes = np.unique(
            before.text_of[places], return_index=True, return_counts=True
        )
        text_of = np.repeat(np.arange(len(rows)), PER_TEXT)
        drawn = places[
            starts[text_of] + (rng.random(len(text_of)) * sizes[text_of]).astype(np.int64)
        ]
        copies = []
        for word, row in zip(drawn.tolist(), rows[text_of].tolist(), strict=True):
            other = before.words[word]
            while other == before.words[word]:
                other = candidates[
                    int(np.searchsorted(steps, rng.random() * steps[-1], side="right"))
                ]
            start, end = before.spans[word].tolist()
            written = texts[row]
            if written[start].isupper():
                other = other[0].upper() + other[1:]
            copies.append(written[:start] + other + written[end:])
        sizes_before = np.bincount(before.text_of, minlength=len(texts))[rows[text_of]]
        sizes_after = np.bincount(encode(copies, lexicon).text_of, minlength=len(copies))
        same_size = np.flatnonzero(sizes_after == sizes_before)
        self.texts = [texts[row] for row in rows.tolist()]
        self.copies = [copies[row] for row in same_size.tolist()]
        self.text_of = text_of[same_size]


def measure(
    replacements: Replacements, lexicon: Lexicon, policy: Policy | None, strategy: str
) -> StructureChange:
    """Measure how often replacing one word changes the structure of a text: tokenize texts and
    their copies with ``lexicon``, and compare.

    Args:
        policy: policy that determines which tokens are perturbed, kept or dropped. None compares
            the classes of tokens instead, and counts every token that a policy can keep as kept,
            which is an upper bound for every policy.
        strategy: strategy that divides the budget.

    Raises:
        ValueError: if the lexicon does not fit the strategy, or there is no copy.
    """
    if lexicon.segmentation != SEGMENTATION_OF[strategy] or not replacements.copies:
        raise ValueError(
            f"the structure of {strategy} cannot be measured: the lexicon has the segmentation "
            f"{lexicon.segmentation}, or no text has a copy with a replaced word"
        )
    before = encode(replacements.texts, lexicon)
    flags = []
    for start in range(0, len(replacements.copies), TEXTS_AT_A_TIME):
        after = encode(replacements.copies[start : start + TEXTS_AT_A_TIME], lexicon)
        flags.append(
            _compared(
                before,
                after,
                replacements.text_of[start : start + TEXTS_AT_A_TIME],
                policy,
                strategy,
            )
        )
    number, cuts, pattern, epsilon, kept = np.concatenate(flags, axis=1)
    return StructureChange(
        number=_share(number, replacements.text_of),
        cuts=_share(cuts, replacements.text_of),
        pattern=_share(pattern, replacements.text_of),
        epsilon=_share(epsilon, replacements.text_of),
        structure=_share(pattern | epsilon | kept, replacements.text_of),
    )


def _compared(
    before: Encoded, after: Encoded, text_of: Ids, policy: Policy | None, strategy: str
) -> Flags:
    """Return, for each copy, whether its number of tokens, cuts, pattern of fates, ε_i and kept
    words differ from those of its source text, shape (5, n_copies).
    """
    old = _fates(before, policy)
    new = _fates(after, policy)
    offsets, ends = before.offsets(), after.offsets()
    number: Flags = np.diff(ends) != np.diff(offsets)[text_of]
    tokens = np.flatnonzero(~number[after.text_of])
    copy = after.text_of[tokens]
    twins = offsets[text_of[copy]] + tokens - ends[copy]
    cuts, pattern = (
        number | (np.bincount(copy, now[tokens] != then[twins], minlength=len(number)) > 0)
        for now, then in ((after.n_words, before.n_words), (new, old))
    )
    stays = _may_be_kept(old, policy)[twins] & _may_be_kept(new, policy)[tokens]
    forms = ((after, tokens[stays]), (before, twins[stays]))
    then_and_now = zip(
        *([each.words[i] for i in each.first_word[at].tolist()] for each, at in forms), strict=True
    )
    others = np.fromiter(
        (now != then for now, then in then_and_now), dtype=np.bool_, count=int(stays.sum())
    )
    has_copy: Flags = np.bincount(copy[stays], others, minlength=len(number)) > 0
    if policy is None:  # a policy may perturb tokens of any class
        epsilon = pattern | cuts if strategy == "S2" else pattern
    else:
        epsilon = _divisors(after, new, strategy) != _divisors(before, old, strategy)[text_of]
    return np.stack([number, cuts, pattern, epsilon, has_copy])


def _fates(encoded: Encoded, policy: Policy | None) -> Codes:
    """Return the action on each token. Without a policy, return a code for the token's class and
    whether the token is unknown.
    """
    known = encoded.rows >= 0
    return (
        np.where(known, encoded.kind, encoded.kind + 4)
        if policy is None
        else policy.actions(encoded.kind, known)
    )


def _may_be_kept(fates: Codes, policy: Policy | None) -> Flags:
    """Return whether each token is kept, given its action code. Without a policy, return whether
    some policy can keep tokens of its class.
    """
    may: Flags = fates != TokenClass.WORD.value if policy is None else fates == Action.KEPT.value
    return may


def _divisors(encoded: Encoded, action: Codes, strategy: str) -> Floats:
    """Return the number by which each text's budget is divided, (n_texts,)."""
    perturbed = action == Action.PERTURBED.value
    counted = perturbed | (encoded.kind != TokenClass.PUNCTUATION.value)
    n_perturbed, n_words = (
        np.bincount(encoded.text_of, weight, minlength=encoded.n_texts).astype(np.int64)
        for weight in (perturbed, encoded.n_words * counted)
    )
    # A text without perturbed tokens spends nothing.
    return np.where(n_perturbed > 0, divisors(strategy, n_perturbed, n_words), 0.0)


def _share(changed: Flags, text_of: Ids) -> ReplacementShare:
    """Return the share of changed copies, with Wilson's interval for the effective sample size,
    which accounts for the spread over texts.
    """
    n = np.bincount(text_of)
    k = np.bincount(text_of, changed)
    whole = float(n.sum())
    texts = int(np.count_nonzero(n))
    p = float(k.sum()) / whole
    spread = float(((k - p * n) ** 2).sum()) / whole**2 * texts / max(texts - 1, 1)
    size = min(whole, p * (1 - p) / spread) if spread > 0 else whole
    centre = p + Z**2 / (2 * size)
    half = Z * float(np.sqrt(p * (1 - p) / size + Z**2 / (4 * size**2)))
    low, high = (
        max(0.0, min(1.0, end / (1 + Z**2 / size))) for end in (centre - half, centre + half)
    )
    return ReplacementShare(share=round(p, 6), low=round(low, 6), high=round(high, 6))
