"""Test the privacy that a mechanism claims: what `lexveil audit` and ``lexveil.audit`` call. No stage of the graph.

It looks at four places, all with the mechanism and the code that a run uses:

* two toys, a line and a plane of words whose spacing is half a unit of 1/ε: there losses are large enough to be seen;
* a vocabulary of seeded words of the built embedding: exact where the distribution has a closed form; samples can show
  little there, because in many dimensions no event of noticeable probability comes near the bound;
* whole texts through ``lexveil.privatization`` with budgets from ``lexveil.accounting``, two texts to a release, so
  that noise shared between tokens or texts, an unprotected token and a budget overspent show, whatever their cause.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lexveil import paths
from lexveil.accounting.budgets import SEGMENTATION_OF, STRATEGIES, Policy, document_budget
from lexveil.artifacts.mechanisms import build_over
from lexveil.auditing.exact import ExactResult, bounds_audit, distances_of, exact_audit, gumbel_bounds
from lexveil.auditing.sampled import SampledResult, kernel_sampler, noise_reused, sampled_audit
from lexveil.auditing.texts import (
    claimed_losses,
    drawn_noises,
    generators_of,
    spent_too_much,
    text_budgets,
    text_sampler,
    toy_texts,
    toy_vectors,
)
from lexveil.config import MechanismParams
from lexveil.errors import ParameterError, RequestError
from lexveil.mechanisms.deniability import choose_words
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.registry import MECHANISMS, ClosedForm, Kernel
from lexveil.mechanisms.truncated_gumbel import TruncatedGumbel
from lexveil.privatization.model import Model
from lexveil.privatization.rewrite import Components, Rewritten, rewrite
from lexveil.runtime.stage import Progress
from lexveil.runtime.tables import write_json
from lexveil.text.encode import TokenClass, encode
from lexveil.types import Ids, Vectors

MODES = ("experiment", "release")
CONFIDENCE = 0.999  # of a whole audit: a mechanism that keeps its claim is flagged once in a thousand audits
SAMPLED_AUDITS = 4  # that share the chance of a false alarm
STRETCHES = 10  # how often a toy is doubled for a mechanism that refuses small distances


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One place and method of an audit.

    Attributes:
        evidence: the figures of an exact or sampled audit; None of a plain fact, which ``detail`` then states.
    """

    place: str
    method: str
    violation: bool
    evidence: ExactResult | SampledResult | None = None
    detail: str | None = None

    @classmethod
    def of(cls, place: str, evidence: ExactResult | SampledResult) -> AuditFinding:
        """What an exact or sampled audit found."""
        return cls(place, evidence.method, evidence.violation, evidence)

    @property
    def verdict(self) -> str:
        """VIOLATED, "holds" where nothing was sampled, else "no violation found"."""
        if self.violation:
            return "VIOLATED"
        return "no violation found" if self.method in ("sampled", "bounds") else "holds"

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        figures = {"detail": self.detail} if self.evidence is None else self.evidence.as_dict()
        return (
            {"place": self.place, "method": self.method, "violation": self.violation}
            | figures
            | {"verdict": self.verdict}
        )

    @property
    def cells(self) -> list[str]:
        """Its row in a table for people."""
        detail = f": {self.detail}" if self.detail else ""
        if self.evidence is None:
            return [self.place, self.method, "-", "-", "-", self.verdict + detail]
        sign = "" if self.method == "exact" or not self.evidence.audited else "> "
        confidence = f"{self.evidence.confidence:.5f}" if isinstance(self.evidence, SampledResult) else "certain"
        figures = [f"{self.evidence.claimed:g}", f"{sign}{self.evidence.audited:.4g}", confidence]
        return [self.place, self.method, *figures, self.verdict]


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What an audit of one mechanism at one ε found.

    Attributes:
        guarantee: the formula that was tested, or "none"; no_guarantee: why there is none.
        parameters: of the mechanism.
        seed: of the noise in mode experiment; None in mode release, whose noise comes from the operating system.
        confidence: that no bound is too high, over all findings together.
    """

    mechanism: str
    guarantee: str
    no_guarantee: str | None
    metric: str
    parameters: dict[str, Any]
    epsilon: float
    strategy: str
    mode: str
    seed: int | None
    confidence: float
    audits: tuple[AuditFinding, ...]

    @property
    def violation(self) -> bool:
        """Whether the claim is violated anywhere."""
        return any(finding.violation for finding in self.audits)

    def as_dict(self) -> dict[str, Any]:
        """Plain values that JSON can carry: infinities as text."""
        found = {"audits": [finding.as_dict() for finding in self.audits], "violation": self.violation}
        values: dict[str, Any] = _finite({name: getattr(self, name) for name in self.__slots__} | found)
        return values

    def as_text(self) -> list[str]:
        """Lines for people."""
        rows = [["where", "method", "claimed ε", "audited ε", "confidence", "verdict"]]
        rows += [finding.cells for finding in self.audits]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        if self.no_guarantee is not None:
            lines.append(f"nothing is claimed: {self.no_guarantee}")
        verdict = "a violation of the claimed ε was found" if self.violation else "no violation was found"
        return [*lines, f"{self.mechanism} at ε = {self.epsilon:g}, {self.mode} mode: {verdict}"]


def _finite(value: Any) -> Any:
    """The same value with infinities as text, which JSON can carry."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


