"""Claims of the papers about the shape of results, which depends less on models and data than the
numbers do.

Each claim is a set of comparisons "this is at most that". A comparison that contradicts the claim
by less than the spread (the standard errors of both sides together) may be chance, and is counted
separately. The verdict is "holds", "does not hold" or "cannot be told"; the last one means that the
claim was not measured, or that the evidence against it may be chance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from examples.replication.measured import LISTS, Measured, MeasureKey
from lexveil.core.mechanisms.variants import base_of
from lexveil.lab.evaluation.metrics.attack import ADAPTIVE, GAIN, STATIC, STATIC_ACCURACY
from lexveil.lab.evaluation.metrics.base import Score
from lexveil.lab.evaluation.metrics.membership import MEMBERSHIP
from lexveil.lab.evaluation.metrics.perplexity import PERPLEXITY
from lexveil.lab.evaluation.metrics.similarity import COSINE
from lexveil.lab.evaluation.metrics.utility import ON_CLEAN_MICRO, UTILITY_MICRO
from lexveil.lab.report import formatting
from lexveil.lab.report.data import Record
from lexveil.lab.report.evaluation_values import MAJORITY, Values, keys_of
from lexveil.lab.report.formatting import MeanSd
from lexveil.lab.report.records import Key
from lexveil.lab.report.table import Column, Table

Verdict = Literal["holds", "does not hold", "cannot be told"]
VERDICTS: tuple[Verdict, ...] = ("holds", "does not hold", "cannot be told")

FROM_EPSILON = 5.0  # smallest ε at which the strategies must be in order
LISTS_BY = (1.0, 3.0)  # epsilons at which one-dimensional methods must be similar
HIGH = 0.5  # a cosine closer to that of the same text than to that of an unrelated text
GEOMETRIC = LISTS[0]
SMALL = 5.0  # largest ε at which words are easier to read according to CLMLDP
LARGE = 10.0  # smallest ε at which collocations are better according to CLMLDP
GUESSING_TO = 2.0  # TEM: largest ε at which an attacker can only guess
FORMAL_TO = 4.0  # TEM: smallest ε without useful formal privacy
NEAR = 0.03
FIGURE_1_BUDGETS = {"S1": 1.67, "S2": 1.67, "S3": 2.5, "S4": 2.5}
WORDS_PER_TEXT = {
    "cola": 7.80,
    "mrpc": 19.54,
    "rte": 44.48,
    "sst2": 8.82,
    "trustpilot": 52.16,
    "yelp": 186.87,
}
IQR_PER_SD = 1.349  # interquartile range of a normal distribution per standard deviation


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison that supports a claim if ``lesser`` is at most ``greater``.

    Attributes:
        where: data set, mechanism and both sides in words, the lesser first.
        lesser, greater: values of both sides.
    """

    where: str
    lesser: MeanSd
    greater: MeanSd

    @property
    def gap(self) -> float:
        """Margin of the comparison; below 0 it contradicts the claim."""
        return self.greater.mean - self.lesser.mean

    @property
    def spread(self) -> float | None:
        """Standard error of the gap, if both sides are independent; None if neither has a standard
        error.
        """
        errors = [side.error for side in (self.lesser, self.greater) if side.error is not None]
        return math.hypot(*errors) if errors else None

    @property
    def is_against(self) -> bool:
        """Whether the comparison contradicts the claim."""
        return self.gap < 0

    @property
    def is_clear(self) -> bool:
        """Whether the comparison supports the claim by the spread or more; if the spread is
        unknown, whether it supports the claim at all.
        """
        return self.gap > 0 and (self.spread is None or self.gap >= self.spread)

    @property
    def is_beyond(self) -> bool:
        """Whether the comparison contradicts the claim by the spread or more; if the spread is
        unknown, whether it contradicts the claim at all.
        """
        return self.is_against and (self.spread is None or -self.gap >= self.spread)


