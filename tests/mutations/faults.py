"""Faults of many kinds, each a small patch, with who must catch it: those of faults.yaml, and those
that need code of their own.
"""

import secrets
from copy import copy
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lexveil.core.accounting.budgets import Action
from lexveil.core.mechanisms.mahalanobis import scaled_covariance
from lexveil.core.mechanisms.rejection import DRAWN, FOLLOWS, KEPT
from lexveil.core.text.strings import Strings
from lexveil.release.engine import worker as workers
from lexveil.release.engine.worker import BatchWorker
from tests.mutations.planting import Fault, both, read_faults, swap, wrap

M = "lexveil.core.mechanisms"
P = "lexveil.release"
MADLIB = {"mechanism": "madlib", "epsilon": 10.0}
TEM = {"mechanism": "tem", "epsilon": 10.0}
IN_CONTEXT = {"mechanism": "tem_context", "epsilon": 10.0, "samples": 2000}
GEOMETRIC = {"mechanism": "diffractor_geometric", "epsilon": 0.5}
ON_TEM_LISTS = {"mechanism": "diffractor_tem", "epsilon": 0.5}
MEASURED = "tests/accounting/test_measurements.py"
BUDGET = "tests/accounting/test_budget.py"


@dataclass(frozen=True)
class OneKey(BatchWorker):
    """A worker whose generator's key is drawn once, in the first process, and goes along to all
    others."""

    key: int = field(default_factory=lambda: secrets.randbits(60))

    def _generator(self, *_):
        return _STREAMS.setdefault(self.key, np.random.default_rng(self.key))


_STREAMS = {}


def _one_key(original, self, *arguments):
    worker = original(self, *arguments)
    return OneKey(**{part.name: getattr(worker, part.name) for part in fields(worker)})


def _cut(limit: float):
    """Noise no longer than a quantile of its radius."""

    def cut(original, self, epsilon, rng):
        from scipy.stats import gamma  # not before: processes that import this module need none

        noise = original(self, epsilon, rng)
        length = np.linalg.norm(noise, axis=1) * epsilon
        return noise * np.minimum(1.0, gamma.isf(limit, noise.shape[1]) / length)[:, None]

    return wrap(f"{M}.madlib:Madlib.noise", cut)


def _floor(original, self, epsilon, rng):
    noise = original(self, epsilon, rng)
    length = np.linalg.norm(noise, axis=1) * epsilon
    return noise * np.maximum(1.0, 0.2 / length)[:, None]


def _batch_covariance(original, self, ids, epsilon, noise):
    some = self.vectors[ids]
    root = np.linalg.cholesky(
        self.lambda_ * scaled_covariance(some) + (1 - self.lambda_) * np.eye(some.shape[1])
    )
    return original(self, ids, epsilon, noise @ self._inverse_root @ root.T)


def _gamma_of_input(original, self, ids, epsilon, noise):
    gap = np.linalg.norm(self.vectors[ids] - self.vectors.mean(axis=0), axis=1)
    before = type(self).gamma
    type(self).gamma = lambda _, e: before(self, e) * (np.resize(gap / gap.max(), len(e)) + 0.1)
    try:
        return original(self, ids, epsilon, noise)
    finally:
        type(self).gamma = before


def _gamma_kept(patch: pytest.MonkeyPatch):
    """γ is kept from the largest ε that came."""
    from lexveil.core.mechanisms.tem import Tem

    gamma = Tem.gamma

    def kept(self, epsilon):
        vars(self)["kept"] = min(float(gamma(self, epsilon).min()), vars(self).get("kept", np.inf))
        return np.full(len(epsilon), vars(self)["kept"])

    patch.setattr(Tem, "gamma", kept)


def _kept_by_word(original, self, ids, epsilon, noise):
    """A replacement is kept by its word, without ε."""
    out = original(self, ids, epsilon, noise)
    kept = vars(self).setdefault("kept", {})
    return np.array(
        [kept.setdefault(int(word), int(new)) for word, new in zip(ids, out, strict=True)],
        dtype=np.int64,
    )