@dataclass(frozen=True, slots=True)
class _Audit:
    """What all parts of one audit share; ``confidence`` is that of each sampled part."""

    mechanism: str
    parameters: MechanismParams
    epsilon: float
    strategy: str
    mode: str
    seed: int
    samples: int
    confidence: float

    def generators(self, *names: str) -> Callable[[str, int], np.random.Generator]:
        """The stream of one input at one stage, as a run of this mode makes it."""
        make = generators_of(self.mode, self.seed, self.mechanism, self.strategy, repr(self.epsilon), *names)
        return lambda stage, number: make(stage, number)(0)

    def accepted(self, vectors: Vectors, epsilon: float) -> Kernel:
        """The mechanism on a toy, stretched in place as far as it needs to accept ``epsilon``."""
        for _ in range(STRETCHES):
            try:
                mechanism = build_over(self.mechanism, vectors, self.parameters)
                _require_accepted(mechanism, epsilon)
            except ParameterError as error:
                refusal = error
                vectors *= 2
            else:
                return mechanism
        raise refusal

    def distribution(self, place: str, mechanism: Kernel, ids: Ids) -> list[AuditFinding]:
        """What can be said without samples, for inputs ``ids`` and every output; nothing where no form is known."""
        distances, epsilon = distances_of(mechanism), self.epsilon
        if isinstance(mechanism, ClosedForm):
            closed = mechanism
            exact = exact_audit(lambda rows: closed.log_pmf(rows, np.full(len(rows), epsilon)), ids, distances, epsilon)
            return [AuditFinding.of(place, exact)]
        if isinstance(mechanism, TruncatedGumbel):
            bounds = gumbel_bounds(mechanism.size, ids, distances)
            return [AuditFinding.of(place, bounds_audit(*bounds, ids, distances, epsilon))]
        return []

    def kernel(self, place: str, mechanism: Kernel, name: str) -> list[AuditFinding]:
        """The mechanism itself over all of its words, without samples where that is possible, and sampled."""
        ids = np.arange(mechanism.size, dtype=np.int64)
        findings = self.distribution(place, mechanism, ids)
        progress = Progress(f"audit, {place}", len(ids) * self.samples, "draws at most")
        sampled = sampled_audit(
            kernel_sampler(mechanism, ids, self.epsilon, self.generators(name)),
            self.epsilon * distances_of(mechanism)(ids, ids),
            self.epsilon,
            self.samples,
            self.confidence,
            advance=progress.advance,
        )
        _finish(progress)
        return [*findings, AuditFinding.of(place, sampled)]

    def texts(self, policy: Policy) -> list[AuditFinding]:
        """Whole texts through the rewriter: their losses, their budget, and whether noise is used twice."""
        toy = toy_texts(self.strategy, self.epsilon, policy)
        encoded = encode(toy.texts, toy.lexicon)
        n_words = np.bincount(encoded.text_of, weights=encoded.n_words * (encoded.kind != TokenClass.PUNCTUATION.value))
        budget = document_budget(self.epsilon, n_words.astype(np.int64))
        every = [toy.companion, *toy.texts]
        planned = text_budgets(every, toy.lexicon, toy.vocabulary, policy, self.strategy, budget)
        kernel = self.accepted(toy.vocabulary.vectors, float(planned[planned > 0].min()))
        plan = dict(zip(every, planned.tolist(), strict=True))

        def rewriter(texts: list[str], generator: Callable[[int], np.random.Generator]) -> Rewritten:
            per_text = np.array([plan[text] for text in texts])
            return rewrite(texts, per_text, Components(toy.lexicon, toy.vocabulary, kernel, policy), generator)

        allowed = claimed_losses(toy.texts, planned[1:], toy.lexicon, toy.vocabulary, policy, distances_of(kernel))
        generators = generators_of(self.mode, self.seed, self.mechanism, self.strategy, repr(self.epsilon), "texts")
        place = f"texts: {self.strategy}, {self.mode} mode"
        progress = Progress(f"audit, {place}", len(toy.texts) * self.samples, "releases at most")
        sampler = text_sampler(toy.companion, toy.texts, rewriter, generators)
        sampled = sampled_audit(sampler, allowed, self.epsilon, self.samples, self.confidence, advance=progress.advance)
        _finish(progress)
        over = spent_too_much(rewriter(toy.texts, generators("budget", 0)), budget)
        runs = 2 if self.mode == "release" else 1
        reused = noise_reused(drawn_noises(kernel, toy, policy, self.epsilon, generators, runs))
        spent = f"Σε exceeds B by {over:.3g}" if over else "Σε within B"
        return [
            AuditFinding.of(place, sampled),
            AuditFinding(place, "budget", over > 0, detail=spent),
            AuditFinding(place, "noise", reused, detail="noise is used twice" if reused else "no noise is used twice"),
        ]


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """What to audit, and how thoroughly.

    Attributes:
        epsilon: per token; in texts the base ε.
        words: seeded words of the strategy's embedding; all of them if there are fewer.
        samples: draws per word or text, half of them to find what to test, half to test it.
        confidence: of the whole audit; a mechanism that keeps its claim is flagged with at most 1 - confidence.
    """

    mechanism: str
    epsilon: float
    words: int = 300
    samples: int = 20_000
    strategy: str = "S1"
    mode: str = "experiment"
    confidence: float = CONFIDENCE


