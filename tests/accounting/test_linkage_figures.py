"""Linkage as records say it, by figures measured on public texts."""

import pytest

from lexveil.core.accounting.linkage import NOT_MEASURED, LinkageFigures
from lexveil.core.protection import MeasuredLinkage


def figure(n_words, structure, naive, likelihood):
    return MeasuredLinkage("tem", "S3", "strong", n_words, structure, naive, likelihood)


def test_the_strongest_reader_counts_at_a_level():
    figures = [figure(100, 0.9, 0.3, 0.5), figure(10, 0.2, 0.25, 0.1)]
    linkage = LinkageFigures.of(figures, at_level=True)
    assert [(at.words, at.found) for at in linkage.at] == [(10, 0.25), (100, 0.9)]
    assert linkage.largest == 0.9
    assert linkage.sentence.endswith(
        "among 1,000 of its length finds it in 25 (texts of 10 words) to 90 (100 words) of 100 "
        "cases"
    )


def test_one_number_stands_where_all_lengths_have_it():
    figures = [figure(10, 0.2, 0.1, 0.999), figure(40, 1.0, 0.1, 1.0)]
    linkage = LinkageFigures.of(figures, at_level=True)
    assert linkage.sentence.endswith("finds it in 100 of 100 cases")


def test_without_a_level_the_structure_alone_counts():
    linkage = LinkageFigures.of([figure(20, 0.4, 0.6, 0.9)], at_level=False)
    assert linkage.largest == 0.4
    assert "by its structure alone, whatever epsilon is, in 40 of 100 cases" in linkage.sentence


@pytest.mark.parametrize("at_level", [True, False])
def test_what_was_not_measured_is_said_to_be(at_level):
    linkage = LinkageFigures.of([], at_level=at_level)
    assert linkage.largest is None
    assert linkage.sentence == NOT_MEASURED
