"""Recovery: what a reader gets back follows from public things alone, and so does the epsilon of a
target."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lexveil import Model, privatize
from lexveil.core.accounting.budgets import Policy
from lexveil.readers import stored_curve as recovery_store
from lexveil.readers.bands import BANDS
from lexveil.readers.calibration import OutOfReachError, recovered
from lexveil.readers.meaning import recovery_at
from lexveil.readers.public_words import PublicWords
from lexveil.readers.shares import Expected, Share
from lexveil.readers.stored_curve import StoredCurve
from tests.tasks.changing import change_params

pytestmark = pytest.mark.usefixtures("own_figures")

KEEP = Policy("keep", "keep", "sample")


def test_what_was_computed_is_kept_and_a_broken_file_is_written_anew(project, monkeypatch):
    model = Model.load(project)
    asked = []

    def curve(policy=KEEP):
        return StoredCurve(model, "tem", "S1", policy, told=asked.append)

    # as of processes that began with this one
    early = curve()
    searching = curve()
    first = curve().at(1.05)  # between two points of the lattice
    assert len(asked) == 2 and early.at(1.05) == curve().at(1.05) == first and len(asked) == 2
    with monkeypatch.context() as patch:
        patch.setattr(recovery_store, "epsilon_for", lambda *_: None)
        searching.epsilon_for(0.3, "content")  # keeps where its search begins, and what others kept
    assert curve().at(1.05) == first and len(asked) == 2
    (kept,) = (project / ".lexveil/recovery").glob("*.json")
    right = kept.read_text(encoding="utf-8")
    values = json.loads(right)
    values["points"]["0"]["recovered"]["rare"]["share"] = 7
    for broken in ("{", json.dumps(values), right.replace(values["of"], "of another model"), "[]"):
        n_asked = len(asked)
        kept.write_text(broken, encoding="utf-8")
        assert curve().at(1.05) == first and len(asked) == n_asked + 2
    asked[2:] = asked[:2]
    assert curve().at(1.05) == first and len(asked) == 4
    curve(Policy("perturb", "keep", "sample")).point(0)
    assert len(asked) == 5 and len(list((project / ".lexveil/recovery").glob("*.json"))) == 2


def test_what_was_asked_before_changes_no_epsilon(project, monkeypatch):
    """The search begins where public things say: near the same point, whatever points are kept."""
    begun = []
    search = recovery_store.epsilon_for

    def noted(curve, target, band, measure, start):
        begun.append(start)
        return search(curve, target, band, measure, start)

    monkeypatch.setattr(recovery_store, "epsilon_for", noted)
    model = Model.load(project)
    found = []
    for before in ([], [0.1], [40.0]):
        for kept in (project / ".lexveil/recovery").glob("*.json"):
            kept.unlink()
        curve = StoredCurve(model, "tem", "S1", KEEP)
        for epsilon in before:
            curve.at(epsilon)
        found.append(curve.epsilon_for(0.3, "content"))
    assert len(set(begun)) == 1 and found[0] == found[1] == found[2]
    # between two points of the lattice
    assert recovered(found[0].expected, "content") == pytest.approx(0.3, abs=0.02)
    # as a service, which computes nothing while it answers
    at_once = replace(model, cache_only=True)
    assert StoredCurve(at_once, "tem", "S1", KEEP).epsilon_for(0.3, "content") == found[0]


def test_the_epsilon_and_what_is_expected_there_is_a_table(project, cli):
    shown = cli(
        "calibrate", "--recovery", "0.3", "--mechanism", "tem", "--strategy", "S1", "--json"
    ).out
    (run,) = json.loads(shown)["runs"]
    named = run["achieved"]["bands"]
    # S1 keeps function words
    assert set(named) == {"all", "content", "frequent", "middle", "rare"}
    # two samples of 900 words, 5 deviations
    assert named["all"]["recovered"] == pytest.approx(0.3, abs=0.12)


def test_a_target_out_of_reach_is_a_row_of_the_table(project, cli):
    shown = cli(
        "calibrate", "--recovery", "0.001", "--mechanism", "tem", "--strategy", "S1", code=1
    ).out
    assert "a reader who sees no output already names" in shown


def test_a_target_below_what_is_named_without_output_is_refused_before_the_search():
    """The most frequent word is .9 % of all, and 6.7 % are named by those beside them."""
    curve = StoredCurve(Model.load(name="en"), "tem", "S1", KEEP)
    curve.points = {}
    with pytest.raises(OutOfReachError, match=r"a reader who sees no output is .* to name 6\.7%"):
        curve.epsilon_for(0.05, "content")
    assert not curve.points


def test_the_table_has_the_band_that_is_asked_for():
    """Half of the words are function words, all named; of the others a fifth is."""
    share = Share(900, 0.2, 0.18, 0.22)
    named = dict.fromkeys(BANDS, share) | {"function": Share(900, 1.0, 1.0, 1.0)}
    mass = {"function": 0.5, "frequent": 0.3, "middle": 0.1, "rare": 0.1}
    bands = recovery_at(Expected(3.0, named, named, mass, {})).bands
    assert (bands["content"].recovered, bands["content"].share_of_words) == (0.2, 0.5)
    assert (bands["all"].recovered, bands["all"].share_of_words) == (0.6, 1.0)
    assert 0.18 < bands["content"].low < 0.2 < bands["content"].high < 0.22


PERTURB = Policy("perturb", "keep", "sample")


def test_words_have_the_public_frequencies(project):
    model = Model.load(project)
    space = model.embedding("S1")
    words = PublicWords.of(model, "tem", "S1", PERTURB)
    rows = words.prepared.vocabulary.rows
    assert "," not in {space.tokens[row] for row in rows.tolist()}
    assert words.prior.sum() == pytest.approx(1) and words.prior.min() > 0
    assert np.all(np.diff(words.prior[np.argsort(space.counts[rows])]) >= 0)
    assert (
        BANDS[words.bands[words.prepared.vocabulary.number[space.tokens.index("the")]]]
        == "function"
    )


def test_a_word_that_is_kept_is_never_meant_by_a_perturbed_one(project):
    words = PublicWords.of(Model.load(project), "tem", "S1", KEEP)
    function = words.bands == BANDS.index("function")
    assert words.prior[function].sum() == 0 and words.prior.sum() == pytest.approx(1)
    sample = words.sample("calibration", 300)
    assert sample.mass["function"] == 0 and not function[sample.ids].any()
    epsilon = np.full(len(words.prior), 1.0)
    guesses = words.adversary((1.0, 1.0)).guess(np.arange(len(words.prior)), epsilon)
    assert not function[guesses].any()


def test_more_epsilon_gives_back_more_and_always_the_same_figures(project):
    words = PublicWords.of(Model.load(project), "tem", "S1", PERTURB)
    little = words.expected(0.5)
    much = words.expected(500.0)
    assert little.overall(little.recovered) < 0.3
    assert much.overall(much.recovered) > 0.7
    assert words.expected(0.5) == little != words.expected(0.5, "others")


def test_a_release_that_gives_back_too_much_is_refused_before_it_costs_anything(project, cli):
    change_params(release={"max_recovery": 0.2})
    Path("one.jsonl").write_text('{"text": "the door was open"}\n', encoding="utf-8")
    command = ("privatize", "one.jsonl", "--mechanism", "tem", "--strategy", "S1", "-o")
    said = cli(
        *command,
        "out.jsonl",
        "--epsilon",
        "500",
        code=2,
        told=r"using the model.*\n(computing.*\n)*",
    ).err
    assert "nothing is released" in said and "release.max_recovery allows 20.0%" in said
    assert not Path("out.jsonl").exists()
    passes = said.split("--epsilon ")[1].split()[0]
    twice = ("2.jsonl", "--epsilon", passes, "--max-token-epsilon", 2 * float(passes))
    assert (
        "nothing is released"
        in cli(*command, *twice, code=2, told=r"using the model.*\n(computing.*\n)*").err
    )
    cli(*command, "3.jsonl", "--epsilon", passes, "--max-token-epsilon", passes)
    cli(*command, "4.jsonl", "--epsilon", "500", "--mode", "experiment")  # nothing is released


@pytest.mark.parametrize(
    "how", [{"mechanism": "tem", "recovery": 0.4}, {"mechanism": "madlib", "epsilon": 4.0}]
)
def test_an_epsilon_and_what_it_means_are_no_matter_of_the_source(project, how):
    """Both are the same for all texts, and neither request finds anything that
    the other one stored."""
    found = []
    for texts in (["the door was open"], ["rain", "a cold room"]):
        for kept in (project / ".lexveil/recovery").glob("*"):
            kept.unlink()
        record = privatize(texts, strategy="S1", project=project, **how).record
        assert record.meaning is not None and record.counts.n_perturbed
        assert record.spent.max_token_epsilon <= record.base_epsilon or "epsilon" in how
        found.append((record.base_epsilon, record.document_budget, record.meaning))
    assert found[0] == found[1]
    (at,) = record.meaning.at
    assert (
        at.bound is not None
        and 0 < at.bound.nearest.median <= at.bound.middle.median <= at.bound.random.worst
    )
    assert {"rare", "all"} <= set(at.bands) and record.meaning.sentences[0].startswith(
        "Of 100 rare words"
    )


def test_texts_of_several_lengths_have_a_range_of_epsilons(project):
    texts = ["rain", " ".join(["door rain room"] * 400)]
    done = privatize(texts, mechanism="tem", strategy="S1", epsilon=1.0, project=project)
    meaning = done.record.meaning
    spent = done.record.spent
    assert meaning is not None and spent is not None
    least, most = (at.epsilon for at in meaning.at)
    assert least < most == spent.max_token_epsilon
    assert "at the smallest" in meaning.sentences[0]