def audit(request: AuditRequest, out: Path | None = None, project: Path | Model | None = None) -> AuditResult:
    """Audit one mechanism at one ε.

    Args:
        out: where to write the result as JSON.
        project: the folder whose artifacts and parameters are used, or a model of it; None is the current folder.

    Raises:
        RequestError: if the request is wrong or the artifacts are missing.
    """
    model = Model.load(project)
    params = model.params
    mechanism, epsilon, strategy, mode = request.mechanism, request.epsilon, request.strategy, request.mode
    words, samples, confidence = request.words, request.samples, request.confidence
    if mechanism not in MECHANISMS:
        raise RequestError(f"--mechanism {mechanism}: there is no such mechanism; there are {', '.join(MECHANISMS)}")
    if strategy not in STRATEGIES:
        raise RequestError(f"--strategy {strategy}: must be one of {', '.join(STRATEGIES)}")
    if mode not in MODES:
        raise RequestError(f"--mode {mode}: must be one of {', '.join(MODES)}")
    if out is not None and not out.parent.is_dir():
        raise RequestError(f"--out {out}: there is no such folder")
    _check_numbers(epsilon, words, samples, confidence)
    segmentation = SEGMENTATION_OF[strategy]
    policy = Policy.of(strategy, params.policy.stopwords, params.policy.punctuation, params.policy.oov)
    made = model.mechanism(mechanism, strategy, policy)
    real, vocabulary = made.mechanism, made.vocabulary
    if len(vocabulary.rows) < 2:
        raise RequestError(f"{paths.embedding(segmentation)} holds fewer than two words; enlarge the corpus")
    _require_accepted(real, epsilon)  # what it refuses is no claim
    part = 1 - (1 - confidence) / SAMPLED_AUDITS
    shared = _Audit(mechanism, params.mechanisms, epsilon, strategy, mode, params.seed, samples, part)
    findings: list[AuditFinding] = []
    for shape in ("line", "plane"):
        vectors = toy_vectors(shape, epsilon)
        kernel = shared.accepted(vectors, epsilon)
        findings += shared.kernel(f"toy: {shape} of {len(vectors)} words", kernel, shape)
    chosen = choose_words(len(vocabulary.rows), words, stream(params.seed, "audit", "words"))
    findings += shared.distribution(f"vocabulary: {len(chosen):,} of {real.size:,} words", real, chosen)
    kernel = build_over(mechanism, np.ascontiguousarray(vocabulary.vectors[chosen]), params.mechanisms)
    findings += shared.kernel(f"vocabulary of {len(chosen):,} words", kernel, "vocabulary")
    findings += shared.texts(policy)
    result = AuditResult(
        mechanism=mechanism,
        guarantee=real.guarantee if real.no_guarantee is None else "none",
        no_guarantee=real.no_guarantee,
        metric=real.metric,
        parameters=made.parameters,
        epsilon=epsilon,
        strategy=strategy,
        mode=mode,
        seed=params.seed if mode == "experiment" else None,
        confidence=confidence,
        audits=tuple(findings),
    )
    if out is not None:
        write_json(result.as_dict(), out)
    return result


def _check_numbers(epsilon: float, words: int, samples: int, confidence: float) -> None:
    if not 0 < epsilon < float("inf"):
        raise RequestError(f"--epsilon {epsilon}: must be finite and greater than 0")
    if words < 2:
        raise RequestError(f"--words {words}: two words are the fewest that can be told apart")
    if samples < 200:
        raise RequestError(f"--samples {samples}: fewer than 200 show nothing")
    if not 0 < confidence < 1:
        raise RequestError(f"--confidence {confidence}: must lie between 0 and 1")


def _require_accepted(mechanism: Kernel, epsilon: float) -> None:
    """Raise what the mechanism raises for an ε it refuses."""
    mechanism.noise(np.full(1, epsilon), stream(0, "audit", "does it accept"))


def _finish(progress: Progress) -> None:
    # Only words that are tested are drawn in full.
    progress.total = progress.done
    progress.finish()
