"""Test the privacy that a mechanism claims: what `lexveil audit` calls. No stage of the graph.

It looks at four places, all with the mechanism and the code that a run uses:

* two toys, a line and a plane of words whose spacing is half a unit of 1/ε: there losses are large enough to be seen;
* a vocabulary of seeded words of the built embedding: exact where the law is closed-form; samples can show little
  there, because in many dimensions no event of noticeable probability comes near the bound;
* whole texts through ``lexveil.privatization`` with budgets from ``lexveil.accounting``, two texts to a release, so
  that noise shared between tokens or texts, a token passed through and a budget overspent show, whatever their cause.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from lexveil import paths
from lexveil.accounting.budgets import (
    KEPT,
    PERTURBED,
    SEGMENTATION_OF,
    STRATEGIES,
    Policy,
    document_budget,
    epsilon_per_token,
)
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.artifacts.embeddings import load_embedding
from lexveil.artifacts.mechanisms import build_over, prepare
from lexveil.auditing.audit import (
    Distances,
    ExactResult,
    SampledResult,
    bounds_audit,
    distances_of,
    exact_audit,
    kernel_sampler,
    noise_reused,
    sampled_audit,
)
from lexveil.config import MechanismParams, load_params
from lexveil.errors import ParameterError, RequestError
from lexveil.mechanisms.deniability import choose_words
from lexveil.mechanisms.noise.streams import release_generator, stream
from lexveil.mechanisms.registry import MECHANISMS, ClosedForm, Kernel, Mechanism
from lexveil.mechanisms.truncated_gumbel import TruncatedGumbel
from lexveil.privatization.rewrite import Rewritten, rewrite
from lexveil.runtime.stage import Progress
from lexveil.runtime.tables import write_json
from lexveil.text.collocation_index import Collocations
from lexveil.text.encode import PUNCTUATION, Lexicon, encode
from lexveil.types import Floats, Ids, Vectors

MODES = ("experiment", "release")
CONFIDENCE = 0.999  # of a whole audit: a mechanism that keeps its claim is flagged once in a thousand audits
STEP = 0.5  # smallest distance of toy words, in units of 1/ε
STRETCHES = 10  # how often a toy is doubled for a mechanism that refuses small distances
TEXTS = 2_000  # texts rewritten at a time

# (stage, input) -> the generator of each text of a batch, as rewrite wants it
Generators = Callable[[str, int], Callable[[int], np.random.Generator]]
# texts and their generators -> the rewritten batch
Rewriter = Callable[[list[str], Callable[[int], np.random.Generator]], Rewritten]


def toy_vectors(shape: str, epsilon: float) -> Vectors:
    """Eight words on a line or twelve in a plane, the nearest two ``STEP / epsilon`` apart."""
    if shape == "line":
        places = np.cumsum([0.0, 1.0, 1.0, 2.0, 1.4, 1.0, 1.6, 1.0])[:, None]
    else:
        angle = np.arange(12) * 2.399963  # the golden angle spreads them
        places = np.sqrt(np.arange(12) + 0.5)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    gaps = np.linalg.norm(places[:, None] - places[None], axis=2)
    smallest = gaps[~np.eye(len(places), dtype=bool)].min()
    return np.asarray(places * (STEP / epsilon / smallest), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Toy:
    """A small vocabulary for whole texts, some of its tokens collocations."""

    lexicon: Lexicon
    vocabulary: Vocabulary
    companion: str  # another text of the same release, the same whatever the text under audit is
    texts: list[
        str
    ]  # they differ in their first token: four words, a collocation where there are any, two unknown words


def toy_texts(strategy: str, epsilon: float, policy: Policy) -> Toy:
    """Six tokens on a line, and the texts that are told apart."""
    segmentation = SEGMENTATION_OF[strategy]
    words = ["amber", "birch", "cedar", "ember"]
    tail = "north sea"
    if segmentation == "word":
        tokens, collocations, longer = [*words, "north", "sea"], None, []
    else:
        tokens = [*words, "north_sea", "harbor_storm_signal"]
        collocations = Collocations.build(
            [["north"], ["sea"]], np.array([9.0]), [["harbor"], ["storm"], ["signal"]], np.array([9.0])
        )
        longer = ["harbor storm signal"]
    places = np.cumsum([0.0, 1.0, 1.0, 2.0, 1.4, 1.0])[:, None] * (STEP / epsilon)
    vocabulary = Vocabulary.of(tokens, places.astype(np.float32), policy)
    heads = [*words, *longer, "zorblax", "quuxly"]
    return Toy(
        Lexicon.build(segmentation, tokens, collocations), vocabulary, "birch", [f"{head} {tail}" for head in heads]
    )


def text_budgets(
    texts: Sequence[str], lexicon: Lexicon, vocabulary: Vocabulary, policy: Policy, strategy: str, budget: float
) -> Floats:
    """ε of each perturbed token of each text, as a run plans it."""
    encoded = encode(texts, lexicon)
    known = np.where(encoded.rows >= 0, vocabulary.number[encoded.rows], -1)
    perturbed = policy.actions(encoded.kind, known >= 0) == PERTURBED
    counts = [
        np.bincount(encoded.text_of, weights=weights, minlength=len(texts)).astype(np.int64)
        for weights in (perturbed, perturbed * encoded.n_words)
    ]
    return epsilon_per_token(strategy, budget, *counts)


def claimed_losses(
    texts: Sequence[str],
    per_token: Floats,
    lexicon: Lexicon,
    vocabulary: Vocabulary,
    policy: Policy,
    distances: Distances,
) -> Floats:
    """What the record of a run with this policy claims for each pair of texts, in nats, shape (n, n).

    Texts of which the same tokens meet the same action at the same ε: Σ ε_i·d over perturbed tokens; sampled and
    dropped ones tell nothing; where kept ones differ, or anything else, nothing is claimed, which is infinity.
    """
    encoded = encode(texts, lexicon)
    known = np.where(encoded.rows >= 0, vocabulary.number[encoded.rows], -1)
    action = policy.actions(encoded.kind, known >= 0)
    offsets = encoded.offsets()
    allowed = np.full((len(texts), len(texts)), np.inf)
    parts = [slice(offsets[i], offsets[i + 1]) for i in range(len(texts))]
    form = [encoded.words[first] for first in encoded.first_word.tolist()]
    for a, mine in enumerate(parts):
        for b, theirs in enumerate(parts):
            if not np.array_equal(action[mine], action[theirs]) or not np.isclose(
                per_token[a], per_token[b], rtol=1e-12
            ):
                continue
            if any(
                act == KEPT and one != other
                for act, one, other in zip(action[mine].tolist(), form[mine], form[theirs], strict=True)
            ):
                continue
            perturbed = action[mine] == PERTURBED
            pairs = zip(known[mine][perturbed], known[theirs][perturbed], strict=True)
            moved = sum(
                float(distances(np.array([one]), np.array([other]))[0, 0]) for one, other in pairs if one != other
            )
            allowed[a, b] = per_token[a] * moved
    return allowed


def text_sampler(
    companion: str, texts: Sequence[str], rewriter: Rewriter, generators: Generators
) -> Callable[[int, int, str], Ids]:
    """Releases of two texts, the companion and one of ``texts``; what comes out is both rewritten texts together."""
    codes: dict[tuple[str, str], int] = {}

    def sample(number: int, n: int, stage: str) -> Ids:
        generator = generators(stage, number)
        out: list[int] = []
        for start in range(0, 2 * n, TEXTS):
            batch = [companion, texts[number]] * (min(TEXTS, 2 * n - start) // 2)
            new = rewriter(batch, lambda i, first=start: generator(first + i)).texts  # type: ignore[misc]
            out += [codes.setdefault(pair, len(codes)) for pair in zip(new[::2], new[1::2], strict=True)]
        return np.array(out, dtype=np.int64)

    return sample


def audit_texts(
    companion: str,
    texts: Sequence[str],
    allowed: Floats,
    epsilon: float,
    rewriter: Rewriter,
    generators: Generators,
    samples: int,
    confidence: float,
    advance: Callable[[int], None] | None = None,
) -> SampledResult:
    """Whether releases of the texts keep what is claimed for them.

    Args:
        allowed: (n, n) the claim for each pair of texts, in nats; infinite where there is none.
        rewriter: what is audited.
        generators: its randomness, as the mode under audit makes it.
    """
    return sampled_audit(
        text_sampler(companion, texts, rewriter, generators), allowed, epsilon, samples, confidence, advance=advance
    )


class Recorder:
    """Passes everything on to a mechanism and keeps the noise it draws."""

    name: ClassVar[str] = "recorder"
    metric: ClassVar[str] = ""
    guarantee: ClassVar[str] = "none"

    def __init__(self, inner: Mechanism) -> None:
        self.inner = inner
        self.noises: list[npt.NDArray[Any]] = []

    def noise(self, epsilon: Floats, rng: np.random.Generator) -> Any:
        """Draw, and remember."""
        drawn = self.inner.noise(epsilon, rng)
        self.noises.append(np.array(drawn))
        return drawn

    def replace(self, ids: Ids, epsilon: Floats, noise: Any) -> Ids:
        """As the mechanism does."""
        return self.inner.replace(ids, epsilon, noise)


def generators_of(mode: str, seed: int, *names: str) -> Generators:
    """Streams as a run makes them: one for each row of an experiment, one keyed by the system for a whole release."""

    def make(stage: str, number: int) -> Callable[[int], np.random.Generator]:
        if mode == "release":
            shared = release_generator()
            return lambda _: shared
        return lambda row: stream(seed, "audit", *names, stage, str(number), str(row))

    return make


def spent_too_much(done: Rewritten, budget: float) -> float:
    """By how much the texts' largest Σε exceeds their budget; 0 if it does not (1e-9 relative is rounding)."""
    over = float(done.per_text(done.epsilon).max(initial=0.0)) - budget
    return over if over > 1e-9 * budget else 0.0


