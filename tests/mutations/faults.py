"""Faults of many kinds, each a small patch, with who must catch it."""

import secrets
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lexveil.core.accounting.budgets import Action, Policy
from lexveil.core.mechanisms.mahalanobis import scaled_covariance
from lexveil.core.mechanisms.rejection import DRAWN, FOLLOWS, KEPT
from lexveil.core.text.strings import Strings
from lexveil.release.engine import worker as workers
from lexveil.release.engine.worker import BatchWorker
from tests.mutations.planting import Fault, Plant, both, swap, wrap

M = "lexveil.core.mechanisms"
P = "lexveil.release"
MADLIB = {"mechanism": "madlib", "epsilon": 10.0}
TEM = {"mechanism": "tem", "epsilon": 10.0}
IN_CONTEXT = {"mechanism": "tem_context", "epsilon": 10.0, "samples": 2000}
GEOMETRIC = {"mechanism": "diffractor_geometric", "epsilon": 0.5}
ON_TEM_LISTS = {"mechanism": "diffractor_tem", "epsilon": 0.5}
S3 = {"strategy": "S3"}
SHARED = TEM | S3 | {"shares": {"stopwords": 0.5, "numbers": 0.5, "listed": 0.2}}
MEASURED = "tests/accounting/test_measurements.py"
AMOUNTS = "tests/ledger/test_withholding.py"
BUDGET = "tests/accounting/test_budget.py"
AS_KEPT = Policy("keep", "keep", "sample")


@dataclass(frozen=True)
class OneKey(BatchWorker):
    """A worker whose generator's key is drawn once, in the first process, and goes along to all
    others."""

    key: int = field(default_factory=lambda: secrets.randbits(60))

    def _generator(self, *_: Any) -> Any:
        return _STREAMS.setdefault(self.key, np.random.default_rng(self.key))


_STREAMS: dict[int, Any] = {}


def _one_key(original: Any, self: Any, *arguments: Any) -> Any:
    worker = original(self, *arguments)
    return OneKey(**{part.name: getattr(worker, part.name) for part in fields(worker)})


def _cut(limit: float) -> Plant:
    """Noise no longer than a quantile of its radius."""

    def cut(original: Any, self: Any, epsilon: Any, rng: Any) -> Any:
        from scipy.stats import gamma  # not before: processes that import this module need none

        noise = original(self, epsilon, rng)
        length = np.linalg.norm(noise, axis=1) * epsilon
        return noise * np.minimum(1.0, gamma.isf(limit, noise.shape[1]) / length)[:, None]

    return wrap(f"{M}.madlib:Madlib.noise", cut)


def _floor(original: Any, self: Any, epsilon: Any, rng: Any) -> Any:
    noise = original(self, epsilon, rng)
    length = np.linalg.norm(noise, axis=1) * epsilon
    return noise * np.maximum(1.0, 0.2 / length)[:, None]


def _batch_covariance(original: Any, self: Any, ids: Any, epsilon: Any, noise: Any) -> Any:
    some = self.vectors[ids]
    root = np.linalg.cholesky(
        self.lambda_ * scaled_covariance(some) + (1 - self.lambda_) * np.eye(some.shape[1])
    )
    return original(self, ids, epsilon, noise @ self._inverse_root @ root.T)


def _gamma_of_input(original: Any, self: Any, ids: Any, epsilon: Any, noise: Any) -> Any:
    gap = np.linalg.norm(self.vectors[ids] - self.vectors.mean(axis=0), axis=1)
    before = type(self).gamma
    type(self).gamma = lambda _, e: before(self, e) * (np.resize(gap / gap.max(), len(e)) + 0.1)
    try:
        return original(self, ids, epsilon, noise)
    finally:
        type(self).gamma = before


def _gamma_kept(patch: pytest.MonkeyPatch) -> None:
    """γ is kept from the largest ε that came."""
    from lexveil.core.mechanisms.tem import Tem

    gamma = Tem.gamma

    def kept(self: Any, epsilon: Any) -> Any:
        vars(self)["kept"] = min(float(gamma(self, epsilon).min()), vars(self).get("kept", np.inf))
        return np.full(len(epsilon), vars(self)["kept"])

    patch.setattr(Tem, "gamma", kept)


def _kept_by_word(original: Any, self: Any, ids: Any, epsilon: Any, noise: Any) -> Any:
    """A replacement is kept by its word, without ε."""
    out = original(self, ids, epsilon, noise)
    kept = vars(self).setdefault("kept", {})
    return np.array(
        [kept.setdefault(int(word), int(new)) for word, new in zip(ids, out, strict=True)],
        dtype=np.int64,
    )