def _beside_the_source(step: int):
    """The base measure is that after the source word ``step`` places on, and not after what was
    written before."""

    def beside(original, self, texts, ids, *drawn):
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


def _weight_of_the_word(original, self, texts, ids, *drawn):
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


def _until_changed(original, self, ids, epsilon, noise):
    out = original(self, ids, epsilon, noise)
    for _ in range(3):
        noise = np.roll(noise, 1, axis=0)
        again = original(self, ids, epsilon, noise)
        out = np.where(out == ids, again, out)
    return out


def _clipped(limit: int):
    def clipped(original, self, index, epsilon, words):
        before = index.copy()
        return np.clip(original(self, index, epsilon, words), before - limit, before + limit)

    return clipped


def _off_the_ends(original, self, index, epsilon, words):
    return np.clip(original(self, index, epsilon, words), 1, self.size - 2)


def _one_sided(original, self, index, epsilon, words):
    before = index.copy()
    return np.clip(
        before + np.abs(original(self, index, epsilon, words) - before), 0, self.size - 1
    )


def _in_pairs(original, self, epsilon, rng):
    """Every second token has its neighbour's noise, turned round."""
    noise = original(self, epsilon, rng)
    n = len(noise) // 2 * 2
    noise[1:n:2] = -noise[0:n:2]
    return noise


def _worded(which: str):
    """A word of the source comes out at its place in each text of which ``which`` holds."""

    def worded(original, texts, *arguments, **named):
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


def _known_unlisted(original, *arguments, **named):
    """Words that a list lacks are taken for its first word."""
    vocabulary, orders = original(*arguments, **named)
    vocabulary.number[vocabulary.number < 0] = 0
    return vocabulary, orders


def _normalized(original, self, vectors):
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    original(self, (vectors / np.maximum(lengths, 1e-9) * np.median(lengths)).astype(np.float32))


def _rare_words_spend_less(method: str):
    """No word spends more than ε, and a rare one, which is one of a large number, as little as half
    of it."""

    def less(original, self, ids, epsilon, *noise):
        return original(self, ids, epsilon * (1 - 0.5 * ids / max(1, self.size - 1)), *noise)

    return wrap(f"{M}.tem:Tem.{method}", less)


def _noise_by_neighbours(original, self, ids, epsilon, noise):
    """No word gets less noise than ε asks for, and one whose nearest neighbour is far gets more."""
    gaps = self.search.nearest_k(self.vectors.astype(np.float64), 2)[1][:, 1]
    return original(self, ids, epsilon, noise * (gaps / gaps.min())[ids][:, None])


def _by_content(original, self, batch, budget=None):
    seed = abs(hash(tuple(batch.texts)))
    before = workers.release_generator
    workers.release_generator = lambda: np.random.default_rng(seed)
    try:
        return original(self, batch, budget)
    finally:
        workers.release_generator = before


def _generator(make):
    return lambda patch: patch.setattr(workers, "release_generator", make)


def _keys_of_one_state():
    """Keys are drawn from a generator of this process, which is keyed once, from the system."""
    state = np.random.default_rng(secrets.randbits(256))
    return lambda: np.random.default_rng(state.integers(2**63, size=4))


def _one_start(patch: pytest.MonkeyPatch):
    seed = secrets.randbits(60)
    patch.setattr(workers, "release_generator", lambda: np.random.default_rng(seed))


def _restarted(per: str):
    return both(
        swap(
            f"{P}.engine.worker:BatchWorker._generator",
            "return release_generator()",
            f"return (lambda key: lambda i: np.random.default_rng([key, hash({per}) % "
            "2**60]))(release_generator())",
        ),
        _generator(lambda: secrets.randbits(60)),
    )


def _kept_unknown(original, self, kind, known):
    action = original(self, kind, known)
    action[action == Action.SAMPLED.value] = Action.KEPT.value
    return action


def _half(original, self, chunk, epsilon, *keys):
    original(self, chunk, epsilon / 2, *keys)


def _exclude_unsaid(original, self, *arguments, **named):
    original(self, *arguments, **named)
    self.no_guarantee = None