def audit(
    mechanism: str,
    epsilon: float,
    words: int = 300,
    samples: int = 20_000,
    strategy: str = "S1",
    mode: str = "experiment",
    confidence: float = CONFIDENCE,
    out: Path | None = None,
) -> dict[str, Any]:
    """Audit one mechanism at one per-token (in texts: base) ε.

    Args:
        words: seeded words of the strategy's embedding; all of them if there are fewer.
        samples: draws per word or text, half of them to find what to test, half to test it.
        out: where to write the result as JSON.

    Returns:
        The result: its keys ``audits`` (one per place and method) and ``violation``.

    Raises:
        RequestError: if the request is wrong or the artifacts are missing.
    """
    params = load_params()
    _check(mechanism, epsilon, words, samples, strategy, mode, confidence, out)
    policy = Policy.of(strategy, params.policy.stopwords, params.policy.punctuation, params.policy.oov)
    space = load_embedding(SEGMENTATION_OF[strategy])
    made = prepare(mechanism, SEGMENTATION_OF[strategy], space, policy, params.mechanisms)
    real, vocabulary = made.mechanism, made.vocabulary
    if len(vocabulary.rows) < 2:
        raise RequestError(
            f"{paths.embedding(SEGMENTATION_OF[strategy])} holds fewer than two words; enlarge the corpus"
        )
    real.noise(np.full(1, epsilon), stream(0, "audit", "does it accept"))  # what it refuses is no claim
    chosen = choose_words(len(vocabulary.rows), words, stream(params.seed, "audit", "words"))
    part = 1 - (1 - confidence) / 4  # four sampled audits share the chance of a false alarm
    names = (mechanism, strategy, repr(epsilon))
    rows: list[dict[str, Any]] = []

    for shape in ("line", "plane"):
        vectors = toy_vectors(shape, epsilon)
        kernel = _accepted(mechanism, vectors, params.mechanisms, epsilon)
        generators = _kernel_generators(mode, params.seed, *names, shape)
        rows += _audit_kernel(f"toy: {shape} of {len(vectors)} words", kernel, epsilon, samples, part, generators)

    rows += _audit_law(f"vocabulary: {len(chosen):,} of {real.size:,} words", real, chosen, epsilon)
    kernel = build_over(mechanism, np.ascontiguousarray(vocabulary.vectors[chosen]), params.mechanisms)
    generators = _kernel_generators(mode, params.seed, *names, "vocabulary")
    rows += _audit_kernel(f"vocabulary of {len(chosen):,} words", kernel, epsilon, samples, part, generators)

    rows += _audit_rewriting(mechanism, params.mechanisms, strategy, epsilon, policy, mode, params.seed, samples, part)

    result = {
        "mechanism": mechanism,
        "guarantee": real.guarantee if real.no_guarantee is None else "none",
        "no_guarantee": real.no_guarantee,
        "metric": real.metric,
        "parameters": made.parameters,
        "epsilon": epsilon,
        "strategy": strategy,
        "mode": mode,
        "seed": params.seed if mode == "experiment" else None,
        "confidence": confidence,
        "audits": rows,
        "violation": any(row["violation"] for row in rows),
    }
    if out is not None:
        write_json(_finite(result), out)
    return result