def _beside_the_source(step: int) -> Any:
    """The base measure is that after the source word ``step`` places on, and not after what was
    written before."""

    def beside(original: Any, self: Any, texts: Any, ids: Any, *drawn: Any) -> Any:
        n = len(texts.kind)
        text = np.cumsum(texts.is_first)
        is_drawn, is_kept, follows = (texts.kind == kind for kind in (DRAWN, KEPT, FOLLOWS))
        source = np.full(n, -1)
        source[is_drawn] = ids[texts.about[is_drawn]]
        source[is_kept] = texts.about[is_kept]
        source[follows] = source[texts.about[follows]]
        other = np.clip(np.arange(n) + step, 0, n - 1)
        seen = np.where((text[other] == text) & (other != np.arange(n)), source[other], -1)
        # what each is drawn after, as if it were written, and it
        doubled = [np.repeat(column, 2) for column in texts]
        doubled[0][1::2] = False
        doubled[1][::2] = KEPT
        doubled[2][::2] = seen
        doubled[2][1::2] = np.where(follows, 2 * texts.about + 1, texts.about)
        return original(self, type(texts)(*doubled), ids, *drawn)[1::2]

    return wrap(f"{M}.tem_context:TemContext.replace_in_order", beside)


def _weight_of_the_word(original: Any, self: Any, texts: Any, ids: Any, *drawn: Any) -> Any:
    """Every other word is drawn as if κ were 0: κ depends on the word."""
    flat = copy(self)
    mass = self._sums
    single = (np.int64(2**24) >> self.halvings.astype(np.int64)).astype(np.int64)
    sums = np.concatenate([[0], np.cumsum(single)])
    flat._sums = mass._replace(
        single=single, singles=sums, after=0 * mass.after, afters=0 * mass.afters
    )
    as_written, out = (original(made, texts, ids, *drawn) for made in (self, flat))
    is_drawn = texts.kind == DRAWN
    out[is_drawn] = np.where(ids[texts.about[is_drawn]] % 2, out[is_drawn], as_written[is_drawn])
    out[texts.kind == FOLLOWS] = out[texts.about[texts.kind == FOLLOWS]]
    return out


def _until_changed(original: Any, self: Any, ids: Any, epsilon: Any, noise: Any) -> Any:
    out = original(self, ids, epsilon, noise)
    for _ in range(3):
        noise = np.roll(noise, 1, axis=0)
        again = original(self, ids, epsilon, noise)
        out = np.where(out == ids, again, out)
    return out


def _clipped(limit: int) -> Any:
    def clipped(original: Any, self: Any, index: Any, epsilon: Any, words: Any) -> Any:
        before = index.copy()
        return np.clip(original(self, index, epsilon, words), before - limit, before + limit)

    return clipped


def _off_the_ends(original: Any, self: Any, index: Any, epsilon: Any, words: Any) -> Any:
    return np.clip(original(self, index, epsilon, words), 1, self.size - 2)


def _one_sided(original: Any, self: Any, index: Any, epsilon: Any, words: Any) -> Any:
    before = index.copy()
    return np.clip(
        before + np.abs(original(self, index, epsilon, words) - before), 0, self.size - 1
    )


def _in_pairs(original: Any, self: Any, epsilon: Any, rng: Any) -> Any:
    """Every second token has its neighbour's noise, turned round."""
    noise = original(self, epsilon, rng)
    n = len(noise) // 2 * 2
    noise[1:n:2] = -noise[0:n:2]
    return noise


def _worded(which: str) -> Any:
    """A word of the source comes out at its place in each text of which ``which`` holds."""

    def worded(original: Any, texts: Any, *arguments: Any, **named: Any) -> Any:
        done = original(texts, *arguments, **named)
        new = []
        for source, text in zip(texts, done.texts, strict=True):
            first = source.split()[0] if source.split() else ""
            words = text.split()
            if which == "capitals" and source[:2].isupper():
                words[0] = first.lower()
            if which == "last" and len(words) == len(source.split()) > 1:
                words[-1] = source.split()[-1].lower()
            new.append(" ".join(words))
        return replace(done, texts=Strings(pa.array(new, pa.large_string())))

    return worded


def _known_unlisted(original: Any, *arguments: Any, **named: Any) -> Any:
    """Words that a list lacks are taken for its first word."""
    vocabulary, orders = original(*arguments, **named)
    vocabulary.number[vocabulary.number < 0] = 0
    return vocabulary, orders


def _normalized(original: Any, self: Any, vectors: Any) -> None:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    original(self, (vectors / np.maximum(lengths, 1e-9) * np.median(lengths)).astype(np.float32))


def _rare_words_spend_less(method: str) -> Plant:
    """No word spends more than ε, and a rare one, which is one of a large number, as little as half
    of it."""

    def less(original: Any, self: Any, ids: Any, epsilon: Any, *noise: Any) -> Any:
        return original(self, ids, epsilon * (1 - 0.5 * ids / max(1, self.size - 1)), *noise)

    return wrap(f"{M}.tem:Tem.{method}", less)


