"""Audit of the privacy guarantee that a mechanism claims. `lexveil audit` and ``lexveil.audit``
call this module.

The audit does not trust the tested code: it computes distances, distributions, budgets and charges
itself, in a few lines of code, from the vectors, the word orders and the documents. It audits three
kinds of objects:

* toy vocabularies: a line, an anisotropic plane with one far word, and a cloud with so many words
  that truncation, clusters and lists take effect;
* words of the project's embedding, with the mechanism built as in a run;
* whole releases of a toy project, in memory and by files, over batches and processes, with a ledger
  of their own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lexveil.auditing.distributions import IN_CONTEXT, ON_LISTS, AuditedSpace
from lexveil.auditing.exact import bounds_audit, exact_audit, gumbel_bounds
from lexveil.auditing.findings import AuditFinding, AuditResult
from lexveil.auditing.fit import FitResult
from lexveil.auditing.kernels import (
    Built,
    Drawn,
    claim_of,
    draw_mixed,
    fit,
    losses,
    noise_fit,
    reach,
    rungs,
)
from lexveil.auditing.releases import audit_releases
from lexveil.auditing.request import CONFIDENCE, AuditRequest
from lexveil.auditing.sentences import audit_sentences
from lexveil.auditing.toy_spaces import toy
from lexveil.auditing.written_texts import audit_written_texts
from lexveil.base import paths
from lexveil.base.errors import RequestError, option
from lexveil.base.runtime.hashes import code_hash, version
from lexveil.base.runtime.tables import write_json
from lexveil.base.types import Floats, Ids
from lexveil.core.accounting.budgets import SEGMENTATION_OF, Policy
from lexveil.core.embeddings.bigrams import Bigrams
from lexveil.core.embeddings.purposes import REACH, STEP
from lexveil.core.mechanisms.base import PublicCounts
from lexveil.core.mechanisms.causal_measure import CausalWords
from lexveil.core.mechanisms.deniability import choose_words
from lexveil.core.mechanisms.noise.streams import release_generator, stream
from lexveil.core.mechanisms.registry import Mechanism
from lexveil.io.artifacts.embeddings import read_words
from lexveil.io.artifacts.mechanisms import Prepared
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.project import Project
from lexveil.io.execution.stage import Progress
from lexveil.io.request import SENTENCES, Request
from lexveil.release.settings import Settings, settings_of

__all__ = ["CONFIDENCE", "AuditFinding", "AuditRequest", "AuditResult", "audit"]

PARTS = 24  # greatest number of parts, which divide the probability of a false alarm
STRETCHES = 24  # how often a toy's size may be doubled for a mechanism that refuses small distances
FITTED = 4  # number of embedding words with draws; each has a tenth of the draws of a toy's word
SHAPES = ("line", "plane", "cloud")
CLOUD = 2  # a word of the cloud has the draws of a toy's word divided by this


@dataclass(slots=True)
class _Audit:
    """State that all parts of one audit share: the request, the random seed and the findings."""

    request: AuditRequest
    parameters: Mapping[str, Any]
    seed: int
    findings: list[AuditFinding] = field(default_factory=list)
    epsilons: set[float] = field(default_factory=set)

    @property
    def error(self) -> float:
        """The probability that one part of the audit raises a false alarm."""
        return (1 - self.request.confidence) / PARTS

    def generator(self, *names: str) -> np.random.Generator:
        """Return a random generator for the audit's mode: operating-system entropy for a release, a
        seed for an experiment.
        """
        if self.request.mode == "release":
            return release_generator()
        return stream(
            self.seed, "audit", self.request.mechanism, repr(self.request.epsilon), *names
        )

    def found(self, place: str, *evidence: Any) -> None:
        """Add pieces of evidence to the findings of the audit. A piece that is None is skipped."""
        self.findings += [AuditFinding.of(place, each) for each in evidence if each is not None]

    def toy(self, shape: str, n_lists: int) -> None:
        """Audit the mechanism on one toy vocabulary: its closed form, its output distribution, its
        noise, and the privacy losses between its words.
        """
        request, space_of = self.request, toy(shape, self.request.epsilon, n_lists)
        for _ in range(STRETCHES):
            built = Built.over(request.mechanism, space_of.space, self.parameters)
            if built.accepts(request.epsilon):
                break
            space_of = space_of.stretched(2.0)
        else:
            return
        place = space_of.name
        words = space_of.words
        own = self.generator("own", shape)
        n = request.samples if space_of.losses else request.samples // CLOUD
        epsilons = rungs(built, int(words[1]), request.epsilon, n, self.error, own)
        self.epsilons |= set(epsilons)
        contexts = space_of.contexts if built.claim.in_context else (-1,)
        self.exact(place, built, words, contexts)
        progress = Progress(f"audit, {place}", len(words) * len(epsilons) * n, "draws")
        drawn = draw_mixed(
            built.kernel,
            words,
            epsilons,
            n,
            partial(self.generator, shape),
            progress.advance,
            contexts,
        )
        progress.finish()
        self.sampled(place, built, drawn, own, (shape, "ball"), with_power=space_of.losses)
        if space_of.losses:
            for at in sorted({kind._replace(word=0) for kind in drawn}):
                self.found(
                    _after(place, at.before), losses(drawn, at, built.claim, words, 1 - self.error)
                )

    def embedding(self, prepared: Prepared, space: AuditedSpace) -> None:
        """Audit the mechanism over the words of the project's embedding, with the mechanism built
        as in a run.
        """
        request, claim = self.request, claim_of(self.request.mechanism, space, self.parameters)
        built = Built(prepared.mechanism, claim)
        chosen = choose_words(space.size, request.words, stream(self.seed, "audit", "words"))
        contexts: tuple[int, ...] = (-1,)
        if claim.in_context and space.public is not None:
            # the token that most words follow, or the first token, which is frequent
            bigrams = space.public.bigrams
            contexts = (-1, 0 if bigrams is None else int(np.diff(bigrams.starts).argmax()))
        self.exact(f"vocabulary: {len(chosen):,} of {space.size:,} words", built, chosen, contexts)
        own = self.generator("own", "vocabulary")
        few = chosen[:: max(1, len(chosen) // FITTED)][:FITTED]
        n = max(40, request.samples // (10 if claim.closed else 40))
        epsilons = (request.epsilon,)
        generator = partial(self.generator, "vocabulary")
        drawn = draw_mixed(
            prepared.mechanism, few, epsilons, n, generator, lambda _: None, contexts
        )
        place = f"vocabulary: {len(few)} of {space.size:,} words"
        self.sampled(place, built, drawn, own, ("ball",), with_power=False)

    def exact(self, place: str, built: Built, ids: Ids, contexts: Sequence[int]) -> None:
        """Audit the claim without sampling, for the inputs ``ids`` and every output, by a closed
        form of the mechanism or by proven bounds. If the mechanism has neither, do nothing.
        """
        kernel = built.kernel
        distances = built.claim.distances
        epsilon = self.request.epsilon
        if kernel.has_closed_form():
            for before in contexts:
                log_pmf = partial(_log_pmf, kernel, epsilon, before)
                self.found(_after(place, before), exact_audit(log_pmf, ids, distances, epsilon))
        elif self.request.mechanism == "truncated_gumbel":
            bounds = gumbel_bounds(built.claim.space.size, ids, distances)
            self.found(place, bounds_audit(*bounds, ids, distances, epsilon))

    def sampled(
        self,
        place: str,
        built: Built,
        drawn: Drawn,
        own: np.random.Generator,
        ball: tuple[str, ...],
        *,
        with_power: bool,
    ) -> None:
        """Compare sampled outputs and noise of the mechanism with the claimed distributions."""
        epsilon = self.request.epsilon
        claim = built.claim
        self.found(place, fit(drawn, claim, epsilon, self.error, own, with_power=with_power))
        noise = self.generator(*ball)
        self.found(
            place, noise_fit(built.kernel, claim, epsilon, self.request.samples, self.error, noise)
        )


def _after(place: str, before: int) -> str:
    return place if before < 0 else f"{place}, after token {before}"


def _log_pmf(kernel: Mechanism, epsilon: float, before: int, ids: Ids) -> Floats:
    return kernel.log_pmf(ids, np.full(len(ids), epsilon), before)


def audit(
    request: AuditRequest,
    out: Path | None = None,
    project: Path | Model | None = None,
    model: str | None = None,
) -> AuditResult:
    """Audit the privacy claim of one mechanism at one ε, and at a second ε that the audit chooses.

    Args:
        out: the file for the result as JSON.
        project: the folder whose parameters are used, or a model of it; None has the meaning that
            it has in ``Model.load``.
        model: the name of a packaged model, or own; None has the meaning that it has in
            ``Model.load``.

    Raises:
        RequestError: if the request is wrong or artifacts are missing.
    """
    if out is not None and not out.parent.is_dir():
        raise RequestError(f"{option('out')} {out}: there is no such folder")
    using = Model.load(project, model)
    is_of_sentences = request.strategy == SENTENCES
    result = (audit_sentences if is_of_sentences else _audit_words)(request, using)
    if out is not None:
        write_json(result.as_dict(), out)
    return result


def _audit_words(request: AuditRequest, using: Model) -> AuditResult:
    """Audit a mechanism that replaces single words."""
    if request.bank is not None:
        raise RequestError(
            f"{option('bank')} is only used for sentences; add {option('strategy')} S5"
        )
    params = using.params
    strategy = request.strategy
    settings = settings_of(
        Request.of({"mechanism": request.mechanism, "strategy": strategy, "epsilon": 1.0}),
        using.project,
    )
    policy = settings.policy
    prepared = using.mechanism(request.mechanism, strategy, policy)
    if len(prepared.vocabulary.rows) < 2:
        raise RequestError(
            f"the embedding of {strategy} contains fewer than two words; enlarge the corpus"
        )
    # raises an error if the mechanism refuses this ε: then there is no claim to test
    prepared.mechanism.noise(np.full(1, request.epsilon), stream(0, "audit"))
    shared = _Audit(request, params.mechanisms.model_dump(), params.seed)
    shared.epsilons.add(request.epsilon)
    space = read_space(using, prepared, request)
    n_lists = 0 if space.orders is None else len(space.orders)
    for shape in SHAPES:
        shared.toy(shape, n_lists)
    if n_lists:
        wrong = reach(request.mechanism, shared.parameters, shared.generator("reach"))
        shared.findings.append(
            AuditFinding.fact("toy: a long list", "reach", wrong, "noise reaches its rarest places")
        )
    shared.embedding(prepared, space)
    if prepared.mechanism.no_guarantee is None:
        _audit_toy_projects(shared, using.project, policy)
    return _result(shared, using, prepared, settings)


def _audit_toy_projects(shared: _Audit, project: Project, policy: Policy) -> None:
    """Audit releases of two toy projects. The texts of the first project have many words, for the
    tests of rewritten tokens. The releases of the second project have few words, for the tests of
    charges, records and whole outputs.
    """
    with tempfile.TemporaryDirectory(prefix="lexveil-audit-") as folder:
        shared.findings += audit_written_texts(
            shared.request,
            project,
            policy,
            Path(folder, "written"),
            shared.error,
            shared.generator("texts"),
        )
        shared.findings += audit_releases(
            shared.request,
            project,
            policy,
            Path(folder, "released"),
            shared.epsilons,
            shared.error,
            shared.generator("documents"),
        )


def _result(shared: _Audit, using: Model, prepared: Prepared, settings: Settings) -> AuditResult:
    request = shared.request
    kernel = prepared.mechanism
    # factors in releases (True) and elsewhere (False)
    factors: dict[bool, list[float]] = {True: [], False: []}
    for finding in shared.findings:
        if isinstance(finding.evidence, FitResult) and finding.evidence.factor is not None:
            factors[finding.place.startswith("release")].append(finding.evidence.factor)
    usable = factors[kernel.no_guarantee is None]
    return AuditResult(
        mechanism=request.mechanism,
        guarantee=kernel.guarantee if kernel.no_guarantee is None else "none",
        no_guarantee=kernel.no_guarantee,
        metric=kernel.metric,
        parameters={**prepared.parameters},
        policy=asdict(settings.policy),
        shares=None if settings.shares is None else settings.shares.as_dict(),
        epsilon=request.epsilon,
        epsilons=tuple(sorted(shared.epsilons)),
        strategy=request.strategy,
        mode=request.mode,
        seed=shared.seed if request.mode == "experiment" else None,
        confidence=request.confidence,
        factor=min(usable) if usable else None,
        lexveil=version(),
        code=code_hash(),
        model=using.reference(request.strategy),
        space=using.hashes(request.strategy) | prepared.hashes(),
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        audits=tuple(shared.findings),
    )


def read_space(using: Model, prepared: Prepared, request: AuditRequest) -> AuditedSpace:
    """Return the vocabulary of the mechanism as the audit reads it directly from the files: vectors
    in float64, and word lists reduced to this vocabulary.
    """
    segmentation = SEGMENTATION_OF[request.strategy]
    rows = prepared.vocabulary.rows
    tokens, vectors, counts = _read_embedding(using, segmentation)
    space = np.asarray(vectors[rows], dtype=np.float64)
    if using.purposes:
        lengths = np.sqrt((np.asarray(vectors, dtype=np.float64) ** 2).sum(axis=1))
        reach = REACH * lengths[rows] ** 2 / np.median(lengths)
        for purpose in using.purposes:
            axis = reach * purpose.weight * purpose.of([tokens[row] for row in rows.tolist()])
            space = np.column_stack([space, np.round(axis / STEP) * STEP])
    if request.mechanism not in ON_LISTS:
        n_words = np.array([tokens[row].count("_") + 1 for row in rows.tolist()])
        causal = using.causal_model(request.mechanism)
        reads = None if causal is None else CausalWords(causal.make, tokens, rows)
        in_counts = request.mechanism == IN_CONTEXT and causal is None
        bigrams = _read_bigrams(using, segmentation, rows) if in_counts else None
        return AuditedSpace(space, public=PublicCounts(n_words, counts[rows], bigrams, reads))
    number = {tokens[row]: i for i, row in enumerate(rows.tolist())}
    files = list(prepared.files.values())
    orders = np.load(next(file for file in files if file.suffix == ".npy"), allow_pickle=False)
    # the lists of a packaged model contain its tokens
    words = next((read_words(file) for file in files if file.suffix == ".txt"), tokens)
    if using.packaged and getattr(using.params.mechanisms, request.mechanism).lists != "L1":
        orders = orders[:1]
    known = [
        [number[words[word]] for word in order if words[word] in number]
        for order in orders.tolist()
    ]
    return AuditedSpace(space, np.array(known, dtype=np.int32))


def _read_bigrams(using: Model, segmentation: str, rows: Ids) -> Bigrams | None:
    """Read the bigram counts of the tokens ``rows``. The second token of a bigram is identified by
    its position in ``rows``.
    """
    counted = using.source.bigrams(segmentation)
    if counted is None:
        return None
    starts, ids, counts = counted
    is_word = np.isin(ids, rows)
    before = np.concatenate([[0], np.cumsum(is_word)])
    return Bigrams(before[starts], np.searchsorted(rows, ids[is_word]), counts[is_word])


def _read_embedding(using: Model, segmentation: str) -> tuple[list[str], npt.NDArray[Any], Ids]:
    """Read the tokens, vectors and counts of one segmentation's embedding with NumPy only."""
    if using.packaged is None:
        folder = using.path(paths.embedding(segmentation))
        vectors, counts = (
            np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("vectors", "counts")
        )
        return read_words(folder / "words.txt"), vectors, counts
    folder = using.packaged.folder
    tokens = read_words(folder / "words.txt")
    scaled = [
        np.load(folder / name, allow_pickle=False).astype(np.float32)
        for name in ("vectors.npy", "scales.npy")
    ]
    rows = [row for row, token in enumerate(tokens) if segmentation != "word" or "_" not in token]
    counts = np.load(folder / "counts.npy", allow_pickle=False).astype(np.int64)
    return [tokens[row] for row in rows], (scaled[0] * scaled[1][:, None])[rows], counts[rows]
