"""Linkage of a release: what is said of it, and the limit that refuses one."""

from types import SimpleNamespace

import pytest

from lexveil import Model, privatize
from lexveil.base.errors import LexveilError
from lexveil.core.accounting.linkage import NOT_MEASURED, SENTENCES_NOT_MEASURED
from lexveil.io.artifacts.sentence_banks import BankLevel
from lexveil.io.request import FileRequest, Request
from lexveil.release.linkage import linkage_of
from lexveil.release.looking.inspect import inspect
from lexveil.release.settings import resolve_settings
from tests.tasks.changing import change_params

TEXTS = ["The waiter was rude, but the soup was good.", "We will come again."]


def linkage(name="en", **options):
    model = Model.load(name=name)
    return linkage_of(resolve_settings(Request(**options), model), model).sentence


def test_every_level_that_ships_has_its_linkage():
    assert "finds it in" in linkage(protection="balanced")
    assert "finds it in" in linkage(protection="strong", mechanism="tem", strategy="S3")


def test_an_epsilon_of_ones_own_is_found_by_structure():
    assert "by its structure alone, whatever epsilon is" in linkage(epsilon=0.1)


def test_other_fates_of_tokens_were_not_measured():
    assert linkage(epsilon=1, stopwords="perturb") == NOT_MEASURED


def test_the_bank_that_ships_has_what_was_measured_of_it():
    assert "in 1 of 100 cases" in linkage(strategy="S5")
    assert "in 4 of 100 cases" in linkage("en+sentiment=3", strategy="S5", sentences=8)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("en", {"epsilon": 7.0}),
        ("en", {"sentences": 8}),
        ("en", {"unit": "sentence"}),
        ("en+sentiment=2", {}),
    ],
)
def test_what_was_not_measured_of_a_bank_is_no_expectation(name, options):
    assert linkage(name, strategy="S5", **options) == SENTENCES_NOT_MEASURED


@pytest.mark.parametrize(("epsilon", "found"), [(3.0, 0.04), (3.5, None)])
def test_a_bank_says_what_its_levels_say_of_the_same_epsilon(epsilon, found, monkeypatch):
    level = BankLevel(
        level="strong",
        epsilon=3.0,
        linkage=0.04,
        content=0.05,
        rare=0.01,
        content_without=0.04,
        rare_without=0.0,
    )
    opened = SimpleNamespace(card=SimpleNamespace(levels=[level]))
    monkeypatch.setattr("lexveil.release.linkage.open_wanted", lambda *_: opened)
    request = Request(strategy="S5", bank="of mine", epsilon=epsilon)
    model = Model.load(name="en")
    assert linkage_of(resolve_settings(request, model), model).largest == found


def test_a_record_says_it():
    record = privatize(TEXTS, protection="balanced", seed=1).record
    assert record.linkage is not None
    assert record.linkage.candidates == 1000
    assert record.linkage.at[0].found > 0.5


def test_an_operator_is_told_how_many_texts_are_unique(tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("the waiter was rude\nthe soup was good\nwe will come again\n")
    tried = inspect(file, FileRequest(), model="en").tried
    assert (tried.texts, tried.unique_structures) == (3, 1)  # the first two: a, kept, kept, b


def test_a_limit_refuses_what_is_found_more_often(project):
    change_params(release={"max_linkage": 0.05})
    with pytest.raises(LexveilError, match=r"release.max_linkage allows 5.0%"):
        privatize(TEXTS, protection="balanced", model="en", project=project)


def test_a_limit_leaves_experiments_alone(project):
    change_params(release={"max_linkage": 0.05})
    assert privatize(TEXTS, protection="balanced", model="en", project=project, seed=1).values