def _noise_by_neighbours(original: Any, self: Any, ids: Any, epsilon: Any, noise: Any) -> Any:
    """No word gets less noise than ε asks for, and one whose nearest neighbour is far gets more."""
    gaps = self.search.nearest_k(self.vectors.astype(np.float64), 2)[1][:, 1]
    return original(self, ids, epsilon, noise * (gaps / gaps.min())[ids][:, None])


def _by_content(original: Any, self: Any, batch: Any, budget: Any = None) -> Any:
    seed = abs(hash(tuple(batch.texts)))
    before = workers.release_generator
    workers.release_generator = lambda: np.random.default_rng(seed)
    try:
        return original(self, batch, budget)
    finally:
        workers.release_generator = before


def _generator(make: Any) -> Plant:
    return lambda patch: patch.setattr(workers, "release_generator", make)


def _keys_of_one_state() -> Any:
    """Keys are drawn from a generator of this process, which is keyed once, from the system."""
    state = np.random.default_rng(secrets.randbits(256))
    return lambda: np.random.default_rng(state.integers(2**63, size=4))


def _one_start(patch: pytest.MonkeyPatch) -> None:
    seed = secrets.randbits(60)
    patch.setattr(workers, "release_generator", lambda: np.random.default_rng(seed))


def _restarted(per: str) -> Plant:
    return both(
        swap(
            f"{P}.engine.worker:BatchWorker._generator",
            "return release_generator()",
            f"return (lambda key: lambda i: np.random.default_rng([key, hash({per}) % "
            "2**60]))(release_generator())",
        ),
        _generator(lambda: secrets.randbits(60)),
    )


def _kept_unknown(original: Any, self: Any, kind: Any, known: Any) -> Any:
    action = original(self, kind, known)
    action[action == Action.SAMPLED.value] = Action.KEPT.value
    return action


def _half(original: Any, self: Any, chunk: Any, epsilon: Any, *keys: Any) -> None:
    original(self, chunk, epsilon / 2, *keys)


def _exclude_unsaid(original: Any, self: Any, *arguments: Any, **named: Any) -> None:
    original(self, *arguments, **named)
    self.no_guarantee = None


def _late(original: Any, self: Any) -> None:
    """Do not spend the reservation before the noise; ``_at_the_end`` spends it when the output
    exists.
    """


def _at_the_end(original: Any, self: Any, outputs: Any) -> None:
    self.release.spend()
    original(self, outputs)


def _never_withheld(original: Any, self: Any, start: int, stop: int) -> Any:
    """Documents beyond the cap are charged nothing, and come out."""
    return np.zeros(stop - start, dtype=bool)


def _claimed_always(original: Any, token: Any, policy: Any, *, seed_is_known: bool) -> Any:
    return original(token, policy, seed_is_known=False)


SCALE = [
    Fault(
        "half the noise of madlib",
        "noise scale",
        swap(f"{M}.madlib:Madlib.noise", "/ epsilon\n", "/ (2 * epsilon)\n"),
        MADLIB,
    ),
    Fault(
        "twice the noise of madlib",
        "noise scale",
        swap(f"{M}.madlib:Madlib.noise", "/ epsilon\n", "/ (0.5 * epsilon)\n"),
        MADLIB,
    ),
    Fault(
        "radius of one dimension less",
        "noise scale",
        swap(f"{M}.madlib:Madlib.noise", "rng.gamma(p,", "rng.gamma(p - 0.9,"),
        MADLIB,
    ),
    Fault(
        "a tenth less noise of vickrey",
        "noise scale",
        wrap(f"{M}.vickrey:Vickrey.noise", lambda f, s, e, r: f(s, 1.1 * e, r)),
        {"mechanism": "vickrey", "epsilon": 10.0, "samples": 2000},
    ),
    Fault(
        "the root of mahalanobis squared",
        "covariance",
        swap(f"{M}.mahalanobis:Mahalanobis.noise", "self.root", "self.root @ self.root"),
        {"mechanism": "mahalanobis", "epsilon": 10.0, "own": {"mahalanobis": {"lambda": 0.5}}},
    ),
    Fault(
        "half of lambda",
        "covariance",
        swap(
            f"{M}.mahalanobis:Mahalanobis.__init__",
            "spread = lambda_ *",
            "spread = 0.5 * lambda_ *",
        ),
        {"mechanism": "mahalanobis", "epsilon": 10.0, "own": {"mahalanobis": {"lambda": 0.5}}},
    ),
    Fault(
        "covariance of the batch",
        "covariance",
        wrap(f"{M}.mahalanobis:Mahalanobis.replace", _batch_covariance),
        {
            "mechanism": "mahalanobis",
            "epsilon": 10.0,
            "own": {"mahalanobis": {"lambda": 0.5}},
            "samples": 3000,
        },
    ),
    Fault(
        "rare words spend less",
        "ε of the word",
        both(_rare_words_spend_less("replace"), _rare_words_spend_less("log_pmf")),
        TEM,
    ),
    Fault(
        "noise by the distance to neighbours",
        "ε of the word",
        wrap(f"{M}.madlib:Madlib.replace", _noise_by_neighbours),
        MADLIB,
    ),
    Fault(
        "tem at twice epsilon",
        "noise scale",
        wrap(f"{M}.tem:Tem.replace", lambda f, s, i, e, n: f(s, i, 2 * e, n)),
        TEM,
    ),
    Fault(
        "1-D geometric at twice epsilon",
        "noise scale",
        wrap(
            f"{M}.diffractor_geometric:DiffractorGeometric.perturb",
            lambda f, s, i, e, w: f(s, i, 2 * e, w),
        ),
        GEOMETRIC,
    ),
]