@dataclass(frozen=True, slots=True)
class ReplicationClaim:
    """One claim with the comparisons that test it.

    Attributes:
        claim: the claim in one sentence.
        source: table or figure of the paper.
        comparisons: all comparisons that were measured.
        missing: the runs that are needed, if there are no comparisons.
        most: whether the claim only has to hold in more than half of the comparisons.
    """

    claim: str
    source: str
    comparisons: Sequence[Comparison]
    missing: str
    most: bool = False

    @property
    def n_within(self) -> int:
        """Number of comparisons that contradict the claim by less than the spread."""
        return sum(
            comparison.is_against and not comparison.is_beyond for comparison in self.comparisons
        )

    @property
    def n_beyond(self) -> int:
        """Number of comparisons that contradict the claim by the spread or more."""
        return sum(comparison.is_beyond for comparison in self.comparisons)

    @property
    def n_clear(self) -> int:
        """Number of comparisons that support the claim by the spread or more."""
        return sum(comparison.is_clear for comparison in self.comparisons)

    @property
    def verdict(self) -> Verdict:
        """Verdict on the claim, over all comparisons or over most of them.

        A claim that has to hold in most comparisons holds only if the comparisons that clearly
        support it outnumber all that contradict it: otherwise chance alone could explain the
        result.
        """
        n = len(self.comparisons)
        if not n:
            return "cannot be told"
        allowed = (n - 1) // 2 if self.most else 0
        n_against = self.n_within + self.n_beyond
        if n_against <= allowed and (not self.most or self.n_clear > n_against):
            return "holds"
        return "cannot be told" if self.n_beyond <= allowed else "does not hold"

    @property
    def evidence(self) -> str:
        """The comparison that contradicts the claim most, or else supports it least, with its
        numbers.
        """
        if not self.comparisons:
            return self.missing
        worst = min(self.comparisons, key=lambda one: one.gap)
        spread = "spread unknown" if worst.spread is None else f"spread {worst.spread:.3f}"
        kind = "largest shortfall" if worst.is_against else "smallest margin"
        sides = f"{worst.lesser.mean:.3f} and {worst.greater.mean:.3f}"
        chance = "may be chance: " if self.verdict == "cannot be told" else ""
        return f"{chance}{kind} {abs(worst.gap):.3f} ({spread}): {worst.where}: {sides}"


def claims_of(
    paper: str,
    values_of: Mapping[str, Values],
    statistics: Sequence[Record],
    tradeoff: Mapping[str, Any] | None,
    known: Measured,
) -> list[ReplicationClaim]:
    """Return the claims of one paper.

    Args:
        paper: name in published.csv.
        values_of: measured values by data set.
        statistics: statistics of plausible deniability.
        tradeoff: result of ``tradeoff.measure_project``; None if it was not run.
        known: all measured figures, by the names of published.csv.
    """
    if paper == "CLMLDP":
        return [
            figure_1_is_met(known),
            cosine_rises(values_of),
            strategies_in_order(values_of),
            words_read_better_at_small_epsilon(values_of),
            collocations_read_better_at_large_epsilon(values_of),
            collocations_keep_more(values_of, "madlib", "CLMLDP Table 3"),
            greedy_keeps_more(values_of),
            static_is_weaker(values_of),
            words_never_gain(values_of),
            collocations_keep_more(values_of, "mahalanobis", "CLMLDP Table 5"),
            collocations_keep_more(values_of, "vickrey", "CLMLDP Table 6"),
            vickrey_keeps_more_at_small_epsilon(values_of),
            budgets_are_as_printed(known),
        ]
    if paper == "TEM":
        return [
            tem_keeps_more(values_of),
            attackers_guess_at_small_epsilon(values_of),
            madlib_resists_longer(values_of),
        ]
    if paper == "Vickrey":
        return tradeoff_claims(tradeoff)
    return [
        lists_are_similar(values_of),
        comes_out_as_itself_more_often(statistics),
        fewer_words_come_out(statistics),
        lists_keep_more(values_of),
        geometric_keeps_more(values_of),
        geometric_hides_less(values_of),
        lists_are_faster(known),
        lists_take_less_memory(known),
    ]


def figure_1_is_met(known: Measured) -> ReplicationClaim:
    """Claim: the ε of each token of Figure 1 equals the printed digits."""
    comparisons = []
    for strategy, printed in FIGURE_1_BUDGETS.items():
        key = MeasureKey("token_budget", frozenset(["sentences"]), "any", "", strategy, 10.0)
        if key in known:
            off = MeanSd(abs(round(known[key].mean, 2) - printed), None)
            comparisons.append(Comparison(f"{strategy}, off by and 0", off, MeanSd(0.0, None)))
    return ReplicationClaim(
        "A token of the example has the ε 1.67 in S1 and S2, and 2.5 in S3 and S4.",
        "CLMLDP Figure 1",
        comparisons,
        "needs the collocations of a corpus to segment the example",
    )


