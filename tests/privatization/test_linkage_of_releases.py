"""Linkage of a release: what is said of it, and the limit that refuses one."""

from pathlib import Path

import pytest

from lexveil import Model, privatize
from lexveil.accounting.linkage import NOT_MEASURED
from lexveil.errors import LexveilError
from lexveil.privatization.linkage import linkage_of
from lexveil.privatization.looking.inspect import inspect
from lexveil.privatization.settings import resolve_settings
from lexveil.request import FileRequest, Request
from tests.tasks.changing import change_params

TEXTS = ["The waiter was rude, but the soup was good.", "We will come again."]


def linkage(**options: object) -> str:
    model = Model.load(name="en")
    return linkage_of(resolve_settings(Request(**options), model), model).sentence


def test_every_level_that_ships_has_its_linkage() -> None:
    assert "finds it in" in linkage(protection="balanced")
    assert "finds it in" in linkage(protection="strong", mechanism="tem", strategy="S3")


def test_an_epsilon_of_ones_own_is_found_by_structure() -> None:
    assert "by its structure alone, whatever epsilon is" in linkage(epsilon=0.1)


def test_other_fates_of_tokens_were_not_measured() -> None:
    assert linkage(epsilon=1, stopwords="perturb") == NOT_MEASURED


def test_a_record_says_it() -> None:
    record = privatize(TEXTS, protection="balanced", seed=1).record
    assert record.linkage is not None
    assert record.linkage.candidates == 1000
    assert record.linkage.at[0].found > 0.5


def test_an_operator_is_told_how_many_texts_are_unique(tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("the waiter was rude\nthe soup was good\nwe will come again\n")
    tried = inspect(file, FileRequest(), model="en").tried
    assert (tried.texts, tried.unique_structures) == (3, 1)  # the first two: a, kept, kept, b


def test_a_limit_refuses_what_is_found_more_often(project: Path) -> None:
    change_params(release={"max_linkage": 0.05})
    with pytest.raises(LexveilError, match=r"release.max_linkage allows 5.0%"):
        privatize(TEXTS, protection="balanced", model="en", project=project)


def test_a_limit_leaves_experiments_alone(project: Path) -> None:
    change_params(release={"max_linkage": 0.05})
    assert privatize(TEXTS, protection="balanced", model="en", project=project, seed=1).values
