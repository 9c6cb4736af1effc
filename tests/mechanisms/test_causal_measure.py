"""tem_context by a language model: the distribution of whole texts, exactly; what the model may
read; batches."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from lexveil import Model, RequestError
from lexveil.auditing.toy_project import make
from lexveil.core.accounting.budgets import Policy
from lexveil.core.mechanisms import causal_measure
from lexveil.core.mechanisms.causal_measure import CausalMeasure, CausalWords
from lexveil.core.mechanisms.rejection import DRAWN, FOLLOWS, KEPT, SKIPPED
from lexveil.core.mechanisms.tem_context import TemContext, TextTokens
from lexveil.io.artifacts.mechanisms import CHOSEN_BY, CausalModel
from lexveil.io.artifacts.project import Project
from lexveil.io.config import Configuration, parse_params
from lexveil.io.request import Request
from lexveil.readers import tem_context
from lexveil.readers.seen_tokens import Symbols
from lexveil.readers.unigram import build_adversary
from lexveil.release.adapters.memory import privatize
from lexveil.release.settings import resolve_settings
from tests.mechanisms.toys import vectors

TOKENS = ["a", "b", "a_c", "b_a", "e", "f", "g"]  # the first one is always kept
ROWS = np.arange(1, 7)
COUNTS = np.array([9, 5, 4, 2, 1, 1])
PENALTY = 1
N_WORDS = np.array([token.count("_") + 1 for token in TOKENS[1:]])
# by a sum over all that is read: nothing is forgotten
AFTER = np.random.default_rng(4).dirichlet(np.full(8, 0.4), 5)


class Reader:
    """A model of letters, and its states, of one beam each."""

    name = "toy"
    last = np.zeros(0)

    def pieces(self, several):
        return [[ord(word) - ord("a") for word in words] for words in several]

    def begin(self, n_texts, n_beams):
        begun = Reader()
        begun.sums = np.zeros((n_texts, n_beams), dtype=np.int64)
        return begun

    def read(self, pieces, is_read):
        self.sums = np.where(is_read, (2 * self.sums + pieces + 1) % 5, self.sums)

    def only(self, texts):
        self.sums = self.sums[texts]

    def next_pieces(self, texts, among):
        return AFTER[self.sums[texts]][..., among]


def toy(kappa=1.0):
    causal = CausalWords(Reader, TOKENS, ROWS)
    return TemContext(
        vectors(6),
        None,
        N_WORDS,
        COUNTS,
        causal=causal,
        kappa=kappa,
        model="smollm2",
        length_penalty=PENALTY,
    )


def says(letters, kappa=1.0):
    """The base measure after some letters, up to a factor."""
    state = 0
    for letter in letters:
        state = (2 * state + ord(letter) - ord("a") + 1) % 5
    first = [ord(TOKENS[row][0]) - ord("a") for row in ROWS]
    of_first = np.bincount(first, COUNTS + 1)
    mu = AFTER[state][first] * (COUNTS + 1) / of_first[first]
    return np.asarray(mu**kappa * 0.5 ** (PENALTY * (N_WORDS - 1)))


def test_the_base_measure_is_that_of_the_model():
    for kappa, before in itertools.product((0.0, 0.5, 1.0, 2.0), (-1, 0, 3)):
        mass = toy(kappa).mass.of(before)
        wanted = says("" if before < 0 else TOKENS[before].replace("_", ""), kappa)
        assert mass / mass.sum() == pytest.approx(wanted / wanted.sum(), rel=1e-4)
    measure = toy().mass
    assert isinstance(measure, CausalMeasure)
    for p in (
        np.zeros(5),
        np.full(5, np.nan),
        np.full(5, np.inf),
        np.eye(5)[1] * 3e38,
        np.full(5, 5e-324),
    ):
        mass = measure._mass(p[None])
        assert mass.min() >= 1 and mass.sum() < 2**31


KIND = [DRAWN, KEPT, DRAWN, SKIPPED, FOLLOWS, KEPT, DRAWN]
ABOUT = [0, -2, 1, -1, 0, 0, 2]
SOURCES = [2, 5, -1]
EPSILON = 1.5
COPIES = 6000


def texts(n):
    kind = np.tile(KIND, n)
    about = np.tile(ABOUT, (n, 1))
    about[:, [0, 2, 6]] += 3 * np.arange(n)[:, None]
    about[:, 4] += len(KIND) * np.arange(n)
    ids = np.tile(SOURCES, n)
    keys = np.random.default_rng(6).integers(0, 2**63, (len(ids), 4)).astype(np.uint64)
    return (
        TextTokens(np.arange(len(kind)) % len(KIND) == 0, kind, about.ravel()),
        ids,
        np.where(ids < 0, 0, EPSILON),
        keys,
    )


def law():
    """Pr[y₁, y₂, y₃] of such a text, an unknown word last."""
    mechanism = toy(0.0)  # whose base measure is the length penalty alone
    budget = np.full(1, EPSILON)
    near = [
        np.exp(mechanism.log_pmf(np.array([word]), budget)[0]) * 2.0 ** (N_WORDS - 1)
        for word in SOURCES[:2]
    ]
    of = [token.replace("_", "") for token in TOKENS[1:]]
    p = np.empty((6, 6, 6))
    for one, two in itertools.product(range(6), range(6)):
        weights = [
            near[0] * says(""),
            near[1] * says(of[one] + "h"),
            says(of[one] + "h" + of[two] + of[one] + "a"),
        ]
        shares = [weight / weight.sum() for weight in weights]
        p[one, two] = shares[0][one] * shares[1][two] * shares[2]
    return p


@pytest.mark.parametrize("fault", [None, 0, 2])
def test_whole_texts_are_distributed_as_claimed(fault, monkeypatch):
    """A model that is told a source word, before (0) or ahead (2), is seen."""
    honest = CausalMeasure.walk

    def walk(measure, course):
        told = [measure.pieces[ROWS[SOURCES[ABOUT[fault or 0]]]], [7]]

        def pieces(place):
            known = course.pieces(place)
            at = place % len(KIND)
            return told[0] if known and at == (0 if fault == 0 else 1) else known

        honest(measure, course if fault is None else course._replace(pieces=pieces))

    monkeypatch.setattr(CausalMeasure, "walk", walk)
    out = toy().replace_in_order(*texts(COPIES), ROWS, ["h"]).reshape(COPIES, -1)
    assert (out[:, 4] == out[:, 0]).all() and (out[:, [1, 3, 5]] == -1).all()
    seen = np.bincount(np.ravel_multi_index(out[:, [0, 2, 6]].T, (6, 6, 6)), minlength=216)
    wanted = COPIES * law().ravel()
    common = wanted >= 5
    counts = [np.append(each[common], each[~common].sum()) for each in (seen, wanted)]
    assert (chisquare(*counts).pvalue > 1e-6) == (fault is None)


def test_texts_side_by_side_change_nothing_and_long_ones_begin_anew(
    monkeypatch,
):
    mechanism = toy()
    every = texts(40)
    together = mechanism.replace_in_order(*every, ROWS, ["h"])
    monkeypatch.setattr(causal_measure, "TEXTS", 3)
    assert np.array_equal(mechanism.replace_in_order(*every, ROWS, ["h"]), together)
    # nothing is before the third token, nor before the seventh
    monkeypatch.setattr(causal_measure, "TOKENS_OF_A_CONTEXT", 2)
    cut = mechanism.replace_in_order(*every, ROWS, ["h"])
    is_first = np.isin(np.arange(len(cut)) % len(KIND), (0, 2, 4, 6))
    anew = mechanism.replace_in_order(every[0]._replace(is_first=is_first), *every[1:], ROWS, ["h"])
    assert np.array_equal(cut, anew) and not np.array_equal(cut, together)
    monkeypatch.setattr(causal_measure, "PIECES", 0)  # of a long word no more are read
    alone = mechanism.replace_in_order(
        every[0]._replace(is_first=np.ones_like(is_first)), *every[1:], ROWS, ["h"]
    )
    assert np.array_equal(mechanism.replace_in_order(*every, ROWS, ["h"]), alone)


@pytest.mark.parametrize(("most", "rel"), [(2048, 2e-3), (2, 0.1)])
def test_the_adversary_reads_what_was_written(most, rel, monkeypatch):
    """The normalizers are sums over all words, or over two words and some words drawn by their
    weight.
    """
    monkeypatch.setattr(tem_context, "MOST", most)
    monkeypatch.setattr(tem_context, "SUMMED", 20_000)
    mechanism = toy()
    prior = (COUNTS + 1.0) / (COUNTS + 1.0).sum()
    adversary = build_adversary(mechanism, prior, (EPSILON, EPSILON))
    outputs = np.array([3, -1, 5])
    certain = [None, "h", None]
    none = np.full(3, -1)
    seen = Symbols(
        np.zeros(3, np.int64),
        outputs,
        np.full(3, EPSILON),
        none,
        none,
        none,
        none,
        ROWS[outputs],
        certain,
    )
    found = adversary.in_texts(seen, 6)
    near = np.exp(toy(0.0).log_pmf(np.arange(6), np.full(6, EPSILON))) * 2.0 ** (
        N_WORDS - 1
    )  # up to a factor of each w
    for row, context in enumerate(("", TOKENS[ROWS[3]].replace("_", "") + "h")):
        weights = near * says(context)
        posterior = prior * (weights / weights.sum(axis=1, keepdims=True))[:, outputs[2 * row]]
        order = np.argsort(-posterior)
        assert found.ids[row].tolist() == order.tolist()
        joint = np.exp(found.log_joint[row] - found.log_joint[row, 0])
        assert joint == pytest.approx(posterior[order] / posterior.max(), rel=rel)


AS_KEPT = Policy.of("S1", "keep", "keep", "sample")


def toy_project(folder):
    params = parse_params({"seed": 1, "mechanisms": {"tem_context": {"model": "smollm2"}}})
    project = Project(Path(), params, Configuration(), is_project=True)
    return make(folder, "tem_context", "S1", AS_KEPT, project, 5.0).model


def test_of_a_release_the_model_reads_kept_words_and_nothing_that_a_detector_found(
    tmp_path, monkeypatch
):
    read = list[Any]()
    honest = TemContext.replace_in_order

    def replace_in_order(self, texts, *drawn):
        read.append((texts.kind.tolist(), texts.about.tolist(), drawn[-1]))
        return honest(self, texts, *drawn)

    monkeypatch.setattr(TemContext, "replace_in_order", replace_in_order)
    listed = tmp_path / "listed.txt"
    model = toy_project(tmp_path)
    listed.write_text("[PERSON]\ngrove\n", encoding="utf-8")
    asked = {
        "mechanism": "tem_context",
        "strategy": "S1",
        "epsilon": 5.0,
        "protect": str(listed),
        "stopwords": "keep",
    }
    result = privatize(["the birch, grove cedar."], Request.of(asked), model)
    the = model.embedding("S1").tokens.index("the")
    assert read == [([KEPT, DRAWN, KEPT, KEPT, DRAWN, KEPT], [the, 0, -2, -1, 1, -3], [",", "."])]
    assert any(name.startswith("smollm2/") for name in result.record.made_with)
    assert any(
        "language model smollm2" in condition for condition in result.record.guarantee.because
    )


def test_what_is_refused_before_any_noise(tmp_path, monkeypatch):
    """A level or a share of words, for which no epsilon is known; words of another language;
    without the extra."""
    model = toy_project(tmp_path)
    for asked in ({"protection": "strong"}, {"recovery": 0.1}):
        with pytest.raises(
            RequestError,
            match=r"would depend on the whole text, so it is not computed; give epsilon",
        ):
            resolve_settings(
                Request.of({"mechanism": "tem_context", "strategy": "S1", **asked}), model
            )
    (chosen,) = model.causal_models.values()
    german = replace(
        model, causal_models={"smollm2": CausalModel("de", chosen.make, chosen.weights)}
    )
    with pytest.raises(
        RequestError, match=f"{CHOSEN_BY} is smollm2, a language model of the language de"
    ):
        german.causal_model("tem_context")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(
        RequestError,
        match=f"uv sync --extra neural.*or choose another back end in params.yaml: {CHOSEN_BY}",
    ):
        Model.of_run(model.project).mechanism("tem_context", "S1", AS_KEPT)
    # a release without the file
    other = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr("importlib.util.find_spec", lambda _: other)
    with pytest.raises(RequestError, match=r"has no SmolLM2.*gguf; `uv sync --extra neural`"):
        Model.of_run(model.project).mechanism("tem_context", "S1", AS_KEPT)
