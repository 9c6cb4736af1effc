"""Audits of whole texts through the rewriter: toys, what is claimed for pairs of texts, samplers, reuse of noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lexveil.accounting.budgets import SEGMENTATION_OF, Action, Policy, epsilon_per_token
from lexveil.accounting.vocabulary import Vocabulary
from lexveil.auditing.exact import Distances
from lexveil.errors import ParameterError
from lexveil.mechanisms.noise.streams import release_generator, stream
from lexveil.mechanisms.registry import Mechanism
from lexveil.privatization.rewrite import Components, Rewritten, rewrite
from lexveil.text.collocation_index import Collocations
from lexveil.text.encode import Lexicon, encode
from lexveil.types import Floats, Ids, Vectors

STEP = 0.5  # smallest distance of toy words, in units of 1/ε
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
    perturbed = policy.actions(encoded.kind, known >= 0) == Action.PERTURBED.value
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
                act == Action.KEPT.value and one != other
                for act, one, other in zip(action[mine].tolist(), form[mine], form[theirs], strict=True)
            ):
                continue
            perturbed = action[mine] == Action.PERTURBED.value
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
                rewrite(texts, budgets, Components(toy.lexicon, toy.vocabulary, recorder, policy), generator)
        except ParameterError as error:
            refusal = error
            continue
        return recorder.noises
    raise refusal
