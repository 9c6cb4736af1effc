"""Coverage by hand: which words are counted, in which text, and when there are too few that are
known."""

import json

import numpy as np
import pyarrow as pa
import pytest

from lexveil.core.text.collocation_index import Collocations
from lexveil.core.text.encode import Lexicon
from lexveil.io.artifacts import lexicons
from lexveil.io.config import parse_params
from tasks import check_vocab
from tests.checks.conftest import SECRET

NAMES = ("dataset", "doc_id", "split", "text", "text_b", "label", "attribute")


def documents(*rows):
    full = [
        (dataset, doc_id, "all", text, text_b, None, None) for dataset, doc_id, text, text_b in rows
    ]
    columns = zip(*full, strict=True) if full else [[] for _ in NAMES]
    return pa.table(
        {
            name: pa.array(list(column), pa.string())
            for name, column in zip(NAMES, columns, strict=True)
        }
    )


DOCUMENTS = (
    ("pairs", "a", f"A fine {SECRET}, fine!", "fine day"),  # a fine ZANZIBAR fine / fine DAY
    ("pairs", "b", "...", None),  # no word at all
    ("singles", "a", "A fine day.", ""),  # a fine day
)


def words_only(segmentation):
    """Return a lexicon with the same words for every segmentation; ``mst`` has one more."""
    return Lexicon.build(
        "word", ["fine", "a", ",", *(["day"] if segmentation == "mst" else [])], None
    )


@pytest.fixture
def check(docs, out, machine):
    def _check(rows=DOCUMENTS, lexicon_of=words_only, min_coverage=0.5):
        grid = {"segmentations": ["word", "gst", "mst"]}
        params = parse_params({"seed": 1, "checks": {"min_coverage": min_coverage}, "grid": grid})
        return check_vocab.run(params, machine, documents(*rows), lexicon_of, out, docs)

    return _check


def test_coverage_by_hand(check, out):
    made = check()
    four = {"n_texts": 3, "n_words": 6, "n_covered": 4, "n_oov": 2, "coverage": 4 / 6}
    assert made["pairs"] == {
        "gst": four,
        "word": four,
        "mst": four | {"n_covered": 5, "n_oov": 1, "coverage": 5 / 6},
    }
    assert {name: one["n_covered"] for name, one in made["singles"].items()} == {
        "gst": 2,
        "mst": 3,
        "word": 2,
    }
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["summary"] == {"coverage": made}
    assert SECRET not in out.read_text(encoding="utf-8")


def test_words_inside_a_collocation_count_one_by_one():
    pairs = Collocations.build([["new"], ["york"]], np.array([4.0]), [[], [], []], np.zeros(0))
    lexicon = Lexicon.build("gst", ["new_york", "is", "big"], pairs)
    counts = lexicons.count_words(["New York is big", "new is york", ""], lexicon)
    # "new" and "york" apart have no vector here
    expected = {"n_words": [4, 3, 0], "n_covered": [4, 1, 0], "n_oov": [0, 2, 0]}
    assert {name: n.tolist() for name, n in counts.items()} == expected


def test_what_stops_and_what_does_not(check, fault):
    assert fault(lambda: check(min_coverage=4 / 6)) is None  # the limit itself is enough
    assert fault(lambda: check(min_coverage=0.7)) == ("coverage", 4, pytest.approx(2 / 3))
    assert fault(lambda: check(rows=(("marks", "a", "?!", None),), min_coverage=0.0)) == (
        "n_words",
        3,
        0,
    )
    assert fault(lambda: check(rows=())) == ("rows", 1, 0)