def _late(original, self):
    """Do not spend the reservation before the noise; ``_at_the_end`` spends it when the output
    exists.
    """


def _at_the_end(original, self, outputs):
    self.release.spend()
    original(self, outputs)


def _never_withheld(original, self, start: int, stop: int):
    """Documents beyond the cap are charged nothing, and come out."""
    return np.zeros(stop - start, dtype=bool)


def _claimed_always(original, token, policy, *, seed_is_known: bool):
    return original(token, policy, seed_is_known=False)


def _next_of_others(original, vectors, screened, key):
    """The word after the nearest one takes the place of a screened word."""
    others = np.flatnonzero(~screened)
    instead = original(vectors, screened, key)
    after = others[(np.searchsorted(others, instead) + 1) % len(others)]
    return np.where(screened, after, instead)


def _capitals_copied(original, word: str, model: str):
    return model if model.isupper() and len(model) > 1 else original(word, model)


FAULTS = [
    *read_faults(Path(__file__).with_suffix(".yaml")),
    Fault(
        "vickrey's noise a tenth too small",
        "noise scale",
        wrap(f"{M}.vickrey:Vickrey.noise", lambda f, s, e, r: f(s, 1.1 * e, r)),
        {"mechanism": "vickrey", "epsilon": 10.0, "samples": 2000},
    ),
    Fault(
        "covariance computed from the batch",
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
        "less epsilon for rare words",
        "ε of the word",
        both(_rare_words_spend_less("replace"), _rare_words_spend_less("log_pmf")),
        TEM,
    ),
    Fault(
        "noise scaled by the distance to neighbours",
        "ε of the word",
        wrap(f"{M}.madlib:Madlib.replace", _noise_by_neighbours),
        MADLIB,
    ),
    Fault(
        "tem run with twice epsilon",
        "noise scale",
        wrap(f"{M}.tem:Tem.replace", lambda f, s, i, e, n: f(s, i, 2 * e, n)),
        TEM,
    ),
    Fault(
        "1-D geometric run with twice epsilon",
        "noise scale",
        wrap(
            f"{M}.diffractor_geometric:DiffractorGeometric.perturb",
            lambda f, s, i, e, w: f(s, i, 2 * e, w),
        ),
        GEOMETRIC,
    ),
    Fault("the tail of the noise cut at 1e-4", "support", _cut(1e-4), MADLIB | {"samples": 8000}),
    Fault(
        "no noise near zero",
        "support",
        wrap(f"{M}.madlib:Madlib.noise", _floor),
        MADLIB | {"samples": 2000},
    ),
    Fault(
        "shift cut at a near position",
        "support",
        wrap(f"{M}.diffractor_geometric:DiffractorGeometric.perturb", _clipped(3)),
        GEOMETRIC,
    ),
    Fault(
        "shift cut at a far position",
        "support",
        wrap(f"{M}.diffractor_geometric:DiffractorGeometric.perturb", _clipped(2000)),
        GEOMETRIC,
    ),
    Fault(
        "shift of 1-D TEM cut at a far position",
        "support",
        wrap(f"{M}.diffractor_tem:DiffractorTem.perturb", _clipped(4000)),
        ON_TEM_LISTS,
    ),
    Fault(
        "the ends of a list are never drawn",
        "support",
        wrap(f"{M}.diffractor_geometric:DiffractorGeometric.perturb", _off_the_ends),
        GEOMETRIC,
    ),
    Fault(
        "shift to the right only",
        "support",
        wrap(f"{M}.diffractor_geometric:DiffractorGeometric.perturb", _one_sided),
        GEOMETRIC,
    ),
    Fault(
        "radius gamma of tem divided by four",
        "support",
        wrap(f"{M}.tem:Tem.gamma", lambda f, s, e: f(s, e) / 4),
        TEM | {"samples": 2000},
    ),
    Fault(
        "gamma that depends on the input",
        "data-dependent γ",
        wrap(f"{M}.tem:Tem.replace", _gamma_of_input),
        TEM,
    ),
    Fault(
        "draws repeated until the word changes",
        "redraws",
        wrap(f"{M}.madlib:Madlib.replace", _until_changed),
        MADLIB,
    ),
    Fault(
        "words perturbed in a list that lacks them",
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
    Fault("gamma cached from another epsilon", "caches", _gamma_kept, TEM | {"samples": 2000}),
    Fault(
        "replacements cached by word without epsilon",
        "caches",
        wrap(f"{M}.diffractor_geometric:DiffractorGeometric.replace", _kept_by_word),
        GEOMETRIC,
    ),
    Fault(
        "context taken from the source word before", "context", _beside_the_source(-1), IN_CONTEXT
    ),
    Fault(
        "context taken from the source word after",
        "context",
        _beside_the_source(1),
        IN_CONTEXT,
    ),
    Fault(
        "language model reads the source word before",
        "context",
        _beside_the_source(-1),
        IN_CONTEXT | {"own": {"tem_context": {"model": "smollm2"}}},
        nightly=True,
    ),
    Fault(
        "kappa depends on the word",
        "base measure",
        wrap(f"{M}.tem_context:TemContext.replace_in_order", _weight_of_the_word),
        IN_CONTEXT,
    ),
    Fault(
        "every second noise is the negative of the one before",
        "reuse",
        wrap(f"{M}.madlib:Madlib.noise", _in_pairs),
        MADLIB,
    ),
    Fault("every text restarts the random stream", "reuse", _restarted("0"), TEM),
    Fault(
        "columns of a row share their noise",
        "reuse",
        _restarted("batch.keys[batch.document[i]][0]"),
        TEM,
    ),
    Fault("every batch restarts the random stream", "reuse", _one_start, TEM),
    Fault(
        "worker processes share a key",
        "reuse",
        wrap(f"{P}.engine.engine:WordEngine.worker", _one_key),
        TEM | {"workers": 2},
        nightly=True,
    ),
    Fault(
        "noise key computed from the texts",
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
        "keys of one random bit",
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
    Fault(
        "epsilon of a token rounded up",
        "budgets",
        wrap(
            "lexveil.core.accounting.budgets:rounded_down",
            lambda f, shares, parts, budget: shares * (1 + 3e-8),
        ),
        TEM,
        ((f"{BUDGET}::test_the_epsilon_of_a_text_add_up_exactly_and_never_above_its_budget", {}),),
    ),
    Fault(
        "unknown words kept although the policy samples them",
        "unprotected",
        wrap("lexveil.core.accounting.budgets:Policy.actions", _kept_unknown),
        TEM,
    ),
    Fault(
        "words in capitals are kept",
        "unprotected",
        wrap(f"{P}.engine.worker:rewrite", _worded("capitals")),
        TEM,
    ),
    Fault(
        "the last token is kept",
        "unprotected",
        wrap(f"{P}.engine.worker:rewrite", _worded("last")),
        TEM,
    ),
    Fault(
        "the mechanism does nothing",
        "unprotected",
        wrap(f"{M}.tem:Tem.replace", lambda f, s, i, e, n: i.copy()),
        TEM,
    ),
    Fault(
        "only half of the epsilon is charged",
        "charges",
        wrap(f"{P}.charge:LedgerCharge.request", _half),
        TEM,
    ),
    Fault(
        "standard output charged after it is written",
        "charges",
        both(
            wrap(f"{P}.charge:LedgerCharge.spend", _late),
            wrap(f"{P}.charge:LedgerCharge.publish", _at_the_end),
        ),
        TEM,
    ),
    Fault(
        "withheld documents are written uncharged",
        "charges",
        wrap(f"{P}.charge:LedgerCharge.withheld", _never_withheld),
        TEM,
    ),
    Fault(
        "a guarantee claimed for exclude_input",
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
        "a guarantee claimed for an experiment",
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
        "a screened word replaced by the second nearest",
        "written texts",
        wrap(f"{P}.engine.engine:replacements", _next_of_others),
        TEM | {"samples": 4000},
    ),
    Fault(
        "words in capitals copied together with the layout",
        "written texts",
        wrap("lexveil.core.text.render:_capitals", _capitals_copied),
        TEM | {"samples": 4000},
    ),
]