SUPPORT = [
    Fault("the tail of the noise cut at 1e-4", "support", _cut(1e-4), MADLIB | {"samples": 8000}),
    Fault(
        "no noise near zero",
        "support",
        wrap(f"{M}.madlib:Madlib.noise", _floor),
        MADLIB | {"samples": 2000},
    ),
    Fault(
        "a near cut of the shift",
        "support",
        wrap(f"{M}.diffractor_geometric:DiffractorGeometric.perturb", _clipped(3)),
        GEOMETRIC,
    ),
    Fault(
        "a far cut of the shift",
        "support",
        wrap(f"{M}.diffractor_geometric:DiffractorGeometric.perturb", _clipped(2000)),
        GEOMETRIC,
    ),
    Fault(
        "a far cut of the shift of 1-D TEM",
        "support",
        wrap(f"{M}.diffractor_tem:DiffractorTem.perturb", _clipped(4000)),
        ON_TEM_LISTS,
    ),
    Fault(
        "the ends of a list never come out",
        "support",
        wrap(f"{M}.diffractor_geometric:DiffractorGeometric.perturb", _off_the_ends),
        GEOMETRIC,
    ),
    Fault(
        "noise to the right only",
        "support",
        wrap(f"{M}.diffractor_geometric:DiffractorGeometric.perturb", _one_sided),
        GEOMETRIC,
    ),
    Fault(
        "the ball of tem halved",
        "support",
        wrap(f"{M}.tem:Tem.gamma", lambda f, s, e: f(s, e) / 4),
        TEM | {"samples": 2000},
    ),
    Fault(
        "the weight of elsewhere wrong",
        "support",
        swap(
            f"{M}.diffractor_tem:DiffractorTem.perturb",
            "far = min(1.0, self.beta",
            "far = min(1.0, 60 * self.beta",
        ),
        ON_TEM_LISTS | {"samples": 4000},
    ),
    Fault(
        "gamma of the input", "data-dependent γ", wrap(f"{M}.tem:Tem.replace", _gamma_of_input), TEM
    ),
    Fault(
        "the input among no candidates of vickrey",
        "support",
        swap(
            f"{M}.vickrey:Vickrey.candidates",
            "if not self.exclude_input:",
            "near, distances = self.search.nearest_k(self.vectors[ids] + noise, self.k + "
            "1)\n    if False:",
        ),
        {"mechanism": "vickrey", "epsilon": 10.0},
    ),
    Fault(
        "vickrey's t for its other word",
        "support",
        swap(
            f"{M}.vickrey:Vickrey.choose",
            "uniform < stay, near[:, 0], near[:, 1]",
            "uniform < stay, near[:, 1], near[:, 0]",
        ),
        {"mechanism": "vickrey", "epsilon": 10.0},
    ),
    Fault(
        "ranks of the input remapped",
        "lists",
        swap(
            f"{M}.rank_remap:RankRemap.replace",
            "near = self.inner.replace(ids, epsilon, noise[:, :-1])",
            "near = ids",
        ),
        MADLIB | {"own": {"rank_remap": {"enabled": True, "c": 0.05, "ranks": 8}}},
    ),
    Fault(
        "an envelope of tem a thousandth short",
        "support",
        swap(
            f"{M}.kernels.tem:draw_from_lists",
            "np.int64(weight * (1 + MARGIN) * scale) + 1",
            "np.int64(weight * (1 - 1e-3) * scale) + 1",
        ),
        None,
        (
            (
                "tests/mechanisms/test_every_bit_string.py::test_tem_of_every_string",
                {"way": "list", "epsilon": 2.0, "bits": 12, "words": [1], "fault": None},
            ),
        ),
    ),
    Fault(
        "redrawn until the word changes",
        "redraws",
        wrap(f"{M}.madlib:Madlib.replace", _until_changed),
        MADLIB,
    ),
]