def _check(
    mechanism: str,
    epsilon: float,
    words: int,
    samples: int,
    strategy: str,
    mode: str,
    confidence: float,
    out: Path | None,
) -> None:
    if mechanism not in MECHANISMS:
        raise RequestError(f"--mechanism {mechanism}: there is no such mechanism; there are {', '.join(MECHANISMS)}")
    if strategy not in STRATEGIES:
        raise RequestError(f"--strategy {strategy}: must be one of {', '.join(STRATEGIES)}")
    if mode not in MODES:
        raise RequestError(f"--mode {mode}: must be one of {', '.join(MODES)}")
    if not 0 < epsilon < float("inf"):
        raise RequestError(f"--epsilon {epsilon}: must be finite and greater than 0")
    if words < 2:
        raise RequestError(f"--words {words}: two words are the fewest that can be told apart")
    if samples < 200:
        raise RequestError(f"--samples {samples}: fewer than 200 show nothing")
    if not 0 < confidence < 1:
        raise RequestError(f"--confidence {confidence}: must lie between 0 and 1")
    if out is not None and not out.parent.is_dir():
        raise RequestError(f"--out {out}: there is no such folder")


def _accepted(name: str, vectors: Vectors, params: MechanismParams, epsilon: float) -> Kernel:
    """Build on a toy, stretched as far as the mechanism needs to accept epsilon. ``vectors`` is stretched in place."""
    for _ in range(STRETCHES):
        try:
            mechanism = build_over(name, vectors, params)
            mechanism.noise(np.full(1, epsilon), stream(0, "audit", "does it accept"))
        except ParameterError as error:
            refusal = error
            vectors *= 2
        else:
            return mechanism
    raise refusal


