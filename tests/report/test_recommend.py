"""`lexveil recommend`: which runs it names, what it says of their uncertainty, and what it
refuses."""

import json
import re
import shutil

import asking
import pytest

from lexveil import MissingArtifactError, RequestError
from lexveil.base import paths
from lexveil.base.levels import BaseEpsilon, RecoveryTarget
from lexveil.base.runtime.tables import write_json
from lexveil.lab.report.recommend import Limits, as_text, commands, recommend
from lexveil.readers.shares import Share
from tests.conftest import ROOT
from tests.report.records import named, recovered
from tests.tasks.changing import change_params

# documents: an interval of ± 0.01 at most, so that what decides is the spread of the trainings
N_TEST = 10_000
CLEAN = ("none", "none", BaseEpsilon(0.0))
LOW = ("madlib", "S1", BaseEpsilon(1.0))
MIDDLE = ("madlib", "S1", BaseEpsilon(10.0))
HIGH = ("tem", "S3", BaseEpsilon(50.0))
WORSE = ("tem", "S1", BaseEpsilon(10.0))


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    shutil.copy(ROOT / "params.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def command(capsys):
    """Runs `lexveil recommend`, and gives its exit code and what it prints; nothing else is
    printed."""

    def run(*arguments):
        code = asking.command("recommend", *arguments)
        shown = capsys.readouterr()
        assert (shown.err == "") == (code < 2) and (shown.out == "") == (code == 2)
        return code, shown.out + shown.err

    return run


def write(
    key,
    utility,
    attack,
    spread=0.0,
    n_test=N_TEST,
    right=None,
):
    """A run on reviews; without an attack on news. Of the documents the first ``right`` are right
    in all trainings."""

    def entry(**settings):
        scores = {
            name: {"macro_f1": {"each": [mean - spread, mean, mean + spread]}}
            for name, mean in settings.items()
        }
        known = (
            {}
            if right is None
            else dict.fromkeys(scores, " ".join(["3"] * right + ["0"] * (n_test - right)))
        )
        return {
            "left_out": None,
            "n_test": n_test,
            "majority": {"macro_f1": 0.1},
            "scores": scores,
            "right": known,
        }

    attacked = {"left_out": "none"} if attack is None else entry(static=0.99, adaptive=attack)
    file = paths.evaluation(*key)
    record = json.loads(file.read_text()) if file.exists() else named(*key) | {"datasets": {}}
    utilities = entry(private=utility, clean=1 - utility)
    record["datasets"]["news" if attack is None else "reviews"] = {
        "utility": utilities,
        "attack": attacked,
    }
    write_json(record, file)


@pytest.fixture
def grid():
    for key, utility, attack in (
        (CLEAN, 0.95, 0.9),
        (LOW, 0.5, 0.2),
        (MIDDLE, 0.7, 0.5),
        (HIGH, 0.9, 0.8),
        (WORSE, 0.65, 0.6),
    ):
        write(key, utility, attack)
    write(LOW, 0.6, None)


def reviews(*, setting="private", **limits):
    return recommend(Limits(**limits), setting=setting)["datasets"]["reviews"]


def test_a_run_that_was_skipped_is_no_candidate(grid):
    before = reviews(min_utility=0.1)
    skipped = {"mechanism": "tem", "strategy": "S1", "recovery": 0.05, "band": "content"}
    write_json(
        skipped | {"nearest": 0.07, "skipped": "out of reach"},
        paths.evaluation("tem", "S1", RecoveryTarget(0.05)),
    )
    assert reviews(min_utility=0.1) == before


def test_uncertainty_by_hand():
    """Trainings 0.78, 0.8, 0.82: sd 0.02. 48 documents: (38.4 + 2)/52 = 0.77692,
    1.96·√(0.77692·0.22308/52) = 0.11316.

    Standard error √(0.02²/3 + 0.05773²) = 0.05888, hardly of trainings, so the normal 1.645: 0.8
    may be 0.703.
    """
    write(MIDDLE, 0.8, 0.3, spread=0.02, n_test=48)
    expected = {"mean": 0.8, "sd": 0.02, "half_width": 0.11316}
    assert reviews(min_utility=0.7)["runs"][0]["utility"] == pytest.approx(expected, abs=1e-5)
    for limit, sure in ((0.7, ["madlib S1 ε 10"]), (0.71, [])):
        found = reviews(min_utility=limit)
        assert (found["fitting"], found["sure"], found["clean"]) == (["madlib S1 ε 10"], sure, None)
        assert any(
            "by its mean alone" in line for line in as_text(recommend(Limits(min_utility=limit)))
        ) == (not sure)


@pytest.mark.parametrize(
    ("n_test", "right", "alike"),
    # of known documents 5 more are right, which tells
    [(20, None, True), (N_TEST, None, False), (100, 70, False)],
)
def test_runs_that_cannot_be_told_apart_are_named(n_test, right, alike):
    write(LOW, 0.70, 0.40, n_test=n_test, right=right)
    write(MIDDLE, 0.75, 0.45, n_test=n_test, right=None if right is None else right + 5)
    others = {"madlib S1 ε 1": "madlib S1 ε 10", "madlib S1 ε 10": "madlib S1 ε 1"}
    assert reviews(min_utility=0.5)["alike"] == {
        run: [other] * alike for run, other in others.items()
    }


@pytest.mark.usefixtures("grid")
def test_the_command_prints_what_fits(command):
    code, out = command("--min-utility", "0.6")
    assert (
        code == 0
        and "  recommended: madlib S1 ε 10\n" in out
        and "not weighed: news (no attack)\n" in out
    )
    found = json.loads(command("--min-utility", "0.6", "--json")[1])["datasets"]["reviews"]
    assert found == reviews(min_utility=0.6) and found["nearest"] is None
    # by attack; tem S1 is beaten
    assert found["fitting"] == found["sure"] == ["madlib S1 ε 10", "tem S3 ε 50"]
    standing = {row["run"]: row["standing"] for row in found["runs"]}
    # clean texts are no run to recommend
    assert standing["tem S1 ε 10"] == "dominated" and len(standing) == 4
    assert reviews(max_attack=0.6)["fitting"] == ["madlib S1 ε 10", "madlib S1 ε 1"]  # by utility
    # On clean texts utility is turned round: the first run is best in both.
    assert reviews(min_utility=0.4, setting="clean")["fitting"] == ["madlib S1 ε 1"]


@pytest.mark.usefixtures("grid")
def test_nothing_keeps_the_limits(command):
    """0.7 at 0.5 misses 0.8 by 0.1 and 0.4 by 0.1; 0.9 at 0.8 misses 0.4; 0.5 at 0.2 misses 0.3."""
    code, out = command("--min-utility", "0.8", "--max-attack", "0.4", "--dataset", "reviews")
    assert (
        "no run keeps utility ≥ 0.8 and attack ≤ 0.4; madlib S1 ε 10 comes nearest and "
        "misses by 0.200" in out
    )
    assert code == 1 and "recommended" not in out and "not weighed" not in out


@pytest.mark.usefixtures("grid")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "--min-utility, --max-attack or both"),
        ("--max-attack nan", "Must be <= 1"),
        ("--min-utility 0.5 --dataset absent", "evaluated data sets: news, reviews"),
        ("--min-utility 0.5 --dataset news", "news (no attack)"),
        ("--min-utility 0.5 --setting static", "--setting"),
        ("--min-utility 0.5 --max-recovery 0.2 --band rare", "stage evaluate"),
    ],
)
def test_wrong_requests(command, arguments, message):
    code, text = command(*arguments.split())
    assert code == 2 and message in text and text.count("\n") == 1