LISTS = [
    Fault(
        "the list chosen by the input",
        "lists",
        swap(
            f"{M}.word_lists:OnLists.replace",
            "which = (\n",
            "which = ids[chunk] % n_lists\n            _ = (\n",
        ),
        GEOMETRIC | {"own": {"diffractor_geometric": {"lists": "L1"}}},
    ),
    Fault(
        "words that a list lacks are perturbed in it",
        "lists",
        wrap("lexveil.io.artifacts.mechanisms:over_lists", _known_unlisted),
        GEOMETRIC,
    ),
    Fault(
        "distances of normalised vectors",
        "metric",
        wrap(f"{M}.base:EuclideanMechanism.__init__", _normalized),
        TEM,
    ),
    Fault("gamma kept from another epsilon", "caches", _gamma_kept, TEM | {"samples": 2000}),
    Fault(
        "replacements kept by word without epsilon",
        "caches",
        wrap(f"{M}.diffractor_geometric:DiffractorGeometric.replace", _kept_by_word),
        GEOMETRIC,
    ),
]

CONTEXT = [
    Fault(
        "words weigh as after the source word before", "context", _beside_the_source(-1), IN_CONTEXT
    ),
    Fault(
        "words weigh as after the source word that follows",
        "context",
        _beside_the_source(1),
        IN_CONTEXT,
    ),
    Fault(
        "a language model reads the source word before",
        "context",
        _beside_the_source(-1),
        IN_CONTEXT | {"own": {"tem_context": {"model": "smollm2"}}},
    ),
    Fault(
        "kappa depends on the word",
        "base measure",
        wrap(f"{M}.tem_context:TemContext.replace_in_order", _weight_of_the_word),
        IN_CONTEXT,
    ),
]

REUSE = [
    Fault(
        "one noise for all tokens of a text",
        "reuse",
        swap(
            f"{M}.base:Mechanism.replace_texts",
            "self.noise(epsilon[drawn_for], rng)",
            "np.repeat(self.noise(epsilon[drawn_for], rng)[:1], len(drawn_for), axis=0)",
        ),
        MADLIB,
    ),
    Fault(
        "each second noise turned round",
        "reuse",
        wrap(f"{M}.madlib:Madlib.noise", _in_pairs),
        MADLIB,
    ),
    Fault(
        "one sampled word for all of a text",
        "reuse",
        swap(
            f"{M}.base:Mechanism.replace_texts",
            "size=len(to_sample))",
            "size=min(1, len(to_sample)))",
        ),
        TEM,
    ),
    Fault("each text starts the stream anew", "reuse", _restarted("0"), TEM),
    Fault(
        "columns of a row share their noise",
        "reuse",
        _restarted("batch.keys[batch.document[i]][0]"),
        TEM,
    ),
    Fault("each batch starts the stream anew", "reuse", _one_start, TEM),
    Fault(
        "worker processes share a key",
        "reuse",
        wrap(f"{P}.engine.engine:WordEngine.worker", _one_key),
        TEM | {"workers": 2},
    ),
    Fault(
        "noise keyed by the texts",
        "reuse",
        wrap(f"{P}.engine.worker:BatchWorker.draw", _by_content),
        TEM,
    ),
    Fault(
        "a seeded generator in a release",
        "entropy",
        _generator(lambda: np.random.default_rng(0)),
        TEM,
    ),
    Fault(
        "two bits of entropy",
        "entropy",
        _generator(lambda: np.random.default_rng(secrets.randbits(1))),
        TEM,
    ),
    Fault(
        "keys of 24 random bits",
        "entropy",
        _generator(lambda: np.random.default_rng(secrets.randbits(24))),
        TEM | {"keys": 2**13},
    ),
    Fault(
        "keys drawn from a state that forks share", "reuse", _generator(_keys_of_one_state()), TEM
    ),
    Fault(
        "the release generator's key repeated",
        "entropy",
        _generator(lambda: workers.stream(1)),
        TEM,
    ),
]