def _kernel_generators(mode: str, seed: int, *names: str) -> Callable[[str, int], np.random.Generator]:
    make = generators_of(mode, seed, *names)
    return lambda stage, number: make(stage, number)(0)


def _audit_law(place: str, mechanism: Kernel, ids: Ids, epsilon: float) -> list[dict[str, Any]]:
    """What can be said of the law without samples, for inputs ``ids`` and every output; nothing if it is not known."""
    distances = distances_of(mechanism)
    if isinstance(mechanism, ClosedForm):
        closed = mechanism
        exact = exact_audit(lambda some: closed.log_pmf(some, np.full(len(some), epsilon)), ids, distances, epsilon)
        return [_row(place, exact)]
    if isinstance(mechanism, TruncatedGumbel):
        return [_row(place, bounds_audit(*gumbel_bounds(mechanism.size, ids, distances), ids, distances, epsilon))]
    return []


def gumbel_bounds(size: int, ids: Ids, distances: Distances) -> tuple[Floats, Floats]:
    """Of truncated Gumbel, whatever its noise: what the number k of neighbours alone says.

    Returns:
        ln Pr[k = 1], for then the word itself comes out, (n,); and ln Pr[k > words nearer to w' than w], for else w
        can't come out of w', (n, n).
    """
    k = np.arange(1, size + 1)
    sizes = k * np.log(np.log(size)) - gammaln(k + 1)
    sizes -= np.logaddexp.reduce(sizes)
    at_least = np.logaddexp.accumulate(sizes[::-1])[::-1]
    every = np.arange(size, dtype=np.int64)
    reached = np.empty((len(ids), len(ids)))
    for i in range(len(ids)):
        row = distances(ids[i : i + 1], every)[0]
        reached[i] = at_least[np.searchsorted(np.sort(row), row[ids], side="left")]
    return np.full(len(ids), sizes[0]), reached


def _audit_kernel(
    place: str,
    mechanism: Kernel,
    epsilon: float,
    samples: int,
    confidence: float,
    generators: Callable[[str, int], np.random.Generator],
) -> list[dict[str, Any]]:
    ids = np.arange(mechanism.size, dtype=np.int64)
    distances = distances_of(mechanism)
    rows = _audit_law(place, mechanism, ids, epsilon)
    progress = Progress(f"audit, {place}", len(ids) * samples, "draws at most")
    sampled = sampled_audit(
        kernel_sampler(mechanism, ids, epsilon, generators),
        epsilon * distances(ids, ids),
        epsilon,
        samples,
        confidence,
        advance=progress.advance,
    )
    _finish(progress)
    return [*rows, _row(place, sampled)]


