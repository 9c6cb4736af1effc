"""Whether results have the shape of the papers' results, which depends less on models and data than
the numbers do.

Each claim is a set of comparisons "this is at most that". A comparison that is against it by less
than the spread (the standard errors of both sides together) may be chance, and is counted apart.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lexveil.evaluation.metrics.attack import ADAPTIVE, STATIC
from lexveil.evaluation.metrics.similarity import COSINE
from lexveil.evaluation.metrics.utility import ON_CLEAN_MICRO
from lexveil.report import formatting
from lexveil.report.data import Record
from lexveil.report.evaluation_values import Values, keys_of
from lexveil.report.formatting import MeanSd
from lexveil.report.records import Key
from lexveil.report.table import Column, Table

Verdict = Literal["holds", "holds within the spread", "does not hold", "cannot be said"]

FROM_EPSILON = 5.0  # where the strategies must be in order
LISTS_BY = (1.0, 3.0)  # epsilons at which one-dimensional methods must be similar
HIGH = 0.5  # a cosine nearer to that of the same text than to that of an unrelated one
LISTS = ("diffractor_geometric", "diffractor_tem")
IQR_PER_SD = 1.349  # of a normal distribution


@dataclass(frozen=True, slots=True)
class Comparison:
    """That ``lesser`` is at most ``greater``.

    Attributes:
        where: data set, mechanism and what is compared, in words, the lesser first.
    """

    where: str
    lesser: MeanSd
    greater: MeanSd

    @property
    def gap(self) -> float:
        """How far it is from failing; below 0 it is against the claim."""
        return self.greater.mean - self.lesser.mean

    @property
    def spread(self) -> float | None:
        """Standard error of the gap, as if both sides were independent; None if neither has one."""
        errors = [side.error for side in (self.lesser, self.greater) if side.error is not None]
        return math.hypot(*errors) if errors else None

    @property
    def is_against(self) -> bool:
        """Whether it contradicts the claim."""
        return self.gap < 0

    @property
    def is_beyond(self) -> bool:
        """Whether it does so by the spread or more; without a known spread, whether it does at
        all.
        """
        return self.is_against and (self.spread is None or -self.gap >= self.spread)


@dataclass(frozen=True, slots=True)
class ReplicationClaim:
    """One claim and what the runs say of it.

    Attributes:
        claim: in one sentence.
        source: which paper.
        comparisons: all there are of it.
        missing: what runs it would take, if there are none.
        most: whether it is enough that it holds in more than half of them.
    """

    claim: str
    source: str
    comparisons: Sequence[Comparison]
    missing: str
    most: bool = False

    @property
    def n_within(self) -> int:
        """Comparisons against it by less than the spread."""
        return sum(
            comparison.is_against and not comparison.is_beyond for comparison in self.comparisons
        )

    @property
    def n_beyond(self) -> int:
        """Comparisons against it by the spread or more."""
        return sum(comparison.is_beyond for comparison in self.comparisons)

    @property
    def verdict(self) -> Verdict:
        """Whether it holds, in all comparisons or in most of them."""
        n = len(self.comparisons)
        if not n:
            return "cannot be said"
        allowed = (n - 1) // 2 if self.most else 0
        if self.n_within + self.n_beyond <= allowed:
            return "holds"
        return "holds within the spread" if self.n_beyond <= allowed else "does not hold"

    @property
    def evidence(self) -> str:
        """The comparison that speaks most against it, or that comes nearest to it, with its
        numbers.
        """
        if not self.comparisons:
            return self.missing
        worst = min(self.comparisons, key=lambda one: one.gap)
        spread = "spread not known" if worst.spread is None else f"spread {worst.spread:.3f}"
        kind = "largest shortfall" if worst.is_against else "smallest margin"
        sides = f"{worst.lesser.mean:.3f} and {worst.greater.mean:.3f}"
        return f"{kind} {abs(worst.gap):.3f} ({spread}): {worst.where}: {sides}"


def shapes(values_of: Mapping[str, Values], measured: Sequence[Record]) -> list[ReplicationClaim]:
    """All claims.

    Args:
        values_of: by data set.
        measured: the plausible deniability statistics.
    """
    return [
        cosine_rises(values_of),
        strategies_in_order(values_of),
        tem_keeps_more(values_of),
        lists_are_similar(values_of),
        comes_out_as_itself_more_often(measured),
        fewer_words_come_out(measured),
        static_is_weaker(values_of),
    ]


def cosine_rises(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """More ε, more similar texts, for every mechanism and strategy."""
    comparisons = []
    for dataset, of in values_of.items():
        for mechanism, strategy in dict.fromkeys(key[:2] for key in keys_of(of)):
            line = {
                key[2]: value
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
    """S3 ≥ S2 ≥ S1 in cosine at larger ε: collocations lose less than words, and more budget for
    each loses less.
    """
    comparisons = []
    for dataset, of in values_of.items():
        for mechanism, strategy, epsilon in keys_of(of):
            before = {"S2": "S1", "S3": "S2"}.get(strategy)
            if before is None or epsilon < FROM_EPSILON:
                continue
            comparisons += _pair(
                of,
                (COSINE.name, (mechanism, before, epsilon)),
                (COSINE.name, (mechanism, strategy, epsilon)),
                f"{dataset}, {mechanism}, ε {epsilon:g}, {before} and {strategy}",
            )
    return ReplicationClaim(
        f"In cosine S3 is at least S2, and S2 at least S1, from ε {FROM_EPSILON:g} on.",
        "CLMLDP Table 1",
        comparisons,
        f"needs the cosine of S1 and S2, or of S2 and S3, at ε {FROM_EPSILON:g} or more",
    )


def tem_keeps_more(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """TEM against MADLIB at the same ε, in the paper's setting: trained on rewritten texts,
    evaluated on clean ones.
    """
    comparisons = []
    for dataset, of in values_of.items():
        for mechanism, strategy, epsilon in keys_of(of):
            if mechanism == "tem":
                comparisons += _pair(
                    of,
                    (ON_CLEAN_MICRO.name, ("madlib", strategy, epsilon)),
                    (ON_CLEAN_MICRO.name, (mechanism, strategy, epsilon)),
                    f"{dataset}, {strategy}, ε {epsilon:g}, madlib and tem",
                )
    return ReplicationClaim(
        "TEM keeps at least the utility of MADLIB at equal ε.",
        "TEM Figure 1a",
        comparisons,
        "needs the utility of runs with tem and with madlib",
    )


def lists_are_similar(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """The cosine of one-dimensional methods at the largest ε of the grid between 1 and 3."""
    comparisons = []
    low, high = LISTS_BY
    for dataset, of in values_of.items():
        for mechanism, strategy in dict.fromkeys(key[:2] for key in keys_of(of) if key[0] in LISTS):
            at = {
                key[2]: value
                for (name, key), value in of.items()
                if _is_cosine(name, key, mechanism, strategy) and low <= key[2] <= high
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
    """N_w over ε."""
    return ReplicationClaim(
        "N_w, how often a word comes out as itself, rises with ε.",
        "1-Diffractor Figure 4",
        _deniability(measured, "n_w", rises=True),
        "needs N_w at two epsilons, and a difference between them",
    )


def fewer_words_come_out(measured: Sequence[Record]) -> ReplicationClaim:
    """S_w over ε."""
    return ReplicationClaim(
        "S_w, how many different words come out of one, falls with ε.",
        "1-Diffractor Figure 4",
        _deniability(measured, "s_w", rises=False),
        "needs S_w at two epsilons, and a difference between them",
    )


def static_is_weaker(values_of: Mapping[str, Values]) -> ReplicationClaim:
    """An attacker trained on rewritten texts is better on rewritten texts than one trained on clean
    texts.
    """
    comparisons = []
    for dataset, of in values_of.items():
        for mechanism, strategy, epsilon in keys_of(of):
            key = (mechanism, strategy, epsilon)
            where = f"{dataset}, {mechanism}, {strategy}, ε {epsilon:g}, static and adaptive"
            comparisons += _pair(of, (STATIC.name, key), (ADAPTIVE.name, key), where)
    return ReplicationClaim(
        "The static attacker is at most as good as the adaptive one, in most runs.",
        "CLMLDP Table 4",
        comparisons,
        "needs attacks on runs",
        most=True,
    )


def shapes_table(claims: Sequence[ReplicationClaim]) -> Table:
    """One row per claim."""
    columns = [
        Column("claim", "Claim"),
        Column("source", "Source"),
        Column("verdict", "Verdict"),
        Column("n", "Compared", formatting.count, "Comparisons"),
        Column("n_within", "against, within the spread", formatting.count, "Comparisons"),
        Column("n_beyond", "against, beyond it", formatting.count, "Comparisons"),
        Column("evidence", "Nearest to contradicting it"),
    ]
    names = ("claim", "source", "verdict", "n_within", "n_beyond", "evidence")
    rows = [
        {name: getattr(one, name) for name in names} | {"n": len(one.comparisons)} for one in claims
    ]
    return Table("shapes", columns, rows)


def _is_cosine(name: str, key: Key, mechanism: str, strategy: str) -> bool:
    return name == COSINE.name and key[:2] == (mechanism, strategy)


def _pair(
    of: Values, lesser: tuple[str, Key], greater: tuple[str, Key], where: str
) -> list[Comparison]:
    """The comparison of two measures of runs, each named as in ``of``; none where one of them is
    not known.
    """
    low, high = of.get(lesser), of.get(greater)
    return [] if low is None or high is None else [Comparison(where, low, high)]


def _rising(where: str, line: Mapping[float, MeanSd], sign: int = 1) -> list[Comparison]:
    """Each epsilon against the next, and the first against the last; nothing of a flat line, which
    says nothing.

    Args:
        line: by epsilon.
        sign: -1 if it is to fall.
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
