"""Audits of strategy S5, which replaces texts by sentences of a sentence bank, with the audit's own
computation.

The audit computes the vectors of sentences and texts, the distances and the output distribution
itself, from the files of the sentence bank and of the model, in float64 and one unit at a time.
From the request it computes the costs of a release and the statements in its record. It has three
parts: the vectors, the mechanism over the bank, and whole releases with a ledger of their own.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from lexveil.auditing.exact import exact_audit
from lexveil.auditing.findings import AuditFinding, AuditResult
from lexveil.auditing.fit import (
    ClaimedDraws,
    FitResult,
    ball_audit,
    distribution_audit,
    independence_audit,
)
from lexveil.auditing.own_noise import OWN_DRAWS, OwnNoise
from lexveil.auditing.request import AuditRequest
from lexveil.base.runtime.hashes import code_hash, version
from lexveil.base.types import Floats, Ids, Noise, Vectors
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.core.mechanisms.noise.streams import release_generator, stream
from lexveil.core.mechanisms.registry import Mechanism
from lexveil.core.text.tokenize import sentences as cut_sentences
from lexveil.io.artifacts.model import Model
from lexveil.io.request import SENTENCES, Request
from lexveil.release.adapters.memory import Privatized, privatize
from lexveil.release.engine.sentences import SentenceEngine, SentenceWorker
from lexveil.release.settings import settings_of

QUERIES = 60  # number of units whose distributions are compared pair by pair
DRAWN = 4  # number of units for which sentences are drawn
RELEASED = 3  # number of different texts in a release
DOUBLINGS = 16  # most doublings of ε until draws have enough power
OFTEN = 0.3  # least share of a unit's draws that gives a test enough power
SCALES = (0.0, 0.01, 0.1, 1.0)  # scales of noise for the check of the chosen sentences
SEVERAL = 3  # sentences per text, in the release with several sentences for a text
PARTS = 16  # greatest number of parts, which divide the probability of a false alarm
CLOSE = 2e-5  # coordinates computed in another order may differ by this much
BETA = "beta"
UNKNOWN = "zxqv"  # a word that no model knows


@dataclass(frozen=True)
class OwnSpace:
    """The sentences, words and vectors of a sentence bank and its model, as the audit itself reads
    them from the files.

    Attributes:
        texts: the sentences.
        rows: the row of each token of the vocabulary.
        space: the words, without purposes.
        component: the direction that is removed from sums of word vectors.
        axes: the weight, the scores and the deviation of each purpose, which is a public word
            scale.
        vectors: (N, p) the vectors of the sentences in the bank.
    """

    texts: Sequence[str]
    rows: Mapping[str, int]
    space: WordSpace
    component: Floats
    axes: Sequence[tuple[float, Floats, float]]
    vectors: Floats

    @classmethod
    def read(cls, folder: Path, model: Model) -> OwnSpace:
        """Read the files of a sentence bank and of the model that gives it vectors."""
        base = replace(model, purposes=())
        space = base.embedding("S3")
        texts = pq.read_table(folder / "sentences.parquet").column("text").to_pylist()
        tokens = np.load(folder / "rows.npy")
        starts = np.load(folder / "starts.npy").tolist()
        component = np.load(folder / "component.npy")
        vectors = np.load(folder / "vectors.npy").astype(np.float64)
        weights = own_weights(space)
        axes = []
        for purpose in model.purposes:
            scores = purpose.of(space.tokens)
            means = [
                _mean_score(tokens[start:stop], weights, scores) for start, stop in pairwise(starts)
            ]
            axes.append((purpose.weight, scores, float(np.std(means))))
            column = [purpose.weight * math.tanh(mean / np.std(means)) for mean in means]
            vectors = np.column_stack([vectors, column])
        rows = {token: row for row, token in enumerate(space.tokens)}
        return cls(texts, rows, space, component, axes, vectors)

    @cached_property
    def places(self) -> dict[str, int]:
        """The row number of each sentence in the sentence bank."""
        return {text: row for row, text in enumerate(self.texts)}

    def vector(self, tokens: Sequence[int]) -> Floats:
        """Return the vector of one text unit, computed from its tokens."""
        weights = own_weights(self.space)
        total = np.zeros(self.space.vectors.shape[1])
        known = [token for token in tokens if token >= 0]
        for token in known:
            total = total + weights[token] * self.space.vectors[token].astype(np.float64)
        total = total - float(total @ self.component) * self.component
        length = math.sqrt(float(total @ total))
        parts = [total / length if length > 0 else total]
        for weight, scores, deviation in self.axes:
            mean = _mean_score(np.array(known, dtype=np.int64), weights, scores)
            parts.append(np.array([weight * math.tanh(mean / deviation)]))
        return np.concatenate(parts)

    @property
    def diameter(self) -> float:
        """D, an upper bound on the distance between the vectors of any two units."""
        return 2 * math.sqrt(1 + sum(weight**2 for weight, _, _ in self.axes))


def own_weights(space: WordSpace) -> Floats:
    """Return (V,) the smooth inverse frequency weights of words, 10^-3 / (10^-3 + frequency)."""
    frequency = np.asarray(space.counts, dtype=np.float64) / float(np.sum(space.counts))
    weights: Floats = 1e-3 / (1e-3 + frequency)
    return weights


def _mean_score(tokens: Ids, weights: Floats, scores: Floats) -> float:
    known = tokens[tokens >= 0]
    total = float(weights[known].sum())
    return float((weights[known] * scores[known]).sum()) / total if total else 0.0


def own_law(distances: Floats, epsilon: float, beta: float) -> Floats:
    """Return the output probability of each of N sentences, given their distances from the input
    unit.
    """
    n = len(distances)
    radius = max(0.0, 2 / epsilon * math.log((1 - beta) * (n - 1) / beta))
    log_weight = -epsilon / 2 * np.minimum(distances, radius)
    weight = np.exp(log_weight - log_weight.max())
    law: Floats = weight / weight.sum()
    return law


@dataclass(frozen=True)
class _SentenceAudit:
    """State that the parts of one audit of sentence outputs share: the request, the model and the
    engine.
    """

    request: AuditRequest
    model: Model
    own: OwnSpace
    engine: SentenceEngine
    error: float

    @property
    def beta(self) -> float:
        """The parameter β of the mechanism."""
        return float(str(self.engine.prepared.parameters[BETA]))

    @property
    def components(self) -> Any:
        """The components with which the rewriting engine draws sentences."""
        worker = self.engine.worker()
        assert isinstance(worker, SentenceWorker)
        assert worker.sentences is not None
        return worker.sentences

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that is audited."""
        mechanism: Mechanism = self.components.mechanism
        return mechanism

    @cached_property
    def own_noise(self) -> OwnNoise | None:
        """The audit's own reference implementation of the noise, for a mechanism that adds noise to
        vectors; its value is None for a mechanism with a closed form.
        """
        if self.mechanism.has_closed_form():
            return None
        vectors = self.mechanism.vectors.astype(np.float64)
        return OwnNoise(vectors, self.engine.prepared.parameters, self.model.params.seed)

    def at(self, epsilon: float) -> _SentenceAudit:
        """Return the same audit for another epsilon."""
        return replace(self, request=self.request.model_copy(update={"epsilon": epsilon}))

    def with_power(self) -> float:
        """Return the smallest ε (the requested one times a power of two) at which the audit has
        enough power: a sentence of the bank is then its own output so often that a test detects a
        wrong ε.
        """
        assert self.own_noise is not None
        query = self.queries()[0]
        epsilon = self.request.epsilon
        for _ in range(DOUBLINGS):
            if self.own_noise.counts(query, epsilon).max() >= OFTEN * OWN_DRAWS:
                break
            epsilon *= 2
        return epsilon

    def sample(self) -> list[str]:
        """Return the test texts: one sentence of the sentence bank, several sentences, and a text
        without any known word.
        """
        rng = np.random.default_rng(self.model.params.seed)
        chosen = rng.choice(len(self.own.texts), size=2 * QUERIES, replace=False).tolist()
        single = [self.own.texts[row] for row in chosen[:QUERIES]]
        joined = [
            f"{self.own.texts[row]} {UNKNOWN} {single[n]}" for n, row in enumerate(chosen[QUERIES:])
        ]
        return [*single, *joined, UNKNOWN]

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of a text, segmented greedily (CLMLDP, Algorithm 1)."""
        findings = []
        for words in cut_sentences(text, self.model.language):
            at = 0
            while at < len(words):
                size = next(n for n in (3, 2, 1) if n == 1 or self._joins(words[at : at + n], n))
                findings.append(self.own.rows.get("_".join(words[at : at + size]), -1))
                at += size
        return findings

    def _joins(self, words: Sequence[str], size: int) -> bool:
        return len(words) == size and "_".join(words) in self.own.rows

    def embedded(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts as the release code computes them."""
        from lexveil.core.text.encode import encode
        from lexveil.release.engine.sentences import cut

        units, _, _ = cut(encode(texts, self.engine.lexicon), 1)
        vectors: Vectors = self.components.space.embed(units)
        return vectors

    def vectors(self) -> AuditFinding:
        """Check the vectors of texts and of the sentence bank against vectors that the audit
        computes itself.
        """
        texts = self.sample()
        wrong = list[str]()
        expected = np.array([self.own.vector(self.tokens(text)) for text in texts])
        together = self.embedded(texts)
        alone = np.concatenate([self.embedded([text]) for text in texts])
        # the coordinates of purposes are rounded to whole steps
        slack = np.full(expected.shape[1], CLOSE)
        slack[len(slack) - len(self.own.axes) :] += 2.0**-12
        if (np.abs(together - expected) > slack).any():
            wrong.append("vectors of texts are not the weighted means of their words")
        if not np.array_equal(together, alone):
            wrong.append("the vector of a text depends on the texts beside it")
        if (np.abs(self.mechanism.vectors - self.own.vectors) > slack).any():
            wrong.append("the sentences of the mechanism differ from the sentences of the bank")
        right = "each vector is the mean of its words and does not depend on other texts"
        return AuditFinding.fact("bank: texts and sentences", "vectors", wrong, right)

    def queries(self) -> Vectors:
        """Return the vectors of the test texts on which the mechanism is audited."""
        return self.embedded(self.sample())

    def distances(self, query: Vectors) -> Floats:
        """Return the distances of a vector to all sentences of the sentence bank, in float64."""
        difference = self.mechanism.vectors.astype(np.float64) - query.astype(np.float64)
        distances: Floats = np.sqrt((difference**2).sum(axis=1))
        return distances

    def exact(self) -> AuditFinding:
        """Compare the privacy losses by the closed form with ε·d, for all pairs of units."""
        queries = self.queries()
        epsilon = self.request.epsilon
        mechanism = self.mechanism
        queries = queries[np.linspace(0, len(queries) - 1, QUERIES).astype(int)]

        def apart(first: Ids, second: Ids) -> Floats:
            left, right = (queries[ids].astype(np.float64) for ids in (first, second))
            distances: Floats = np.sqrt(((left[:, None] - right[None]) ** 2).sum(axis=2))
            return distances

        evidence = exact_audit(
            lambda ids: mechanism.log_pmf_of(queries[ids], np.full(len(ids), epsilon)),
            np.arange(len(queries)),
            apart,
            epsilon,
        )
        return AuditFinding.of(f"bank: {len(queries)} texts, all sentences", evidence)

    def claimed(self, name: str, query: Vectors, rows: Ids) -> ClaimedDraws:
        """Return the outputs of a mechanism for one unit, with the distribution that is claimed for
        them.
        """
        distances = self.distances(query)
        epsilon = self.request.epsilon
        counts = np.bincount(rows, minlength=len(distances))
        if self.own_noise is not None:
            own = self.own_noise.counts(query, epsilon)
            inflated = partial(self._own_share, query)
            order = np.lexsort((distances, -own))
            return ClaimedDraws(name, counts, own, order, OWN_DRAWS, inflated)
        law = partial(own_law, distances, beta=self.beta)
        return ClaimedDraws(
            name=name,
            counts=counts,
            mass=law(epsilon),
            order=np.lexsort((np.arange(len(distances)), distances)),
            inflated=lambda factor: law(epsilon * factor),
        )

    def _own_share(self, query: Vectors, factor: float) -> Floats:
        assert self.own_noise is not None
        counts = self.own_noise.counts(query, self.request.epsilon * factor)
        return counts / OWN_DRAWS

    def noisy(self) -> list[AuditFinding]:
        """Audit a mechanism that adds noise: the noise itself, and the sentence that the mechanism
        chooses for a noisy vector.
        """
        own = self.own_noise
        assert own is not None
        epsilon = np.full(self.request.samples, self.request.epsilon)
        noise: Noise = self.mechanism.noise(epsilon, self.generator("noise"))
        fit = ball_audit(own.in_a_ball(noise), self.request.epsilon, self.error)
        queries = self.queries()
        of = np.arange(len(epsilon)) % len(queries)
        p = queries.shape[1]
        uniform = noise[:, p] if noise.shape[1] > p else np.zeros(len(noise))
        wrong = list[str]()
        for scale in SCALES:
            scaled = noise.copy()
            scaled[:, :p] *= scale
            drawn = self.mechanism.replace_queries(queries, of, epsilon, scaled)
            expected, is_close = own.chosen(queries[of] + scaled[:, :p], uniform)
            if differ := int(((drawn != expected) & ~is_close).sum()):
                wrong.append(
                    f"{differ:,} of {len(drawn):,} noisy vectors give an unexpected sentence"
                )
        right = "each noisy vector gives the expected sentence for every text"
        return [
            AuditFinding.of("bank: noise", fit),
            AuditFinding.fact("bank: noisy vectors", "nearest", wrong, right),
        ]

    def generator(self, name: str) -> np.random.Generator:
        """Return a random generator for the audit's mode: operating-system entropy for a release, a
        seed for an experiment.
        """
        if self.request.mode == "release":
            return release_generator()
        return stream(self.model.params.seed, "audit", "sentences", name)

    def drawn(self) -> AuditFinding:
        """Test whether sampled outputs of the mechanism follow the claimed distribution."""
        queries = self.queries()
        queries = queries[np.linspace(0, len(queries) - 1, DRAWN).astype(int)]
        n = self.request.samples
        of = np.tile(np.arange(len(queries)), n)
        epsilon = np.full(len(of), self.request.epsilon)
        noise: Noise = self.mechanism.noise(epsilon, self.generator("draws"))
        rows = self.mechanism.replace_queries(queries, of, epsilon, noise)
        samples = [
            self.claimed(f"text {number}", query, rows[of == number])
            for number, query in enumerate(queries)
        ]
        evidence = distribution_audit(samples, self.request.epsilon, self.error)
        return AuditFinding.of(f"bank: {len(queries)} texts", evidence)

    def released(self, folder: Path) -> list[AuditFinding]:
        """Audit whole releases of three kinds: one sentence for each text, several sentences for
        each text, and one sentence for each sentence of a text.
        """
        n = max(40, self.request.samples // 10)
        texts = self.sample()[:: 2 * QUERIES // RELEASED][:RELEASED]
        rows = [texts[number % RELEASED] for number in range(n * RELEASED)]
        findings = []
        for name, how, per_text in (
            ("one for a text", {"sentences": 1}, [1] * RELEASED),
            ("several for a text", {"sentences": SEVERAL}, [SEVERAL] * RELEASED),
            ("one for each sentence", {"unit": "sentence"}, [self._cut(text) for text in texts]),
        ):
            where = f"{name.replace(' ', '-')}-{self.request.epsilon:g}"
            release = self._privatized(rows, how, folder / where)
            place = f"release: {SENTENCES}, {name}, ε {self.request.epsilon:g}"
            outputs = [self.read(value) for value in release.values]
            costs = [per_text[number % RELEASED] for number in range(len(rows))]
            wrong = self._wrong(release, outputs, costs)
            right = (
                "each sentence belongs to the bank and spends ε, and the ledger was charged for it"
            )
            findings.append(AuditFinding.fact(place, "budget", wrong, right))
            if not wrong:
                findings += self._fitted(place, texts, outputs, per_text)
        return findings

    def _cut(self, text: str) -> int:
        return len(cut_sentences(text, self.model.language))

    def _privatized(self, rows: list[str], how: dict[str, Any], folder: Path) -> Privatized:
        project = self.model.project
        places = {
            "folder": str(folder / "ledger"),
            "anchor": str(folder / "anchor.json"),
            "cap": "unlimited",
        }
        configuration = project.configuration.changed(ledger=places)
        model = replace(
            self.model,
            project=replace(project, configuration=configuration),
            suppress_language_warning=True,
        )
        asked = {"strategy": SENTENCES, "bank": self.request.bank, "epsilon": self.request.epsilon}
        asked |= {"mode": self.request.mode, "mechanism": self.request.mechanism, "workers": 1}
        folder.mkdir()
        subjects = [f"subject {number}" for number in range(len(rows))]
        is_release = self.request.mode == "release"
        request = Request.of({**asked, **how})
        return privatize(rows, request, model, subjects=subjects if is_release else None)

    def read(self, text: str) -> list[int] | None:
        """Return an output text as row numbers of the sentence bank. The result is None if the text
        is not a sequence of the bank's sentences.
        """
        places = self.own.places
        rows_of_text: dict[int, list[int]] = {0: []}
        ends = [at for at, sign in enumerate(text) if sign == " "] + [len(text)]
        for end in ends:
            for start in [start for start in rows_of_text if start < end]:
                row = places.get(text[start:end])
                if row is not None:
                    rows_of_text.setdefault(end + 1, [*rows_of_text[start], row])
        return [] if not text else rows_of_text.get(len(text) + 1)

    def _wrong(
        self, release: Privatized, outputs: Sequence[list[int] | None], costs: Sequence[int]
    ) -> list[str]:
        """List the faults of a release: in its sentences, in the ε of the token log, in the charges
        and in the record.
        """
        epsilon = self.request.epsilon
        wrong = list[str]()
        if any(rows is None for rows in outputs):
            wrong.append("an output is not a sequence of sentences of the bank")
        elif [len(rows or ()) for rows in outputs] != list(costs):
            wrong.append("the number of sentences differs from the stated number")
        log = release.token_log.to_pydict()
        counts = np.bincount(np.array(log["row"]) - 1, minlength=len(outputs))
        if counts.tolist() != list(costs):
            wrong.append("the number of sentences in the token log is wrong")
        # ε is rounded down to 32 bits
        if not np.allclose(log["epsilon"], epsilon, rtol=2.0**-31, atol=0):
            wrong.append("a sentence spends another ε than the requested one")
        total = epsilon * sum(costs)
        ledger = release.operator.ledger
        if ledger is not None and not math.isclose(ledger.epsilon_charged, total, rel_tol=1e-8):
            wrong.append(f"the ledger charged {ledger.epsilon_charged:g}, but {total:g} was spent")
        said = release.record.sentences
        stretch = 1.0 if self.own_noise is None else self.own_noise.stretch
        diameter = self.own.diameter * stretch
        if said is None or not math.isclose(said.diameter, diameter, rel_tol=1e-9):
            wrong.append("the record states another diameter")
        elif not math.isclose(said.local_epsilon, epsilon * diameter, rel_tol=1e-8):
            wrong.append("the record states another local bound")
        if release.record.guarantee.holds != (self.request.mode == "release"):
            wrong.append("the record claims privacy for an experiment, or none for a release")
        return wrong

    def _fitted(
        self, place: str, texts: Sequence[str], outputs: Sequence[Any], per_text: Sequence[int]
    ) -> list[AuditFinding]:
        """Test whether the sentences of releases follow the claimed distribution and are
        independent of each other.
        """
        samples = []
        for number, text in enumerate(texts):
            rows = np.array(outputs[number::RELEASED]).reshape(-1, per_text[number])
            if per_text[number] == 1 or self._cut(text) != per_text[number]:
                query = self.embedded([text])[0]
                samples.append(self.claimed(f"text {number}", query, rows.ravel()))
        findings = []
        if samples:
            evidence = distribution_audit(samples, self.request.epsilon, self.error)
            findings.append(AuditFinding.of(place, evidence))
        if min(per_text) > 1:
            pairs = {}
            for number in range(len(texts)):
                rows = np.array(outputs[number::RELEASED])
                pairs[f"two sentences of text {number}"] = (rows[:, 0], rows[:, 1])
                pairs[f"texts {number} in a row"] = (rows[:-1, 0], rows[1:, 0])
            independent = independence_audit(pairs, self.error, self.request.epsilon)
            findings.append(AuditFinding.of(place, independent))
        return findings


def audit_sentences(
    request: AuditRequest, model: Model, told: Callable[[str], object] = print
) -> AuditResult:
    """Audit the mechanism that draws sentences from a sentence bank, at one ε.

    Args:
        told: called with a message when a part begins.

    Raises:
        RequestError: if the request is wrong, or the bank cannot be used.
    """
    asked = {"strategy": SENTENCES, "bank": request.bank, "epsilon": request.epsilon}
    asked |= {"mechanism": request.mechanism, "mode": request.mode}
    settings = settings_of(Request.of(asked), model.project)
    engine = SentenceEngine(settings, model)
    own = OwnSpace.read(engine.bank.folder, model)
    shared = _SentenceAudit(request, model, own, engine, (1 - request.confidence) / PARTS)
    told("audit: vectors")
    findings = [shared.vectors()]
    told("audit: the distribution of a draw")
    epsilons = [request.epsilon]
    if shared.own_noise is None:
        findings += [shared.exact(), shared.drawn()]
    else:
        findings += shared.noisy()
        epsilons = sorted({request.epsilon, shared.with_power()})
    told("audit: releases")
    with tempfile.TemporaryDirectory(prefix="lexveil-audit-") as folder:
        for epsilon in epsilons:
            findings += shared.at(epsilon).released(Path(folder))
    return _result(shared, findings, epsilons)


def _result(
    shared: _SentenceAudit, findings: Sequence[AuditFinding], epsilons: Sequence[float]
) -> AuditResult:
    request = shared.request
    engine = shared.engine
    factors = [
        finding.evidence.factor
        for finding in findings
        if isinstance(finding.evidence, FitResult) and finding.evidence.factor is not None
        if finding.place.startswith("release")
    ]
    return AuditResult(
        mechanism=request.mechanism,
        guarantee=shared.mechanism.guarantee,
        no_guarantee=None,
        metric=shared.mechanism.metric,
        parameters=dict(engine.prepared.parameters),
        policy=asdict(engine.settings.policy),
        shares=None,
        epsilon=request.epsilon,
        epsilons=tuple(epsilons),
        strategy=request.strategy,
        mode=request.mode,
        seed=shared.model.params.seed if request.mode == "experiment" else None,
        confidence=request.confidence,
        factor=min(factors) if factors else None,
        lexveil=version(),
        code=code_hash(),
        model=shared.model.reference(engine.settings.of_words),
        space=engine.made_with(),
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        audits=tuple(findings),
    )
