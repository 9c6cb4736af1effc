"""Privacy measurements: a mechanism with its composition over a text, and the bound proven for it.
A guarantee statement is generated from a measurement and cannot claim more.

A ``Measurement`` has an input domain, a neighbour relation, conditions, and a privacy map, which
computes a bound in nats and a δ from the distances of tokens. It also has refusals, one for each
precondition that was checked and failed; with a refusal there is no bound. ``of_token`` builds the
measurement of a configured mechanism; each function after it composes one more part of a run. The
design is that of OpenDP's measurements (Gaboardi et al. 2020); composition is basic composition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from lexveil.base.errors import LexveilError
from lexveil.base.types import Floats
from lexveil.core.accounting.budgets import BY_WORDS, BudgetSource, DocumentBudget, Policy
from lexveil.core.accounting.record import NONE, Guarantee
from lexveil.core.accounting.shares import MEANING, BudgetShares
from lexveil.core.accounting.structure import StructureFigures
from lexveil.core.mechanisms.registry import Mechanism

FORMULA = "Pr[M(D)=y] <= exp(Σ ε_i·d(w_i,w'_i))·Pr[M(D')=y]"
NEIGHBOURS = (
    "two texts with the same number of tokens, the same fate of each token and the same ε_i"
)

# Formulas for draws of sentences: a text as the unit of a draw, then a sentence as the unit.
SENTENCES_OF_TEXT = "Pr[M(D)=y] <= exp({total})·Pr[M(D')=y]"
DISTANCE = "d(D,D')"
DISTANCES = "Σ d(D_c,D'_c)"  # sum over the columns of a row
SENTENCE_BY_SENTENCE = "Pr[M(D)=y] <= exp(Σ ε·d(s_i,s'_i))·Pr[M(D')=y]"

# Source of the number from which B, and with it every ε_i, is computed.
SOURCES: dict[BudgetSource, str] = {
    "level": (
        "the ε_i are public: each is the ε of the level of protection, or less in a text with so "
        "many tokens that they would spend more than B"
    ),
    "given": "the document budget B is public: the user set it",
    "given words": (
        "the document budget B is public: the base ε times a number of words that the user set"
    ),
    "corpus": "the document budget B is public: the base ε times the mean words of the "
    "public corpus's documents",
}

Loss = Callable[[Floats, Floats], Floats]


class NoBoundError(LexveilError):
    """Error raised if no privacy bound is proven for a measurement, or if two texts are not
    neighbours under the measurement.
    """


class PrivacyBound(NamedTuple):
    """Bound on the privacy loss: Pr[M(D) in S] <= exp(nats)·Pr[M(D') in S] + delta, for every set S
    of outputs.
    """

    nats: float
    delta: float


def check_spent(
    spent: Floats, per_token: Floats, per_part: Floats, n_parts: Floats, budget: DocumentBudget
) -> None:
    """Raise unless the noise was drawn as the measurement states: each ε_i is within its limit,
    and the ε_i of a text add up to at most B.

    The ε of each part of the budget is equal; a token has one part, or the number of parts of its
    share class.

    Args:
        spent: (n,) exact sum of the ε_i of each text.
        per_token: (n,) the largest ε_i of each text.
        per_part: (n,) the largest ε of a part of each text.
        n_parts: (n,) parts on which ε was spent.

    Raises:
        NoBoundError: if the noise differs from the plan; then nothing may be published.
    """
    if not (
        (spent == per_part * n_parts) & (spent <= budget.total) & (per_token <= budget.cap)
    ).all():
        raise NoBoundError(
            "the drawn noise differs from the plan; nothing was released. This is a bug"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Randomized map from texts to outputs, with its proven privacy bound.

    Attributes:
        domain: the map's input.
        neighbours: the relation between inputs under which the bound holds.
        metric: the distance d between two tokens.
        loss: the privacy map of one token: (n,) ε and (n,) distances to (n,) nats.
        delta: the δ of each perturbed token.
        budget: B and the largest ε_i; None if they are unknown, or for a single token.
        conditions: the preconditions of the bound.
        not_covered: sentences that name the pairs of texts for which no privacy is claimed.
        shares: the shares of the budget that the class of a token determines; None if all tokens
            have the same share.
        sampled: a phrase for the replacement of a sampled token.
        repeats: whether equal tokens of a text get the same replacement.
        copies_layout: whether white space and capitals are copied from the source.
        looks_for: whether detectors determine the action on the tokens that they find.
        empties_scripts: whether texts in a script without spaces between words are replaced by
            empty texts.
        refusals: preconditions that failed. If there is one, nothing is claimed.
    """

    domain: str
    neighbours: str
    metric: str
    loss: Loss
    delta: float = 0.0
    budget: DocumentBudget | None = None
    conditions: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    shares: BudgetShares | None = None
    sampled: str = ""
    repeats: bool = False
    copies_layout: bool = False
    looks_for: bool = False
    empties_scripts: bool = False
    refusals: tuple[str, ...] = ()

    def adding(
        self, *conditions: str, not_covered: Sequence[str] = (), **changes: Any
    ) -> Measurement:
        """Return a copy of the measurement with further conditions, further uncovered cases and
        changed attributes.
        """
        changes["not_covered"] = (*self.not_covered, *not_covered)
        return replace(self, conditions=(*self.conditions, *conditions), **changes)

    def refused(self, why: str) -> Measurement:
        """Return a copy of the measurement with a further reason why no privacy is claimed."""
        return replace(self, refusals=(*self.refusals, why))

    def bound(self, distances: Floats, epsilon: Floats | None = None) -> PrivacyBound:
        """Evaluate the privacy map: return a bound on how well two neighbouring texts can be
        distinguished.

        Args:
            distances: (n,) distances d(w_i, w'_i) of the n perturbed tokens.
            epsilon: (n,) the ε_i, as in the token log; None bounds them by B and by the largest
                ε_i.

        Raises:
            NoBoundError: if a precondition failed, or the distances or ε_i are not valid.
        """
        if self.refusals:
            raise NoBoundError("; ".join(self.refusals))
        if epsilon is None:
            epsilon, distances = self._worst(distances)
        elif self.budget is not None and math.fsum(epsilon.tolist()) > self.budget.total:
            raise NoBoundError("the ε_i add up to more than the document budget")
        if len(epsilon) != len(distances) or not (
            np.isfinite(distances).all() and (distances >= 0).all()
        ):
            raise NoBoundError("there must be one finite distance for each perturbed token")
        spent = epsilon > 0  # a token that copies the replacement of another token spends nothing
        nats = math.fsum(self.loss(epsilon[spent], distances[spent]).tolist())
        return PrivacyBound(nats, min(1.0, self.delta * int(spent.sum())))

    def guarantee(self, structure: StructureFigures | None = None) -> Guarantee:
        """Return the guarantee as the privacy record states it."""
        if self.refusals:
            return Guarantee(
                formula=NONE,
                statement=f"Not private in any proven sense: {'; '.join(self.refusals)}.",
                because=[*self.refusals],
            )
        formula = FORMULA if not self.delta else f"{FORMULA} + n·{self.delta:g}"
        figures = [] if structure is None else [self._figures(structure)]
        return Guarantee(
            formula=formula,
            statement=f"{self.neighbours[0].upper()}{self.neighbours[1:]} are "
            "indistinguishable up to "
            "exp(Σ ε_i·d(w_i,w'_i)): the sum is over the perturbed tokens on which ε is "
            "spent, d is the "
            f"{self.metric}.",
            because=[*self.conditions],
            not_covered=" ".join((*self.not_covered, *figures)) or None,
            structure=structure,
        )

    def _figures(self, structure: StructureFigures) -> str:
        """Return the sentence on how often replacing one word changes the disclosed structure. The
        sentence also names the parts of the structure that the figures do not count.
        """
        uncounted = {
            "repeated tokens": self.repeats,
            "shares of the budget": self.shares is not None,
            "findings of detectors": self.looks_for,
        }
        left_out = " and ".join(name for name, is_so in uncounted.items() if is_so)
        return (
            f"On {structure.source} ({structure.texts:,} texts), {structure.replacements:,} "
            "replacements of one word by another changed the number of tokens in "
            f"{structure.number_changed:.1%} of the cases, the number or a fate in "
            f"{structure.pattern_changed:.1%}, and any part of the structure in "
            f"{structure.structure_changed:.1%}"
            f"{f'; these figures ignore {left_out}' if left_out else ''}."
        )

    def _worst(self, distances: Floats) -> tuple[Floats, Floats]:
        """Return the ε_i with the largest total loss that B and the cap allow: the budget goes to
        the largest distances first.
        """
        if self.budget is None or not math.isfinite(self.budget.cap):
            raise NoBoundError("the ε_i are unknown and unbounded")
        ordered = np.sort(np.asarray(distances, dtype=np.float64))[::-1]
        before = np.minimum(self.budget.cap * np.arange(len(ordered)), self.budget.total)
        worst = np.minimum(self.budget.cap, self.budget.total - before)
        # A token without remaining budget still has a rounding error and a δ; the loss of a tiny ε
        # accounts for them.
        return np.maximum(worst, 2.0**-60 * self.budget.cap), ordered


def of_token(mechanism: Mechanism) -> Measurement:
    """Return the measurement for one draw of a configured mechanism. Post-processing of the
    mechanism's outputs does not change the bound.
    """
    measurement = Measurement(
        domain=f"one of {mechanism.size:,} words",
        neighbours="two words",
        metric=mechanism.metric,
        loss=mechanism.privacy_loss,
        delta=mechanism.delta,
        conditions=(mechanism.exactness,),
        sampled=mechanism.sampled,
    )
    if mechanism.post_processing is not None:
        measurement = measurement.adding(mechanism.post_processing)
    if mechanism.no_guarantee is not None:
        return measurement.refused(mechanism.no_guarantee)
    if not mechanism.is_proven:
        return measurement.refused(f"{mechanism.name}: no privacy map is declared for its code")
    return measurement


def over_tokens(token: Measurement, policy: Policy, *, seed_is_known: bool) -> Measurement:
    """Compose the draws of all tokens of a text. The draws are independent, so their privacy
    losses add up (basic composition).

    Precondition: nobody knows the seed, and with it the noise.
    """
    treatments = {
        "stop words": policy.stopwords,
        "punctuation": policy.punctuation,
        "unknown words": policy.oov,
    }
    kept_names = [name for name, treatment in treatments.items() if treatment == "keep"]
    conditions = [
        "not hidden: the number of tokens of a text, the fate of each (perturbed, kept, "
        "dropped or sampled) and its ε_i"
    ]
    if kept_names:
        conditions.append(f"kept, unprotected: {', '.join(kept_names)}; the same in both texts")
    if "sample" in treatments.values():
        conditions.append(
            f"a sampled token is replaced by {token.sampled}, whatever the source token is"
        )
    text = replace(
        token, domain="a text", neighbours=NEIGHBOURS, conditions=(*conditions, *token.conditions)
    )
    return with_known_seed(text) if seed_is_known else text


def with_shares(text: Measurement, shares: BudgetShares) -> Measurement:
    """Add budget shares that depend on the class of a token, so that ε_i differs within a text.

    The class depends on the token only, and the ε_i are disclosed, so both are equal in neighbours:
    texts whose tokens have different shares are never neighbours. Call this function before
    ``under_strategy``, because it narrows the claim that ``under_strategy`` makes about words.
    """
    parts_in_words = ", ".join(
        f"{share:g} of an ordinary token's share for {MEANING[name]}"
        for name, share in shares.differing.items()
    )
    listed = (
        f" (the list's sha256 begins with {shares.list_sha256[:12]})" if shares.list_sha256 else ""
    )
    return text.adding(
        f"shares of the budget by public classes of tokens: {parts_in_words}{listed}; not hidden: "
        "which tokens have which "
        "share, so that a word is protected only among the words with the same share",
        not_covered=[
            "Not covered: a word in place of a word with another share of the budget, which "
            "changes the ε_i."
        ],
        shares=shares,
    )


def under_strategy(
    text: Measurement, strategy: str, source: BudgetSource, budget: DocumentBudget | None = None
) -> Measurement:
    """Set the ε_i to the values that a budget strategy computes from a document budget.

    Precondition: B is public. Neighbouring texts already have the same number of tokens, and each
    token has the same action and ε_i in both. In S1 each token is a word, so replacing one
    perturbed word by another leaves the structure unchanged, unless equal tokens get the same
    replacement or capitals are copied. In the other strategies, replacing a word can change how the
    text is cut.
    """
    text = replace(text, budget=budget)
    if source == "data":
        return text.refused(
            "the document budget is computed from the private texts, and every ε_i from the budget"
        )
    if budget is not None and not math.isfinite(budget.cap):
        text = text.refused("the ε of a token has no limit, so short texts remain unchanged")
    text = text.adding(SOURCES[source])
    if strategy in BY_WORDS and source != "level":
        text = text.adding(
            "B is divided by the number of all words of a text, so that the ε_i reveal this number"
        )
    if strategy != "S1":
        cut = (
            "Not covered: the text itself decides how it is cut into tokens. Replacing one "
            "word by another can change "
            "the number of tokens, their fates or the ε_i, and between such texts nothing is "
            "claimed."
        )
        return text.adding(not_covered=[cut])
    other = (
        "Not covered: texts with another number of words, and words with another fate, such as a "
        "stop word or an unknown word in place of a perturbed word."
    )
    if text.repeats or text.looks_for:
        return text.adding(not_covered=[other])
    alike = " and has the same capitals" if text.copies_layout else ""
    alike += " and has the same share of the budget" if text.shares is not None else ""
    alike += ", neither text being emptied for its script," if text.empties_scripts else ""
    return text.adding(
        "each token is one word: two texts that differ in one word that is perturbed in "
        f"both{alike} always have the same structure, so each such word is protected by "
        "ε_i·d(w_i,w'_i)",
        not_covered=[other],
    )


def with_screened_words(text: Measurement, parts: Sequence[str]) -> Measurement:
    """Add the word screen to a measurement. If a draw gives a word of the chosen parts of a public
    word list, the screen replaces it by the nearest word outside them, which is post-processing of
    each draw.
    """
    return text.adding(
        f"if a word of the public lists {', '.join(parts)} is drawn, the nearest word outside "
        "these lists is written, whatever the source word is"
    )


def with_scripts_emptied(text: Measurement) -> Measurement:
    """Add a first step that replaces texts in a script without spaces between words by empty
    texts.

    A public function replaces these texts, and the privacy map applies to the texts after it. So
    two emptied texts are indistinguishable, and an emptied text has the structure of an empty text.
    Call this function before ``under_strategy``, because one word can change whether a text is
    emptied.
    """
    return text.adding(
        "a text of which at least half is in a script without spaces between words is replaced "
        "by an empty text",
        not_covered=[
            "Not covered: two texts of which one is emptied for its script and the other is not, "
            "even if they differ in one word only."
        ],
        empties_scripts=True,
    )


def over_columns(text: Measurement, n_columns: int | None) -> Measurement:
    """Return the measurement for rows with several text columns. The texts of one row count as one
    text with one budget.

    Args:
        n_columns: number of text columns; None if a column may select several texts of a row.
    """
    if n_columns == 1:
        return text
    if n_columns is None:
        return text.adding(
            "all texts that the columns select in a row count as one text; not hidden: how many "
            "there are, and which of them contains a token",
            domain="the texts of a row",
        )
    return text.adding(
        f"the {n_columns} text columns of a row count as one text; not hidden: which column "
        "contains a token",
        domain=f"the texts of {n_columns} columns of a row",
    )


def repeated_alike(text: Measurement) -> Measurement:
    """Add the rule that equal tokens of a text get the same replacement, for the ε of one token.

    Given the positions of equal tokens, the first of each is perturbed independently and the others
    copy its replacement, which is post-processing. There is no bound between texts whose equal
    tokens are at different positions: a copy never differs from its original, but two draws do.
    """
    return text.adding(
        "not hidden: which tokens of a text are equal; the sum is over the distinct tokens",
        neighbours=f"{NEIGHBOURS}, whose tokens are repeated at the same places,",
        not_covered=[
            "Not covered: texts whose tokens are repeated at other places, even if they differ "
            "in one word only."
        ],
        repeats=True,
    )


def with_layout_copied(text: Measurement) -> Measurement:
    """Add the rule that white space and capitals are copied from the source. Call this function
    before ``under_strategy``, because another word can have other capitals.
    """
    return text.adding(
        "kept, unprotected: layout; white space and capitals are copied and the same in both texts",
        not_covered=[
            "Not covered: texts with another layout, even if they differ only in one word with "
            "other capitals; the figures do not count such pairs."
        ],
        copies_layout=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceMeasurement(Measurement):
    """Measurement of a run that replaces texts by sentences of a public sentence bank.

    Attributes:
        per_text: number of draws for a text; None if there is one draw for each sentence of the
            text.
        n_columns: number of text columns; the texts of a row count as one text.
        diameter: D, the largest possible distance between two units.
        epsilon: the epsilon of a draw.
    """

    per_text: int | None
    n_columns: int
    diameter: float
    epsilon: float

    @property
    def local_epsilon(self) -> float:
        """ε·D in nats: a bound on the privacy loss of one draw that holds for every unit."""
        return self.epsilon * self.diameter

    def guarantee(self, structure: StructureFigures | None = None) -> Guarantee:
        """Return the guarantee as the privacy record states it. The argument ``structure`` is not
        used.
        """
        del structure
        if self.refusals:
            # super() without arguments fails in a dataclass with slots
            return Measurement.guarantee(self)
        if self.per_text is not None:
            several = self.n_columns > 1
            total = f"{self.per_text}·ε·{DISTANCES if several else DISTANCE}"
            formula = SENTENCES_OF_TEXT.format(total=total)
            n_draws = self.per_text * self.n_columns
            local = f"{n_draws}·ε·D = {n_draws * self.local_epsilon:g}"
            whose = "d is the distance of the vectors of the texts"
            whose += ", and the sum is over the columns" if several else ""
        else:
            formula = SENTENCE_BY_SENTENCE
            total = "Σ ε·d(s_i,s'_i)"
            local = f"ε·D = {self.local_epsilon:g} for each sentence"
            whose = "the sum is over the sentences, d is the distance of their vectors"
        return Guarantee(
            formula=formula,
            statement=f"{self.neighbours[0].upper()}{self.neighbours[1:]} are indistinguishable up "
            f"to exp({total}): {whose}, in the {self.metric}, and ε = {self.epsilon:g} for each "
            f"sentence that is written. The largest possible distance is D = {self.diameter:g}, "
            f"so the output also satisfies local differential privacy with a loss of {local} "
            "nats.",
            because=[*self.conditions],
            not_covered=" ".join(self.not_covered) or None,
        )


def of_sentences(
    draw: Measurement,
    per_text: int | None,
    n_columns: int,
    *,
    diameter: float,
    budget: DocumentBudget,
    longest: int,
) -> SentenceMeasurement:
    """Compose the sentence draws of a text: the privacy losses of the draws add up
    (docs/proofs/sentences.md).

    Args:
        draw: the measurement of one draw.
        per_text: number of draws for a text; None for one draw for each sentence of the text.
        n_columns: number of texts of a row.
        diameter: D, the largest possible distance between two units.
        budget: the ε of a draw, and of all draws of a text.
        longest: most words of a sentence; a longer sentence counts as several.
    """
    if per_text is not None:
        neighbours = "any two texts"
        disclosed = (
            f"not hidden: that there is a text; every text becomes {per_text} sentences, so that "
            "neither its words nor their number nor its style is disclosed"
        )
        not_covered: tuple[str, ...] = ()
    else:
        neighbours = "any two texts with the same number of sentences"
        disclosed = (
            "not hidden: the number of sentences of a text, where a sentence of more than "
            f"{longest} words counts as several; each becomes one sentence, so that nothing else "
            "of the text's style is disclosed"
        )
        not_covered = ("Not covered: texts with another number of sentences.",)
    return SentenceMeasurement(
        domain="a text",
        neighbours=neighbours,
        metric=draw.metric,
        loss=draw.loss,
        delta=draw.delta,
        budget=budget,
        conditions=(
            disclosed,
            "the bank of sentences, the model and its purposes are public and were made without "
            "private texts",
            *draw.conditions,
        ),
        not_covered=not_covered,
        refusals=draw.refusals,
        per_text=per_text,
        n_columns=n_columns,
        diameter=diameter,
        epsilon=budget.cap,
    )


def with_known_seed(text: Measurement) -> Measurement:
    """Return a copy of the measurement that claims nothing, because somebody knows the seed and
    with it the noise.
    """
    return text.refused("the seed of the noise is known, so the noise can be subtracted")


def with_rows_withheld(text: Measurement) -> Measurement:
    """Add the rule that rows are left out if their data subject has no budget left in the ledger.
    The remaining budget depends on the ε_i of all releases.
    """
    return text.adding(
        "not hidden: that a row is withheld, which reveals that its subject (without a subject "
        "column, the same text) was released before, in this output or another, unless the row "
        "alone costs more than the cap"
    )


_IN_PLACE = {
    "perturb": "treated like any other token",
    "sample": "each replaced by {sampled}",
    "drop": "left out",
    "placeholder": "each replaced by the name of its type",
    "pseudonym": (
        "each replaced by a random name of a public list, equal tokens of a document by the same "
        "name, so that it is not hidden which tokens are equal"
    ),
    "digits": "each digit and letter replaced by a random one, so that the form (how many "
    "there are, capitals, and the "
    "marks between) is not hidden",
}


def with_detectors(
    text: Measurement, sources: Sequence[str], actions: Mapping[str, str], other: str
) -> Measurement:
    """Add the rule that detectors (such as finders of names) decide the action on the tokens that
    they find. Call this function before ``under_strategy``, because detectors void the claim that
    ``under_strategy`` makes about words.

    Detectors may use the whole text, so one changed word can change their findings anywhere in the
    text. The findings are therefore part of the structure, which neighbours share. Given the
    structure, the replacement of a found token depends on the structure and on noise, and not on
    the token. Nothing is claimed for found tokens that are not perturbed.

    Args:
        sources: names of the detectors.
        actions: action by type; names of ``FOUND_ACTIONS``.
        other: action for other types.
    """
    by_action: dict[str, list[str]] = {}
    in_place = {action: what.format(sampled=text.sampled) for action, what in _IN_PLACE.items()}
    for name, action in sorted(actions.items()):
        by_action.setdefault(action, []).append(name)
    told = [
        f"{', '.join(names)}: {in_place[action]}" for action, names in sorted(by_action.items())
    ]
    others = "all other types" if told else "all types"
    alike = (
        ["whose tokens with pseudonyms are equal at the same places"]
        if "pseudonym" in by_action
        else []
    )
    alike += (
        ["whose tokens with redrawn characters have the same forms"]
        if "digits" in by_action
        else []
    )
    same = f"with the same types found at the same places{''.join(f', {what}' for what in alike)},"
    return text.adding(
        f"found by {' and '.join(sources)}; not hidden: which tokens were found, and their "
        "types; no claim relies on the findings: a token that is not found is treated like any "
        "other token",
        "unprotected: that tokens were found, and their types. "
        f"{'; '.join([*told, ''])}{others}: "
        f"{in_place[other]}",
        neighbours=f"{text.neighbours.removesuffix(',')}, {same}",
        not_covered=[
            "Not covered: texts in which other tokens are found. One changed word can change the "
            "findings anywhere in a text."
        ],
        looks_for=True,
    )


def unchanged() -> Guarantee:
    """Return the guarantee statement for an output that is an unchanged copy of its source."""
    return Guarantee(
        formula=NONE, statement="The text is unchanged.", because=["no mechanism was applied"]
    )