def test_no_scores():
    with pytest.raises(MissingArtifactError, match="lexveil run"):
        recommend(Limits(min_utility=0.5))
    write(CLEAN, 0.9, 0.9)  # the baseline alone is nothing to choose from
    with pytest.raises(RequestError, match="no data set has both"):
        recommend(Limits(min_utility=0.5))


@pytest.mark.usefixtures("grid")
def test_what_is_like_clean_texts_is_never_named_private(command):
    """0.89 against 0.9: 10,000 documents do not tell them apart, and 0.8 they do. It would be the
    best in utility."""
    write(("tem", "S4", BaseEpsilon(50.0)), 0.96, 0.897)
    found = reviews(min_utility=0.8)
    assert found["like_clean"] == ["tem S4 ε 50"] and found["recommended"] == "tem S3 ε 50"
    code, out = command("--min-utility", "0.95")
    assert code == 1 and "no run keeps utility ≥ 0.95; tem S3 ε 50 comes nearest" in out
    assert "not private: the attack cannot be told from that on clean texts: tem S4 ε 50" in out


@pytest.mark.usefixtures("grid")
def test_limits_of_recovery(command):
    """The upper end of the better reader's interval counts; what was not measured does not keep a
    limit."""
    for key, by_word, by_context in ((LOW, 5, 10), (MIDDLE, 10, 14), (WORSE, 12, None)):
        band = {
            "n": 100,
            "by_word": recovered(by_word, 100),
            "by_context": by_context and recovered(by_context, 100),
        }
        write_json(
            {"datasets": {"reviews": {"rare": band, "listed": {**band, "n": 0}}}},
            paths.recovery(*key),
        )
    found = reviews(max_attack=1.0, max_recovery=0.2, band="rare")
    assert (
        found["readable"] == ["madlib S1 ε 10", "tem S3 ε 50"]
        and found["recommended"] == "tem S1 ε 10"
    )
    code, out = command("--max-attack", "1", "--max-recovery", "0.2", "--band", "rare")
    assert code == 0 and "or it was not measured: madlib S1 ε 10 and tem S3 ε 50" in out
    with pytest.raises(RequestError, match="no run on reviews"):
        recommend(Limits(max_attack=1.0, max_recovery=0.2, band="listed"))


@pytest.mark.usefixtures("grid")
def test_runs_at_levels_and_content_words():
    """A run at a level is called by it; content words are all but function words, of however many
    bands."""
    key = ("tem", "S3", RecoveryTarget(0.2, 7.5))
    write(key, 0.8, 0.4)
    n_of = {"frequent": (60, 30), "middle": (30, 3), "rare": (10, 0), "function": (100, 100)}
    bands = {band: {"n": n, "by_word": recovered(right, n)} for band, (n, right) in n_of.items()}
    write_json(named(*key) | {"datasets": {"reviews": bands}}, paths.recovery(*key))
    found = reviews(max_attack=1.0, max_recovery=0.45, band="content")
    assert found["recommended"] == "tem S3 20%, ε 7.5"
    (row,) = [one for one in found["runs"] if one["run"] == found["recommended"]]
    assert row["recovered"] == pytest.approx(Share.of(33, 100).high)
    assert commands(row)[-1].endswith(
        "--mechanism tem --strategy S3 --epsilon 7.5 --max-token-epsilon 7.5"
    )


@pytest.mark.usefixtures("grid")
def test_where_each_token_had_the_epsilon_none_of_a_release_gets_more(command):
    limits = ("--max-attack", "1")
    assert "--max-token-epsilon" not in command(*limits)[1]
    change_params(grid={"budget": "token"})
    shown = command(*limits)[1]
    assert shown.count("--max-token-epsilon") == 2
    assert re.search(r"privatize FILE .*--epsilon (\S+) --max-token-epsilon \1\n", shown)
