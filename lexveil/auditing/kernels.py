"""Audits of a mechanism on single words: its output distribution, its noise, the reach of its
noise, and its privacy losses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lexveil.auditing.distributions import ON_LISTS, AuditedSpace, Claim, spread
from lexveil.auditing.fit import (
    FACTORS,
    ClaimedDraws,
    FitResult,
    ball_audit,
    distribution_audit,
    events,
)
from lexveil.auditing.sampled import SampledResult, sampled_audit
from lexveil.auditing.toy_spaces import likeliest, list_orders
from lexveil.base.errors import ParameterError
from lexveil.base.types import Floats, Ids
from lexveil.core.mechanisms.registry import Mechanism, Space, build_mechanism

DRAWS = 8192  # tokens per call, with all words and ε mixed
OWN = 4  # draws by the audit for each draw by the mechanism, if there is no closed form
RUNGS = (0.125, 0.25, 0.5, 2.0, 4.0, 8.0)  # candidate ε, in units of the requested ε
LIST_RUNGS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # candidate ε on lists, in 1 / places
DEVIATIONS = 6.28  # standard deviations of a difference that the audit detects
BALLS = 50  # draws of noise for the test of radii, per draw of a word
DEEP = 50  # leading bits of a uniform number that are all 0 or all 1
REACH = 20_001  # length of the list on which the reach of noise is checked

Generator = Callable[[str], np.random.Generator]


class DrawnKind(NamedTuple):
    """Key of outputs that have one distribution: the input word, its ε, and the output token before
    it (-1 for no token).
    """

    word: int
    epsilon: float
    before: int = -1

    def __str__(self) -> str:
        after = f" after token {self.before}" if self.before >= 0 else ""
        return f"word {self.word} at ε = {self.epsilon:.4g}{after}"


Drawn = Mapping[DrawnKind, Ids]  # output ids by kind of draw


@dataclass(frozen=True, slots=True)
class Built:
    """A mechanism built over a vocabulary, with its claimed distribution."""

    kernel: Mechanism
    claim: Claim

    @classmethod
    def over(
        cls, name: str, space: AuditedSpace, parameters: Mapping[str, Mapping[str, Any]]
    ) -> Built:
        """Build the mechanism ``name`` over a vocabulary.

        Args:
            parameters: the parameters of each mechanism, by its name, as in params.yaml.
        """
        own = {key: value for key, value in parameters.get(name, {}).items() if key != "lists"}
        words = Space(space.vectors.astype(np.float32), space.orders, public=space.public)
        kernel = build_mechanism(name, words, {**parameters, name: own})
        return cls(kernel, claim_of(name, space, parameters))

    def accepts(self, epsilon: float) -> bool:
        """Return whether the mechanism accepts this ε."""
        try:
            self.kernel.noise(np.full(1, epsilon), np.random.default_rng(0))
        except ParameterError:
            return False
        return True


def claim_of(name: str, space: AuditedSpace, parameters: Mapping[str, Mapping[str, Any]]) -> Claim:
    """Return the claimed distribution of a mechanism with these parameters."""
    remap = parameters.get("rank_remap", {})
    remapped = (
        remap if remap.get("enabled") and name in ("madlib", "mahalanobis", "vickrey") else None
    )
    return Claim(name, parameters.get(name, {}), remapped, space)


def rungs(
    built: Built, word: int, epsilon: float, n: int, error: float, rng: np.random.Generator
) -> tuple[float, ...]:
    """Return the values of ε to audit: the requested ε, and the grid value at which the audit
    detects the smallest excess over the claimed ε. If no grid value is better, return only the
    requested ε.

    The choice depends only on the claim. A claim with a closed form is evaluated; any other claim
    is estimated from draws that the audit makes itself.
    """
    ladder = (
        LIST_RUNGS if built.claim.mechanism in ON_LISTS else tuple(epsilon * rung for rung in RUNGS)
    )
    factors = {
        rung: _least_factor(built.claim, word, rung, n, error, rng)
        for rung in ladder
        if built.accepts(rung)
    }
    best = min(factors, key=lambda rung: factors[rung], default=epsilon)
    return (epsilon,) if best == epsilon or np.isinf(factors[best]) else (epsilon, best)


def _least_factor(
    claim: Claim, word: int, epsilon: float, n: int, error: float, rng: np.random.Generator
) -> float:
    """Return the smallest inflation factor of ε that n draws of one word would detect; infinity if
    they detect none.
    """
    mass = claim.mass(word, epsilon, n, rng)
    sets = events(likeliest(claim, word, mass), mass, n)
    for factor in FACTORS[2::3]:
        try:
            other = claim.mass(word, factor * epsilon, n, rng)
        except ParameterError:
            return np.inf
        for some in sets:
            p = float(mass[some].sum())
            q = float(other[some].sum())
            if abs(p - q) > DEVIATIONS * np.sqrt(
                max(p * (1 - p), error) / n * (1 if claim.closed else 2)
            ):
                return factor
    return np.inf


def draw_mixed(
    kernel: Mechanism,
    words: Ids,
    epsilons: Sequence[float],
    n: int,
    generator: Generator,
    advance: Callable[[int], None],
    contexts: Sequence[int] = (-1,),
) -> Drawn:
    """Draw n outputs for every word at every ε. The calls mix all words and ε, so that state which
    the mechanism keeps from one token would affect the output of another and be detected.

    For a mechanism whose output depends on the token before, equal parts of the n outputs are drawn
    after each token of ``contexts``.
    """
    kinds = [
        DrawnKind(int(word), epsilon, at)
        for at in contexts
        for epsilon in epsilons
        for word in words.tolist()
    ]
    which = np.tile(np.arange(len(kinds)), n // len(contexts))
    generator("order").shuffle(which)
    ids = np.array([kind.word for kind in kinds], dtype=np.int64)[which]
    budgets = np.array([kind.epsilon for kind in kinds])[which]
    before = np.array([kind.before for kind in kinds], dtype=np.int64)[which]
    out = np.empty(len(ids), dtype=np.int64)
    rng = generator("draw")
    for start in range(0, len(ids), DRAWS):
        part = slice(start, start + DRAWS)
        noise = kernel.noise(budgets[part], rng)
        out[part] = kernel.replace_after(ids[part], budgets[part], noise, before[part])
        advance(len(ids[part]))
    return {kind: out[which == number] for number, kind in enumerate(kinds)}


def fit(
    drawn: Drawn,
    claim: Claim,
    epsilon: float,
    error: float,
    rng: np.random.Generator,
    *,
    with_power: bool,
) -> FitResult:
    """Test whether sampled outputs of words follow the claimed distribution."""
    samples = []
    for kind, codes in drawn.items():
        counts = np.bincount(codes, minlength=claim.space.size)
        n = len(codes)
        reference = 0 if claim.closed else OWN * n
        if claim.closed:
            mass = ranking = claim.pmf(*kind)
        else:
            mass = claim.counts(kind.word, kind.epsilon, reference, rng).astype(np.float64)
            # The draws that choose the events are not the draws that are compared.
            ranking = claim.counts(kind.word, kind.epsilon, n, rng).astype(np.float64)

        def inflated(
            factor: float, kind: DrawnKind = kind, many: int = min(20_000, OWN * n)
        ) -> Floats:
            return claim.mass(kind.word, factor * kind.epsilon, many, rng, kind.before)

        order = likeliest(claim, kind.word, ranking)
        samples.append(
            ClaimedDraws(
                str(kind), counts, mass, order, reference, inflated if with_power else None
            )
        )
    return distribution_audit(samples, epsilon, error)


def losses(
    drawn: Drawn, at: DrawnKind, claim: Claim, words: Ids, confidence: float
) -> SampledResult:
    """Return lower confidence bounds on the privacy loss between all pairs of words, from their
    outputs at the ε and preceding token of ``at``.
    """
    draws = [drawn[at._replace(word=int(word))] for word in words]
    epsilon = at.epsilon
    return sampled_audit(draws, epsilon * claim.distances(words, words), epsilon, confidence)


def noise_fit(
    kernel: Mechanism,
    claim: Claim,
    epsilon: float,
    samples: int,
    error: float,
    rng: np.random.Generator,
) -> FitResult | None:
    """Compare the noise that a mechanism adds to vectors with the density that the mechanism
    claims. The result is None for a mechanism without such noise.
    """
    if claim.mechanism not in ("madlib", "mahalanobis", "vickrey"):
        return None
    p = claim.space.vectors.shape[1]
    n = BALLS * samples // max(1, p // 5)
    step = max(1, 4_000_000 // p)
    root = np.linalg.cholesky(spread(claim.space.vectors, claim.share))
    parts = []
    for start in range(0, n, step):
        drawn = np.asarray(kernel.noise(np.full(min(step, n - start), epsilon), rng))[:, :p]
        parts.append(
            np.linalg.solve(root, drawn.T).T if claim.mechanism == "mahalanobis" else drawn
        )
    return ball_audit(np.concatenate(parts), epsilon, error)


def reach(
    name: str, parameters: Mapping[str, Mapping[str, Any]], rng: np.random.Generator
) -> list[str]:
    """Check that the noise of a mechanism on word lists reaches the positions that it must reach
    with probability 2^-50. Return the fault, if there is one.

    The random numbers of the noise are set to values whose first bits are all 0 or all 1, which a
    sample would not contain.
    """
    places = np.arange(REACH, dtype=np.float64)[:, None]
    order = list_orders(places, 1)
    kernel = Built.over(name, AuditedSpace(places, order), parameters).kernel
    n = 1 << 14 if name == "diffractor_tem" else 1 << 11
    bits = rng.integers(0, 2**64 - 1, size=(n, 2), dtype=np.uint64, endpoint=True)
    few = bits[:, 0] >> rng.integers(0, DEEP + 8, size=len(bits)).astype(np.uint64)
    bits[:, 0] = np.where(rng.random(len(bits)) < 0.5, few, ~few)
    middle = np.full(len(bits), REACH // 2)
    for epsilon in (0.0036, 0.05, 0.5, 5.0):
        out = kernel.replace(middle, np.full(len(bits), epsilon), bits)
        moved = np.argsort(order[0])[out] - REACH // 2
        beyond = min(REACH // 2 - 1, int(DEEP * np.log(2) / epsilon))
        if name == "diffractor_tem":
            beyond = int(0.8 * (REACH // 2))  # beyond γ all positions are equally likely
        if moved.max() < beyond or -moved.min() < beyond:
            return [
                f"at ε = {epsilon:g} noise moves a word by at most "
                f"{max(moved.max(), -moved.min()):,} of {beyond:,} positions"
            ]
    return []
