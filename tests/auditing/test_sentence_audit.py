"""The audit of sentences: what it says of the mechanism as it is, and which faults it sees."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from lexveil.auditing import sentences as auditing
from lexveil.auditing.audit import audit
from lexveil.auditing.request import AuditRequest
from lexveil.base.errors import RequestError
from lexveil.core.embeddings.sentences import SentenceSpace
from lexveil.core.mechanisms.madlib import Madlib
from lexveil.core.mechanisms.mahalanobis import Mahalanobis
from lexveil.core.mechanisms.over_sentences import NOISY
from lexveil.core.mechanisms.sentence_draws import SentenceDraws
from lexveil.core.mechanisms.vickrey import Vickrey
from lexveil.core.text.strings import Strings
from lexveil.io.artifacts.model import Model
from lexveil.io.request import Request
from lexveil.release.engine import sentences as engine
from lexveil.release.engine.sentences import SentenceEngine
from lexveil.release.preconditions import check
from tests.privatization.sentence_banks import build_bank, scale_by_the_batch

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    return build_bank(tmp_path_factory.mktemp("bank"))


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("LEXVEIL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def audited(folder, out=None, **how):
    asked = {"mechanism": "tem", "strategy": "S5", "bank": str(folder), "epsilon": 10.0}
    request = AuditRequest.of({**asked, "samples": 2000, **how})
    return audit(request, out, model="en+sentiment=3")


def test_sentences_keep_their_claim_with_power(bank, tmp_path):
    """The audit finds no violation and would find a factor of 2. A release of the same settings
    relies on the audit."""
    audits = tmp_path / "home" / "audits"
    audits.mkdir(parents=True)
    file = audits / "tem-S5-10.json"
    result = audited(bank, file)
    assert result.verdict == "no violation found", result.as_text()
    assert result.factor is not None and result.factor <= 2
    assert {finding.method for finding in result.audits} == {
        *("vectors", "exact", "distribution", "budget", "independence")
    }
    assert json.loads(file.read_text())["strategy"] == "S5"
    request = Request.of({"strategy": "S5", "bank": str(bank), "epsilon": 10.0})
    relied = check(request, Model.load(name="en+sentiment=3")).audit
    assert relied is not None and relied.result == "no violation found"


def test_an_experiment_is_audited_too(bank):
    result = audited(bank, mode="experiment", samples=400)
    assert not result.violation and result.seed is not None


def twice_epsilon(patch):
    _with_draws(patch, lambda draws, q, of, e, keys: draws(q, of, 2 * e, keys))


def epsilon_of_the_source(patch):
    """Twice as much for texts on one side of the purpose."""

    def drawn(draws, queries, of, epsilon, keys):
        return draws(queries, of, np.where(queries[of, -1] > 0, 2, 1) * epsilon, keys)

    _with_draws(patch, drawn)


def itself_favoured(patch):
    """A sentence that stands in the bank comes out as itself in one of four draws."""
    made = SentenceDraws.replace_queries

    def drawn(self, queries, of, epsilon, keys):
        out = made(self, queries, of, epsilon, keys)
        for number, query in enumerate(queries):
            same = np.flatnonzero((self.vectors == query).all(axis=1))
            if len(same):
                chosen = np.flatnonzero((of == number) & (keys[:, 0] % np.uint64(4) == 0))
                out[chosen] = same[0]
        return out

    patch.setattr(SentenceDraws, "replace_queries", drawn)


def _with_draws(patch, drawn):
    made = SentenceDraws.replace_queries
    patch.setattr(
        SentenceDraws,
        "replace_queries",
        lambda self, *given: drawn(lambda *changed: made(self, *changed), *given),
    )


def lengths_of_the_batch(patch):
    scale_by_the_batch(patch, 20)


def frequencies_of_the_source(patch):
    """Tokens weigh by how often they stand in the batch."""
    made = SentenceSpace.embed

    def weighted(self, units):
        known = units.known().rows
        counts = np.bincount(known, minlength=len(self.weights)).clip(1)
        return made(replace(self, weights=self.weights / counts), units)

    patch.setattr(SentenceSpace, "embed", weighted)


def padding_by_the_source(patch):
    """A long text gets one sentence more."""
    made = engine.cut

    def cut(source, per_text):
        units, text_of, draws = made(source, per_text)
        if per_text is None:
            return units, text_of, draws
        long = np.diff(units.starts) > 8
        draws = np.repeat(np.arange(source.n_texts), per_text + long)
        return units, draws, draws

    patch.setattr(engine, "cut", cut)


def one_charge_for_several(patch):
    made = SentenceEngine.spends

    def spends(self, counted, budget):
        return np.minimum(made(self, counted, budget), budget.cap)

    patch.setattr(SentenceEngine, "spends", spends)


def the_source_in_the_bank(patch):
    """A text of the batch stands where the first sentence of the bank stood."""
    made = engine.SentenceWorker.draw

    def draw(self, batch, budget=None):
        texts = self.sentences.texts.array.to_pylist()
        texts[:50] = [f"{text} too" for text in [*batch.texts][:1] * 50]
        strings = Strings(pa.array(texts, pa.large_string()))
        sentences = replace(self.sentences, texts=strings)
        return made(replace(self, sentences=sentences), batch, budget)

    patch.setattr(engine.SentenceWorker, "draw", draw)


def a_small_diameter(patch):
    patch.setattr(SentenceSpace, "diameter", 2.0)
    patch.setattr(SentenceSpace, "radius", 4.0)


def one_key_for_a_text(patch):
    """Two sentences of a text have the same noise."""

    def drawn(draws, queries, of, epsilon, keys):
        first = np.concatenate([[True], np.diff(of) != 0])
        return draws(
            queries,
            of,
            epsilon,
            keys[np.maximum.accumulate(np.where(first, np.arange(len(of)), 0))],
        )

    _with_draws(patch, drawn)


FAULTS = {
    twice_epsilon: "distribution",
    epsilon_of_the_source: "distribution",
    itself_favoured: "distribution",
    lengths_of_the_batch: "vectors",
    frequencies_of_the_source: "vectors",
    padding_by_the_source: "budget",
    one_charge_for_several: "budget",
    the_source_in_the_bank: "budget",
    a_small_diameter: "budget",
    one_key_for_a_text: "independence",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(fault, bank, monkeypatch):
    fault(monkeypatch)
    result = audited(bank)
    assert result.verdict == "violated"
    methods = {finding.method for finding in result.audits if finding.violation}
    assert FAULTS[fault] in methods, result.as_text()


@pytest.mark.parametrize(
    "mechanism",
    # Vickrey has the noise of madlib, and chooses between two sentences
    [pytest.param("madlib", marks=pytest.mark.nightly), *sorted({*NOISY} - {"madlib"})],
)
def test_noisy_vectors_keep_their_claim_with_power(mechanism, bank):
    result = audited(bank, mechanism=mechanism)
    assert result.verdict == "no violation found", result.as_text()
    assert result.factor is not None and result.factor <= 2
    assert len(result.epsilons) == 2


def noise_half_as_long(patch):
    made = Madlib.noise
    patch.setattr(Madlib, "noise", lambda self, epsilon, rng: made(self, 2 * epsilon, rng))


def noise_of_another_metric(patch):
    """The noise of madlib, which is the same in all directions."""
    patch.setattr(Mahalanobis, "noise", Madlib.noise)


def the_source_left_out(patch):
    """A text that stands in the bank does not come out as itself, as the printed algorithm has it
    of words.
    """

    def replaced(self, queries, of, epsilon, noise):
        near, _ = self.search.nearest_k(queries[of] + noise[:, :-1], self.k)
        own = (self.vectors[near[:, 0]] == queries[of]).all(axis=1)
        return np.where(own, near[:, 1], made(self, queries, of, epsilon, noise))

    made = Vickrey.replace_queries
    patch.setattr(Vickrey, "replace_queries", replaced)


NOISY_FAULTS = {
    "madlib": (noise_half_as_long, "distribution"),
    "mahalanobis": (noise_of_another_metric, "distribution"),
    "vickrey": (the_source_left_out, "nearest"),
}


@pytest.mark.parametrize("mechanism", NOISY_FAULTS)
def test_a_planted_fault_of_noisy_vectors_is_seen(mechanism, bank, monkeypatch):
    fault, method = NOISY_FAULTS[mechanism]
    fault(monkeypatch)
    monkeypatch.setattr(auditing._SentenceAudit, "released", lambda *_: [])  # draws alone show it
    result = audited(bank, mechanism=mechanism, samples=600)
    assert result.verdict == "violated"
    methods = {finding.method for finding in result.audits if finding.violation}
    assert method in methods, result.as_text()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"mechanism": "tem_context"}, "replaces only words, not sentences"),
        ({"strategy": "S3"}, "is only used for sentences"),
    ],
)
def test_what_cannot_be_audited_is_refused(bank, how, said):
    with pytest.raises(RequestError, match=said):
        audited(bank, **how)