def _audit_rewriting(
    mechanism: str,
    params: MechanismParams,
    strategy: str,
    epsilon: float,
    policy: Policy,
    mode: str,
    seed: int,
    samples: int,
    confidence: float,
) -> list[dict[str, Any]]:
    toy = toy_texts(strategy, epsilon, policy)
    encoded = encode(toy.texts, toy.lexicon)
    n_words = np.bincount(encoded.text_of, weights=encoded.n_words * (encoded.kind != PUNCTUATION))
    budget = document_budget(epsilon, n_words.astype(np.int64))
    planned = text_budgets([toy.companion, *toy.texts], toy.lexicon, toy.vocabulary, policy, strategy, budget)
    kernel = _accepted(mechanism, toy.vocabulary.vectors, params, float(planned[planned > 0].min()))
    plan = dict(zip([toy.companion, *toy.texts], planned.tolist(), strict=True))

    def rewriter(texts: list[str], generator: Callable[[int], np.random.Generator]) -> Rewritten:
        per_text = np.array([plan[text] for text in texts])
        return rewrite(texts, per_text, toy.lexicon, toy.vocabulary, kernel, policy, generator)

    allowed = claimed_losses(toy.texts, planned[1:], toy.lexicon, toy.vocabulary, policy, distances_of(kernel))
    generators = generators_of(mode, seed, mechanism, strategy, repr(epsilon), "texts")
    place = f"texts: {strategy}, {mode} mode"
    progress = Progress(f"audit, {place}", len(toy.texts) * samples, "releases at most")
    sampled = audit_texts(
        toy.companion, toy.texts, allowed, epsilon, rewriter, generators, samples, confidence, progress.advance
    )
    _finish(progress)
    over = spent_too_much(rewriter(toy.texts, generators("budget", 0)), budget)
    reused = noise_reused(drawn_noises(kernel, toy, policy, epsilon, generators, 2 if mode == "release" else 1))
    return [
        _row(place, sampled),
        _fact(place, "budget", over > 0, f"Σε exceeds B by {over:.3g}" if over else "Σε within B"),
        _fact(place, "noise", reused, "noise is used twice" if reused else "no noise is used twice"),
    ]


def drawn_noises(
    kernel: Mechanism, toy: Toy, policy: Policy, epsilon: float, generators: Generators, runs: int
) -> list[npt.NDArray[Any]]:
    """The noise of two equal texts of 64 tokens in each of several runs.

    ε is at most 0.01, so that integer noise too agrees by chance only with a probability below 1e-100; if the mechanism
    refuses that, its ε is the one under audit.
    """
    word = toy.lexicon.tokens[0]
    for smaller in (min(0.01, epsilon), epsilon):
        recorder = Recorder(kernel)
        budgets = np.full(2, smaller)
        try:
            for run in range(runs):
                texts = [" ".join([word] * 64)] * 2
                generator = generators("noise", run)
                rewrite(texts, budgets, toy.lexicon, toy.vocabulary, recorder, policy, generator)
        except ParameterError as error:
            refusal = error
            continue
        return recorder.noises
    raise refusal


def _finish(progress: Progress) -> None:
    # Only words that are tested are drawn in full.
    progress.total = progress.done
    progress.finish()


def _row(place: str, result: ExactResult | SampledResult) -> dict[str, Any]:
    passed = "holds" if result.method == "exact" else "no violation found"
    return {"place": place, **result.as_dict(), "verdict": "VIOLATED" if result.violation else passed}


def _fact(place: str, method: str, violation: bool, detail: str) -> dict[str, Any]:
    verdict = "VIOLATED" if violation else "holds"
    return {"place": place, "method": method, "violation": violation, "detail": detail, "verdict": verdict}


def _finite(value: Any) -> Any:
    """The same value with infinities as text, which JSON can carry."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def as_json(result: dict[str, Any]) -> dict[str, Any]:
    """The result as JSON carries it."""
    made: dict[str, Any] = _finite(result)
    return made


def as_table(result: dict[str, Any]) -> list[str]:
    """The result as lines for people."""
    cells = [["where", "method", "claimed ε", "audited ε", "confidence", "verdict"]]
    for row in result["audits"]:
        bound = row.get("audited")
        sign = "" if row["method"] == "exact" or not bound else "> "
        cells.append(
            [
                row["place"],
                row["method"],
                f"{row['claimed']:g}" if "claimed" in row else "-",
                "-" if bound is None else f"{sign}{bound:.4g}",
                f"{row['confidence']:.5f}" if "confidence" in row else "certain" if "claimed" in row else "-",
                row["verdict"] + (f": {row['detail']}" if row.get("detail") else ""),
            ]
        )
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    found = "a violation of the claimed ε was found" if result["violation"] else "no violation was found"
    if result["no_guarantee"] is not None:
        lines.append(f"nothing is claimed: {result['no_guarantee']}")
    return [*lines, f"{result['mechanism']} at ε = {result['epsilon']:g}, {result['mode']} mode: {found}"]