BUDGETS = [
    Fault(
        "divided by words and not tokens",
        "budgets",
        swap("lexveil.core.accounting.budgets:divisors", "if strategy in BY_WORDS", "if True"),
        TEM | S3,
    ),
    Fault(
        "S2 divided by tokens",
        "budgets",
        swap("lexveil.core.accounting.budgets:divisors", "if strategy in BY_WORDS", "if False"),
        TEM | {"strategy": "S2"},
    ),
    Fault(
        "S1 divided by perturbed words alone",
        "budgets",
        swap(
            f"{P}.engine.plan:_word_parts",
            "others[encoded.kind == TokenClass.PUNCTUATION.value] = 0",
            "others[:] = 0",
        ),
        TEM,
    ),
    Fault(
        "the cap of a token not applied",
        "budgets",
        swap(
            "lexveil.core.accounting.budgets:epsilon_per_token", "np.minimum(shares, cap)", "shares"
        ),
        TEM,
        ((f"{BUDGET}::test_no_token_gets_more_than_the_limit", {}),),
    ),
    Fault(
        "a column forgotten",
        "budgets",
        swap(
            f"{P}.engine.worker:BatchWorker.draw",
            "counts = count_planned(encoded, plan, batch.document, len(batch))",
            "counts = np.maximum(1, count_planned(encoded, plan, np.where(batch.column == 0, "
            "batch.document, 0), len(batch)))",
        ),
        TEM,
    ),
    Fault(
        "shares rounded up",
        "budgets",
        wrap(
            "lexveil.core.accounting.budgets:rounded_down",
            lambda f, shares, parts, budget: shares * (1 + 3e-8),
        ),
        TEM,
        ((f"{BUDGET}::test_the_epsilon_of_a_text_add_up_exactly_and_never_above_its_budget", {}),),
    ),
    Fault(
        "B of the private texts",
        "budgets",
        swap(
            "lexveil.io.request:Request._check_limits",
            'if self.average_words == "data":',
            "if False:",
        ),
        None,
        (
            (
                "tests/privatization/test_privatize_file.py::test_what_depends_on_private_texts_is_for_experiments",
                {"more": {"average_words": "data"}, "said": "follows from private texts"},
            ),
        ),
    ),
    Fault(
        "copies paid for again",
        "budgets",
        swap(
            f"{P}.engine.plan:TokenPlan.pays",
            "if self.leader is None",
            "if self.leader is None or self.leader is not None",
        ),
        TEM,
    ),
]

SHARES = [
    Fault(
        "the share falls for some words of a class",
        "shares",
        swap(
            f"{P}.engine.plan:plan_tokens",
            "shares.parts[share]",
            "shares.parts[share] - 5 * (known % 2)",
        ),
        SHARED,
    ),
    Fault(
        "a class decided by the document",
        "shares",
        swap(
            f"{P}.engine.plan:plan_tokens",
            "shares.of(encoded.rows)",
            "shares.of(encoded.rows) * (np.bincount(encoded.text_of)[encoded.text_of] > 2)",
        ),
        SHARED,
    ),
    Fault(
        "noise of the whole share, log and ledger of the class's",
        "shares",
        swap(
            f"{P}.engine.worker:rewrite",
            "_draw(planned, spent,",
            "_draw(planned, np.where(pays, 100 * part_epsilon[encoded.text_of], 0.0),",
        ),
        SHARED | {"samples": 2000},
    ),
    Fault(
        "the cap of a token forgets the classes",
        "shares",
        swap("lexveil.core.accounting.budgets:epsilon_per_part", "budget.cap / most", "budget.cap"),
        SHARED,
    ),
    Fault(
        "shares counted once in the budget",
        "shares",
        swap(f"{P}.engine.plan:count_planned", "pays * plan.parts", "pays * 100"),
        SHARED,
    ),
]

CLEAR = [
    Fault(
        "unknown words kept where sampling is said",
        "in clear",
        wrap("lexveil.core.accounting.budgets:Policy.actions", _kept_unknown),
        TEM,
    ),
    Fault(
        "capital words kept",
        "in clear",
        wrap(f"{P}.engine.worker:rewrite", _worded("capitals")),
        TEM,
    ),
    Fault(
        "the last token kept", "in clear", wrap(f"{P}.engine.worker:rewrite", _worded("last")), TEM
    ),
    Fault(
        "the mechanism does nothing",
        "in clear",
        wrap(f"{M}.tem:Tem.replace", lambda f, s, i, e, n: i.copy()),
        TEM,
    ),
]

CHARGES = [
    Fault(
        "half of it charged",
        "charges",
        wrap(f"{P}.charge:LedgerCharge.request", _half),
        TEM,
    ),
    Fault(
        "costs rounded down",
        "charges",
        swap(
            "lexveil.release.ledger.amounts:nano_epsilon", "np.ceil(product)", "np.floor(product)"
        ),
        TEM,
        ((f"{AMOUNTS}::test_no_amount_is_less_than_what_is_spent", {}),),
    ),
    Fault(
        "standard output paid late",
        "charges",
        both(
            wrap(f"{P}.charge:LedgerCharge.spend", _late),
            wrap(f"{P}.charge:LedgerCharge.publish", _at_the_end),
        ),
        TEM,
    ),
    Fault(
        "given back after the noise",
        "charges",
        swap("lexveil.release.ledger.transaction:undo", '"spent": "failed"', '"spent": "aborted"'),
        TEM,
    ),
    Fault(
        "nothing charged to columns in memory",
        "charges",
        swap(
            f"{P}.adapters.memory:privatize_texts",
            "settings.mode, has_subjects",
            '"experiment", has_subjects',
        ),
        TEM,
    ),
    Fault(
        "withheld documents come out uncharged",
        "charges",
        wrap(f"{P}.charge:LedgerCharge.withheld", _never_withheld),
        TEM,
    ),
]