def budgets_are_as_printed(known: Measured) -> ReplicationClaim:
    """Claim: the words per text, which determine the budgets of Table 8, agree within 3 %."""
    comparisons = []
    for dataset, printed in WORDS_PER_TEXT.items():
        key = MeasureKey("words_per_text", frozenset([dataset]), "none", "", "none", 0.0)
        if key in known:
            off = MeanSd(abs(known[key].mean / printed - 1), None)
            comparisons.append(
                Comparison(f"{dataset}, relative error and 0.03", off, MeanSd(0.03, None))
            )
    return ReplicationClaim(
        "Texts have the words of Table 8, within 3 %.",
        "CLMLDP Table 8",
        comparisons,
        "needs plans of the data sets",
    )


def cosine_rises(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """Claim: texts become more similar with more ε, for every mechanism and strategy."""
    comparisons = []
    for dataset, of in values_of.items():
        for mechanism, strategy in dict.fromkeys(key[:2] for key in keys_of(of)):
            line = {
                key[2].number: value
                for (name, key), value in of.items()
                if _is_cosine(name, key, mechanism, strategy)
            }
            comparisons += _rising(f"{dataset}, {mechanism}, {strategy}", line)
    return ReplicationClaim(
        "Cosine similarity rises with ε for each strategy.",
        "CLMLDP Table 1",
        comparisons,
        "needs the cosine of runs at two epsilons, and a difference between them",
    )


def strategies_in_order(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """Claim: S3 ≥ S2 ≥ S1 in cosine at larger ε, because collocations lose less than words, and
    because each token gets more budget.
    """
    comparisons = []
    for dataset, of in values_of.items():
        for mechanism, strategy, noise in keys_of(of):
            before = {"S2": "S1", "S3": "S2"}.get(strategy)
            if before is None or noise.number < FROM_EPSILON:
                continue
            comparisons += _pair(
                of,
                (COSINE.name, (mechanism, before, noise)),
                (COSINE.name, (mechanism, strategy, noise)),
                f"{dataset}, {mechanism}, {noise.title}, {before} and {strategy}",
            )
    return ReplicationClaim(
        f"In cosine S3 is at least S2, and S2 at least S1, from ε {FROM_EPSILON:g} on.",
        "CLMLDP Table 1",
        comparisons,
        f"needs the cosine of S1 and S2, or of S2 and S3, at ε {FROM_EPSILON:g} or more",
    )


def tem_keeps_more(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """Claim: TEM has at least the utility of MADLIB at the same ε, in the paper's setting:
    classifiers trained on rewritten texts, evaluated on clean texts.
    """
    comparisons = []
    for dataset, of in values_of.items():
        for mechanism, strategy, noise in keys_of(of):
            if mechanism == "tem":
                comparisons += _pair(
                    of,
                    (ON_CLEAN_MICRO.name, ("madlib", strategy, noise)),
                    (ON_CLEAN_MICRO.name, (mechanism, strategy, noise)),
                    f"{dataset}, {strategy}, {noise.title}, madlib and tem",
                )
    return ReplicationClaim(
        "TEM keeps at least the utility of MADLIB at equal ε.",
        "TEM Figure 1a",
        comparisons,
        "needs the utility of runs with tem and with madlib",
    )


def lists_are_similar(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """Claim: one-dimensional methods reach a high cosine at the largest ε of the grid between 1 and
    3.
    """
    comparisons = []
    low, high = LISTS_BY
    for dataset, of in values_of.items():
        for mechanism, strategy in dict.fromkeys(
            key[:2] for key in keys_of(of) if base_of(key[0]) in LISTS
        ):
            at = {
                key[2].number: value
                for (name, key), value in of.items()
                if _is_cosine(name, key, mechanism, strategy) and low <= key[2].number <= high
            }
            if at:
                epsilon = max(at)
                where = (
                    f"{dataset}, {mechanism}, {strategy}, ε {epsilon:g}, {HIGH:g} and the cosine"
                )
                comparisons.append(Comparison(where, MeanSd(HIGH, None), at[epsilon]))
    return ReplicationClaim(
        f"One-dimensional methods reach a cosine of at least {HIGH:g} at ε {low:g} to {high:g}.",
        "1-Diffractor Table 2",
        comparisons,
        f"needs the cosine of runs with {formatting.listed(list(LISTS))} at ε {low:g} to {high:g}",
    )


def comes_out_as_itself_more_often(measured: Sequence[Record]) -> ReplicationClaim:
    """Claim: N_w rises with ε."""
    return ReplicationClaim(
        "N_w, how often a word comes out as itself, rises with ε.",
        "1-Diffractor Figure 4",
        _deniability(measured, "n_w", rises=True),
        "needs N_w at two epsilons, and a difference between them",
    )


def fewer_words_come_out(measured: Sequence[Record]) -> ReplicationClaim:
    """Claim: S_w falls with ε."""
    return ReplicationClaim(
        "S_w, how many different words come out of one, falls with ε.",
        "1-Diffractor Figure 4",
        _deniability(measured, "s_w", rises=False),
        "needs S_w at two epsilons, and a difference between them",
    )


def static_is_weaker(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """Claim: on rewritten texts, an attacker trained on rewritten texts is better than an attacker
    trained on clean texts.
    """
    comparisons = []
    for dataset, of in values_of.items():
        for mechanism, strategy, noise in keys_of(of):
            key = (mechanism, strategy, noise)
            where = f"{dataset}, {mechanism}, {strategy}, {noise.title}, static and adaptive"
            comparisons += _pair(of, (STATIC.name, key), (ADAPTIVE.name, key), where)
    return ReplicationClaim(
        "The static attacker is at most as good as the adaptive one, in most runs.",
        "CLMLDP Table 4",
        comparisons,
        "needs attacks on runs",
        most=True,
    )


def _between_strategies(
    values_of: Mapping[str, Values],
    score: Score,
    mechanism: str,
    lesser: str,
    greater: str,
    epsilons: tuple[float, float],
) -> list[Comparison]:
    """Return comparisons in which a score of one strategy must be at most the score of another, at
    each ε of a range.
    """
    comparisons = []
    for dataset, of in values_of.items():
        for name, strategy, noise in keys_of(of):
            if (name, strategy) != (mechanism, greater):
                continue
            if not epsilons[0] <= noise.number <= epsilons[1]:
                continue
            where = f"{dataset}, {mechanism}, {noise.title}, {lesser} and {greater}"
            low = (score.name, (mechanism, lesser, noise))
            comparisons += _pair(of, low, (score.name, (mechanism, greater, noise)), where)
    return comparisons


def words_read_better_at_small_epsilon(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """Claim: the perplexity of S1 is lower than that of S3 at small ε."""
    return ReplicationClaim(
        f"Words (S1) have a lower perplexity than collocations (S3) up to ε {SMALL:g}.",
        "CLMLDP Table 2",
        _between_strategies(values_of, PERPLEXITY, "madlib", "S1", "S3", (0.0, SMALL)),
        "needs the perplexity of S1 and S3, and so a corpus",
    )


def collocations_read_better_at_large_epsilon(
    values_of: Mapping[str, Values],
) -> ReplicationClaim:
    """Claim: the perplexity of S3 is lower than that of S1 at large ε."""
    return ReplicationClaim(
        f"Collocations (S3) have a lower perplexity than words (S1) from ε {LARGE:g} on.",
        "CLMLDP Table 2",
        _between_strategies(values_of, PERPLEXITY, "madlib", "S3", "S1", (LARGE, math.inf)),
        "needs the perplexity of S1 and S3, and so a corpus",
    )


def collocations_keep_more(
    values_of: Mapping[str, Values], mechanism: str, source: str
) -> ReplicationClaim:
    """Claim: S3 keeps more utility than S1 at large ε."""
    return ReplicationClaim(
        f"Collocations (S3) keep more utility of {mechanism} than words (S1) from ε {LARGE:g} on.",
        source,
        _between_strategies(values_of, UTILITY_MICRO, mechanism, "S1", "S3", (LARGE, math.inf)),
        f"needs the utility of {mechanism} in S1 and S3",
        most=True,
    )


def greedy_keeps_more(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """Claim: S3 (GST) keeps more utility than S4 (MST)."""
    return ReplicationClaim(
        f"GST (S3) keeps more utility than MST (S4) from ε {LARGE:g} on.",
        "CLMLDP Table 3",
        _between_strategies(values_of, UTILITY_MICRO, "madlib", "S4", "S3", (LARGE, math.inf)),
        "needs the utility of S3 and S4",
        most=True,
    )


def vickrey_keeps_more_at_small_epsilon(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """Claim (the anomaly of Table 6): Vickrey in S1 has more utility at the smallest ε than at the
    largest; the paper has 0.1 and 25.
    """
    comparisons = []
    for dataset, of in values_of.items():
        line = {
            key[2].number: value
            for (name, key), value in of.items()
            if name == UTILITY_MICRO.name and key[:2] == ("vickrey", "S1")
        }
        if len(line) > 1:
            low = min(line)
            high = max(line)
            where = f"{dataset}, vickrey, S1, ε {high:g} and {low:g}"
            comparisons.append(Comparison(where, line[high], line[low]))
    return ReplicationClaim(
        "Words (S1) of Vickrey keep more utility at the smallest ε than at the largest.",
        "CLMLDP Table 6",
        comparisons,
        "needs the utility of vickrey in S1 at two epsilons",
    )


def words_never_gain(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """Claim: the relative gain of S1 is never above 0."""
    comparisons = []
    for dataset, of in values_of.items():
        for (name, key), value in of.items():
            if name == GAIN.name and key[:2] == ("madlib", "S1"):
                where = f"{dataset}, ε {key[2].number:g}, gain and 0"
                comparisons.append(Comparison(where, value, MeanSd(0.0, None)))
    return ReplicationClaim(
        "The relative gain of words (S1) is never above 0.",
        "CLMLDP Table 4",
        comparisons,
        "needs a data set with a label and an attribute",
    )


def attackers_guess_at_small_epsilon(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """Claim: membership inference is no better than guessing up to ε 2."""
    comparisons = []
    for dataset, of in values_of.items():
        for (name, key), value in of.items():
            if name == MEMBERSHIP.name and 0 < key[2].number <= GUESSING_TO and key != MAJORITY:
                off = MeanSd(abs(value.mean - 0.5), value.sd, value.error)
                where = f"{dataset}, {key[0]}, ε {key[2].number:g}, distance from 0.5 and {NEAR:g}"
                comparisons.append(Comparison(where, off, MeanSd(NEAR, None)))
    return ReplicationClaim(
        f"Membership inference guesses up to ε {GUESSING_TO:g} (AUC within {NEAR:g} of 0.5).",
        "TEM Figure 1b",
        comparisons,
        "needs membership inference at small ε",
    )


def madlib_resists_longer(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """Claim: the membership AUC of MADLIB is at most the AUC of TEM from ε 4 on."""
    comparisons = []
    for dataset, of in values_of.items():
        for mechanism, strategy, noise in keys_of(of):
            if mechanism == "tem" and noise.number >= FORMAL_TO:
                comparisons += _pair(
                    of,
                    (MEMBERSHIP.name, ("madlib", strategy, noise)),
                    (MEMBERSHIP.name, (mechanism, strategy, noise)),
                    f"{dataset}, {noise.title}, madlib and tem",
                )
    return ReplicationClaim(
        f"From ε {FORMAL_TO:g} on membership inference is at most as good against MADLIB as "
        "against TEM.",
        "TEM Figure 1b",
        comparisons,
        "needs membership inference of both mechanisms",
    )


def lists_keep_more(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """Claim: the geometric 1-Diffractor keeps at least the utility of each other mechanism at equal
    ε.
    """
    comparisons = []
    for dataset, of in values_of.items():
        keys = keys_of(of)
        lists = [key for key in keys if key[0].startswith(GEOMETRIC)]
        for mechanism, strategy, noise in keys:
            if base_of(mechanism) in LISTS:
                continue
            for own in lists:
                if own[1:] == (strategy, noise) and own[0].endswith("L0"):
                    comparisons += _pair(
                        of,
                        (UTILITY_MICRO.name, (mechanism, strategy, noise)),
                        (UTILITY_MICRO.name, own),
                        f"{dataset}, {noise.title}, {mechanism} and {own[0]}",
                    )
    return ReplicationClaim(
        "In most runs the geometric 1-Diffractor has at least the utility of the others at "
        "equal ε.",
        "1-Diffractor Table 3, Figure 3",
        comparisons,
        "needs the utility of runs with a 1-Diffractor and with others",
        most=True,
    )


def geometric_keeps_more(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """Claim: the geometric 1-Diffractor keeps at least the utility of TEM on the same lists."""
    return ReplicationClaim(
        "In most runs geometric noise has at least the utility of TEM on the same lists.",
        "1-Diffractor Table 1, Figure 2",
        _between_lists(values_of, UTILITY_MICRO),
        "needs the utility of both 1-Diffractors",
        most=True,
    )


def geometric_hides_less(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """Claim: the static attacker is at least as good against the geometric 1-Diffractor as against
    TEM on lists.
    """
    return ReplicationClaim(
        "On the same lists the static attacker is at least as good against geometric noise as "
        "against TEM.",
        "1-Diffractor Table 4, Figure 5",
        _between_lists(values_of, STATIC_ACCURACY),
        "needs attacks on both 1-Diffractors",
        most=True,
    )


def _between_lists(values_of: Mapping[str, Values], score: Score) -> list[Comparison]:
    comparisons = []
    for dataset, of in values_of.items():
        for mechanism, strategy, noise in keys_of(of):
            if not mechanism.startswith(GEOMETRIC):
                continue
            other = mechanism.replace(GEOMETRIC, LISTS[1])
            comparisons += _pair(
                of,
                (score.name, (other, strategy, noise)),
                (score.name, (mechanism, strategy, noise)),
                f"{dataset}, {noise.title}, {other} and {mechanism}",
            )
    return comparisons


def lists_are_faster(known: Measured) -> ReplicationClaim:
    """Claim: the geometric 1-Diffractor is faster than MADLIB by the printed factors."""
    comparisons = [
        Comparison(f"{measure}, {least:g} and times as fast", MeanSd(least, None), known[key])
        for measure, least in (("speedup_words", 15.0), ("speedup_texts", 90.0))
        for key in [MeasureKey(measure, frozenset(["words"]), GEOMETRIC, "", "any", 0.0)]
        if key in known
    ]
    return ReplicationClaim(
        "The geometric 1-Diffractor is 15 times as fast as MADLIB on words, 90 times on texts.",
        "1-Diffractor Figure 6",
        comparisons,
        "needs both mechanisms",
    )


def lists_take_less_memory(known: Measured) -> ReplicationClaim:
    """Claim: the 1-Diffractors take less memory than each other mechanism."""
    memory = {key.mechanism: value for key, value in known.items() if key.measure == "memory_total"}
    comparisons = [
        Comparison(f"MiB of {own} and {other}", memory[own], value)
        for own in LISTS
        if own in memory
        for other, value in memory.items()
        if other not in LISTS
    ]
    return ReplicationClaim(
        "The 1-Diffractors take less memory per word than all others.",
        "1-Diffractor Table 5, Figure 7",
        comparisons,
        "needs both kinds of mechanisms",
    )


def tradeoff_claims(tradeoff: Mapping[str, Any] | None) -> list[ReplicationClaim]:
    """Return the claims of Vickrey about inference error and ε."""
    figures = {} if tradeoff is None else tradeoff["figures"]
    lines = {label: _errors(points) for label, points in figures.get("2", {}).items()}
    nearest = {label: _errors(points) for label, points in figures.get("3", {}).items()}
    falls = [one for label, line in lines.items() for one in _rising(label, line, -1)]
    missing = "needs the trade-off of the preset vickrey"
    source = "Vickrey Figure 2"
    first = ["madlib", "vickrey-t0.25", "vickrey-t0.5", "vickrey-t0.75"]
    rises = [one for pair in itertools.pairwise(first) for one in _lines_apart(lines, *pair)]
    second = _lines_apart(lines, "madlib", "vickrey-t1")
    half = _lines_apart(lines, "vickrey-t1", "vickrey-t0.75")
    gains = [
        Comparison(
            f"ε {epsilon:g}, gain of the third and of the second neighbour", third, to_second
        )
        for epsilon, third, to_second in _gains(nearest)
    ]
    return [
        ReplicationClaim("Inference error falls as ε grows.", source, falls, missing),
        ReplicationClaim(
            "At equal ε inference error rises with t from 0 to 0.75.", source, rises, missing
        ),
        ReplicationClaim("It does not rise further from t 0.75 to 1.", source, half, missing),
        ReplicationClaim(
            "The second neighbour alone (t 1) has at least the error of MADLIB.",
            source,
            second,
            missing,
        ),
        ReplicationClaim(
            "The gain from the first to the second neighbour is the largest.",
            "Vickrey Figure 3",
            gains,
            missing,
            most=True,
        ),
    ]


def _errors(points: Sequence[tuple[float, float, float, float]]) -> dict[float, MeanSd]:
    """Return the inference error at each ε, with its standard error over runs."""
    return {epsilon: MeanSd(error, None, spread) for epsilon, error, _, spread in points}


def _lines_apart(
    lines: Mapping[str, Mapping[float, MeanSd]], lesser: str, greater: str
) -> list[Comparison]:
    low = lines.get(lesser, {})
    high = lines.get(greater, {})
    return [
        Comparison(f"ε {epsilon:g}, {lesser} and {greater}", low[epsilon], high[epsilon])
        for epsilon in low
        if epsilon in high
    ]


def _gains(nearest: Mapping[str, Mapping[float, MeanSd]]) -> list[tuple[float, MeanSd, MeanSd]]:
    """Return (ε, gain from the third neighbour, gain from the second neighbour) for each ε."""
    first, second, third = (nearest.get(f"nearest {place}", {}) for place in (1, 2, 3))
    return [
        (
            epsilon,
            _difference(third[epsilon], second[epsilon]),
            _difference(second[epsilon], first[epsilon]),
        )
        for epsilon in first
        if epsilon in second and epsilon in third
    ]


def _difference(of: MeanSd, less: MeanSd) -> MeanSd:
    return MeanSd(of.mean - less.mean, None, math.hypot(of.error or 0.0, less.error or 0.0))


def shapes_table(claims: Sequence[ReplicationClaim]) -> Table:
    """Return a table with one row per claim."""
    columns = [
        Column("claim", "Claim"),
        Column("source", "Source"),
        Column("verdict", "Verdict"),
        Column("n", "Compared", formatting.count, "Comparisons"),
        Column("n_clear", "clearly for it", formatting.count, "Comparisons"),
        Column("n_within", "against, within the spread", formatting.count, "Comparisons"),
        Column("n_beyond", "against, beyond it", formatting.count, "Comparisons"),
        Column("evidence", "Nearest to contradicting it"),
    ]
    names = ("claim", "source", "verdict", "n_clear", "n_within", "n_beyond", "evidence")
    rows = [
        {name: getattr(one, name) for name in names} | {"n": len(one.comparisons)} for one in claims
    ]
    return Table("shapes", columns, rows)


def _is_cosine(name: str, key: Key, mechanism: str, strategy: str) -> bool:
    return name == COSINE.name and key[:2] == (mechanism, strategy)


def _pair(
    of: Values, lesser: tuple[str, Key], greater: tuple[str, Key], where: str
) -> list[Comparison]:
    """Return the comparison of two values of ``of``, given their keys; return no comparison if one
    of them is unknown.
    """
    low = of.get(lesser)
    high = of.get(greater)
    return [] if low is None or high is None else [Comparison(where, low, high)]


def _rising(where: str, line: Mapping[float, MeanSd], sign: int = 1) -> list[Comparison]:
    """Compare each epsilon with the next, and the first with the last. A flat line gives no
    comparison, because it is no evidence.

    Args:
        where: the compared quantity, in words.
        line: value by epsilon.
        sign: 1 if the line must rise, -1 if it must fall.
    """
    epsilons = sorted(line)
    if len({value.mean for value in line.values()}) < 2:
        return []
    pairs = dict.fromkeys([*itertools.pairwise(epsilons), (epsilons[0], epsilons[-1])])
    ordered = [pair[::sign] for pair in pairs]
    return [Comparison(f"{where}, ε {a:g} and {b:g}", line[a], line[b]) for a, b in ordered]


def _deniability(measured: Iterable[Record], statistic: str, *, rises: bool) -> list[Comparison]:
    comparisons = []
    for record in measured:
        line = {
            float(row["epsilon"]): MeanSd(
                row[statistic]["mean"],
                None,
                (row[statistic]["q75"] - row[statistic]["q25"])
                / IQR_PER_SD
                / math.sqrt(row["n_words"]),
            )
            for row in record["statistics"]
            if row[statistic] is not None
        }
        comparisons += _rising(
            f"{record['mechanism']}, {record['segmentation']}", line, 1 if rises else -1
        )
    return comparisons