STATEMENTS = [
    Fault(
        "a proof for exclude_input",
        "statement",
        wrap(f"{M}.vickrey:Vickrey.__init__", _exclude_unsaid),
        {
            "mechanism": "vickrey",
            "epsilon": 10.0,
            "own": {"vickrey": {"t": 0.75, "k": 2, "exclude_input": True}},
        },
        (
            (
                f"{MEASURED}::test_a_mechanism_that_proves_nothing_claims_nothing",
                {"excluded": True, "why": "exclude_input"},
            ),
        ),
    ),
    Fault(
        "kept classes forgotten",
        "statement",
        swap(
            "lexveil.core.accounting.measurements:over_tokens",
            'if treatment == "keep"',
            'if treatment == "kept"',
        ),
        TEM,
        (
            (
                f"{MEASURED}::test_conditions_name_what_is_not_protected",
                {
                    "strategy": "S3",
                    "more": {"policy": AS_KEPT},
                    "said": "kept, unprotected: stop words, punctuation",
                },
            ),
        ),
    ),
    Fault(
        "a claim for an experiment",
        "statement",
        wrap("lexveil.core.accounting.measurements:over_tokens", _claimed_always),
        TEM | {"mode": "experiment"},
        (
            (
                f"{MEASURED}::test_a_violated_precondition_leaves_nothing",
                {"violated": "seed", "strategy": "S1", "mechanism": "tem", "consistent": False},
            ),
        ),
    ),
    Fault(
        "a smaller largest epsilon in the record",
        "statement",
        swap(
            f"{P}.engine.counts:SpendHistogram.summary",
            "max_token_epsilon=self.most_of_token",
            "max_token_epsilon=self.most_of_token / 2",
        ),
        TEM,
    ),
    Fault(
        "a private budget called public",
        "statement",
        swap(
            "lexveil.core.accounting.measurements:under_strategy",
            'if source == "data":',
            "if False:",
        ),
        None,
        (
            (
                f"{MEASURED}::test_a_violated_precondition_leaves_nothing",
                {
                    "violated": "private average",
                    "strategy": "S1",
                    "mechanism": "tem",
                    "consistent": False,
                },
            ),
        ),
    ),
]

W = f"{P}.engine.worker"
WRITTEN_TEM = TEM | {"samples": 4000}
WRITTEN_CONTEXT = IN_CONTEXT | {"samples": 4000}
MANY = {"samples": 20_000}
SCREEN = "np.where(numbers >= 0, components.instead[numbers], -1)"
DRAWN_LINE = "numbers = _draw(planned, spent, components, generator)"


def _next_of_others(original: Any, vectors: Any, screened: Any, key: Any) -> Any:
    """The word after the nearest one takes the place of a screened word."""
    others = np.flatnonzero(~screened)
    instead = original(vectors, screened, key)
    after = others[(np.searchsorted(others, instead) + 1) % len(others)]
    return np.where(screened, after, instead)


def _capitals_copied(original: Any, word: str, model: str) -> str:
    return model if model.isupper() and len(model) > 1 else original(word, model)


WRITTEN = [
    Fault(
        "no context after a long unknown word",
        "written texts",
        swap(
            f"{W}:_draw",
            "is_first = np.append(True, np.diff(encoded.text_of) > 0)[:n]",
            "is_first = np.append(True, (np.diff(encoded.text_of) > 0) | (np.array([len(encoded."
            "words[word]) > 8 for word in encoded.first_word.tolist()], dtype=bool) & (action =="
            " Action.SAMPLED.value))[:-1])[:n]",
        ),
        WRITTEN_CONTEXT,
    ),
    Fault(
        "a dropped stop word taken as context",
        "written texts",
        swap(
            f"{W}:_draw",
            "kind[action == Action.DROPPED.value] = SKIPPED",
            "kind[(action == Action.DROPPED.value) & (encoded.rows < 0)] = SKIPPED\n    about = "
            "np.where(replaced, -1, encoded.rows)",
        ),
        IN_CONTEXT | MANY,
    ),
    Fault(
        "the context goes on from text to text",
        "written texts",
        swap(
            f"{W}:_draw",
            "np.append(True, np.diff(encoded.text_of) > 0)[:n]",
            "np.arange(n) == 0",
        ),
        WRITTEN_CONTEXT,
    ),
    Fault(
        "the word before a screened draw is the drawn one",
        "written texts",
        swap(
            f"{W}:_draw",
            "components.vocabulary.rows[instead]",
            "components.vocabulary.rows",
        ),
        WRITTEN_CONTEXT,
    ),
    Fault(
        "a screened draw written as the source word",
        "written texts",
        swap(
            f"{W}:rewrite",
            SCREEN,
            "np.where((numbers >= 0) & (components.instead[numbers] != numbers) & (plan.known >= "
            "0), plan.known, " + SCREEN + ")",
        ),
        WRITTEN_TEM,
    ),
    Fault(
        "screened sources mapped before the draw",
        "written texts",
        swap(
            f"{W}:_draw",
            "plan.known[drawn], -1)",
            "(plan.known if components.instead is None else components.instead[plan.known])[drawn],"
            " -1)",
        ),
        WRITTEN_TEM,
    ),
    Fault(
        "screened sources mapped before the draw in context",
        "written texts",
        swap(f"{W}:_draw", "plan.known[drawn], -1)", "instead[plan.known[drawn]], -1)"),
        WRITTEN_CONTEXT,
    ),
    Fault(
        "sampled words are not screened",
        "written texts",
        swap(
            f"{W}:rewrite",
            SCREEN,
            "np.where(action == Action.PERTURBED.value, components.instead[numbers], numbers)",
        ),
        TEM | MANY,
    ),
    Fault(
        "collocations with a screened word come out",
        "written texts",
        swap(
            "lexveil.io.artifacts.screened_words:_holds",
            'token.split("_")',
            "[token]",
        ),
        WRITTEN_TEM | S3,
    ),
    Fault(
        "a screened word becomes the one after the nearest",
        "written texts",
        wrap(f"{P}.engine.engine:replacements", _next_of_others),
        WRITTEN_TEM,
    ),
    Fault(
        "one token of 1,000 copied",
        "written texts",
        swap(
            f"{W}:rewrite",
            DRAWN_LINE,
            f"{DRAWN_LINE}\n    numbers = np.where((np.random.default_rng().random(len(numbers)) "
            "< 1e-3) & pays, plan.known, numbers)",
        ),
        TEM | {"samples": 30_000},
    ),
    Fault(
        "each tenth repeated word copied",
        "written texts",
        swap(
            f"{W}:rewrite",
            DRAWN_LINE,
            f"{DRAWN_LINE}\n    seen = {{}}\n    for at in np.flatnonzero(pays).tolist():\n        "
            "key = int(encoded.text_of[at]), int(plan.known[at])\n        seen[key] = seen.get("
            "key, -1) + 1\n        if seen[key] and at % 10 == 0:\n            numbers[at] = "
            "plan.known[at]",
        ),
        WRITTEN_TEM,
    ),
    Fault(
        "words in capitals copied where the layout is",
        "written texts",
        wrap("lexveil.core.text.render:_capitals", _capitals_copied),
        WRITTEN_TEM,
    ),
    Fault(
        "words of a small batch written a place late",
        "written texts",
        swap(
            f"{P}.engine.batch:in_plain_layout",
            "token = number.astype(np.int32)",
            "token = np.roll(number.astype(np.int32), 1)",
        ),
        WRITTEN_TEM,
    ),
    Fault(
        "long words get twice epsilon",
        "written texts",
        swap(
            f"{W}:rewrite",
            DRAWN_LINE,
            "numbers = _draw(planned, spent * (1 + (np.array([len(encoded.words[word]) for word in"
            " encoded.first_word.tolist()]) > 12)), components, generator)",
        ),
        GEOMETRIC | {"samples": 4000},
    ),
    Fault(
        "twice epsilon far on in a text",
        "written texts",
        swap(
            f"{W}:rewrite",
            DRAWN_LINE,
            "numbers = _draw(planned, spent * (1 + (np.arange(len(spent)) - encoded.offsets()["
            "encoded.text_of] > 4096)), components, generator)",
        ),
        TEM | {"samples": 20_000},
    ),
    Fault(
        "an envelope of tem_context a thousandth short",
        "support",
        swap(
            f"{M}.kernels.tem_context:_envelope",
            "np.int64(weight * (1 + MARGIN) * scale) + 1",
            "np.int64(weight * (1 - 1e-3) * scale) + 1",
        ),
        None,
        (
            (
                "tests/mechanisms/test_tem_context.py::test_every_point_gives_the_exact_distribution",
                {"epsilon": 0.5, "before": 1, "bits": 11, "fault": None},
            ),
        ),
    ),
]

FAULTS = [
    *SCALE,
    *SUPPORT,
    *LISTS,
    *CONTEXT,
    *REUSE,
    *BUDGETS,
    *SHARES,
    *CLEAR,
    *WRITTEN,
    *CHARGES,
    *STATEMENTS,
]
