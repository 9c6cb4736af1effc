"""`lexveil collocations`: its look-ups and its segmentation of a text, by hand and against all
collocations at once.
"""

import io
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil import MissingArtifactError
from lexveil.base import paths
from lexveil.lab.collocations.lookup import LIMIT, as_text, look_up

ROOT = Path(__file__).parents[2]
WORDS = ("first_word", "second_word", "third_word")

# words: count, PMI, NPMI
TABLE = {
    "old harbor": (7, 5.0, 0.5),
    "harbor storm": (6, 6.0, 0.75),
    "storm signal": (5, 5.0, 0.25),
    "signal red": (9, 9.0, 0.5),
    "red wine": (1200, 4.0, 0.125),
    "glass factory": (4, 8.0, 0.5),
    "red wine glass": (3, 3.0, 0.0625),
}
TEXT = "Old harbor storm signal\nRed wine glass factory"


def write(table, measures=("count", "pmi_bits", "npmi")):
    """Write both collocation files in the form of the stage."""
    paths.COLLOCATIONS.mkdir(parents=True, exist_ok=True)
    for name, size in (("bigrams", 2), ("trigrams", 3)):
        rows = [
            (*words.split(), *values)
            for words, values in table.items()
            if len(words.split()) == size
        ]
        types = [pa.string()] * size + [pa.int64()] + [pa.float64()] * (len(measures) - 1)
        schema = pa.schema(list(zip((*WORDS[:size], *measures), types, strict=True)))
        columns = [[row[at] for row in rows] for at in range(len(schema))]
        pq.write_table(pa.table(columns, schema=schema), paths.COLLOCATIONS / f"{name}.parquet")


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A project that has collocations and nothing else."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    (tmp_path / "dvc.yaml").touch()
    write(TABLE)
    return tmp_path


def found(**request):
    return [row["words"] for row in look_up(**request)["collocations"]]


def test_a_text_is_cut_as_by_hand(small):
    result = look_up(TEXT)
    # In order of appearance; "signal red" crosses a line break.
    words = [
        "old harbor",
        "harbor storm",
        "storm signal",
        "red wine",
        "red wine glass",
        "glass factory",
    ]
    assert [tuple(row.values()) for row in result["collocations"]] == [
        (one, len(one.split()), False, *TABLE[one]) for one in words
    ]
    assert result["measures"] == ["count", "pmi_bits", "npmi"]
    cuts = [
        {name: (of["tokens"], of["total_pmi_bits"]) for name, of in one.items()}
        for one in result["sentences"]
    ]
    pairs = {
        "gst": (["old harbor", "storm signal"], 10.0),
        "mst": (["old", "harbor storm", "signal"], 6.0),
    }
    assert cuts[0] == pairs | {
        "word": (["old", "harbor", "storm", "signal"], 0),
        "mst_exact": pairs["gst"],
    }
    pairs = {
        "gst": (["red wine glass", "factory"], 3.0),
        "mst": (["red wine", "glass factory"], 12.0),
    }
    assert cuts[1] == pairs | {
        "word": (["red", "wine", "glass", "factory"], 0),
        "mst_exact": pairs["mst"],
    }


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        # 5.0 bits twice: the more frequent first.
        ({"top": 5}, ["signal red", "glass factory", "harbor storm", "old harbor", "storm signal"]),
        ({"top": 2, "by": "count"}, ["red wine", "signal red"]),
        ({"top": 1, "by": "npmi"}, ["harbor storm"]),
        ({"top": 9, "length": 3}, ["red wine glass"]),
        ({"top": 2, "length": 2, "min_count": 7}, ["signal red", "old harbor"]),
        ({"word": "red"}, ["signal red", "red wine", "red wine glass"]),
        ({"word": "GLASS"}, ["glass factory", "red wine glass"]),
        ({"word": "wine", "limit": 1}, ["red wine"]),
        ({"word": "red", "by": "count", "min_count": 4}, ["red wine", "signal red"]),
        ({"word": "absent"}, []),
    ],
)
def test_the_best_are_those_by_hand(small, request_, expected):
    assert found(**request_) == expected


def test_words_limits_and_what_is_printed(small):
    """Control characters from a crawled text must not reach the terminal."""
    table = {f"don't w{number}": (2, 3.0 + number, 0.5) for number in range(LIMIT + 5)}
    write(table | {"know don't": (1200, 90.0, 0.0625), "red http://a\x1b[2j": (2, 3.0, 0.5)})
    best = [f"don't w{number}" for number in range(LIMIT + 4, -1, -1)]
    assert look_up(word="Don’t")["word"] == "don't"
    assert found(word="Don’t") == ["know don't", *best[: LIMIT - 1]]
    assert len(found(word="don't", limit=LIMIT + 2)) == LIMIT + 2
    # alike in both: by their words
    assert found(top=LIMIT + 9)[-2:] == ["don't w0", "red http://a\x1b[2j"]
    assert as_text(look_up(word="red"))[1].endswith("red http://a\\x1b[2j")


def test_hardly_anything(small):
    # measures that were not written are not shown
    write({"red wine": (5, 4.0)}, ("count", "pmi_bits"))
    (row,) = look_up(top=1)["collocations"]
    assert row == {
        "words": "red wine",
        "length": 2,
        "from_base": False,
        "count": 5,
        "pmi_bits": 4.0,
    }
    write({})
    assert as_text(look_up(top=5)) == ["no collocations"]
    assert look_up("red wine")["sentences"][0]["gst"]["tokens"] == ["red", "wine"]
    (paths.COLLOCATIONS / "trigrams.parquet").unlink()
    for request in ({"text": "a b"}, {"top": 1}, {"word": "a"}):
        with pytest.raises(
            MissingArtifactError,
            match=r"trigrams\.parquet does not exist yet; `lexveil run` makes it",
        ):
            look_up(**request)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "choices"),
        (["a", "--word", "b"], "TEXT"),
        (["--top", "0"], "--top"),
        (["--top", "1", "--length", "4"], "--length"),
        (["--top", "1", "--limit", "2"], "--limit does not go with --top"),
        ([" \n"], "no words"),
        (["caf\udce9"], "not UTF-8"),
        (["--word", "red wine"], "2 words"),
        (["--top", "1", "--by", "llr"], "it has count, pmi_bits, npmi "),
        (["-"], "not UTF-8 at byte 3"),
    ],
)
def test_what_makes_no_sense_is_refused(small, arguments, says, cli, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9")))
    assert says in cli("collocations", *arguments, code=2).err


def test_collocations_of_the_base_are_found_and_named(small):
    """Collocations of the base model segment a text as well; measures that the base model lacks are
    left empty.
    """
    columns = {
        "first_word": ["wine"],
        "second_word": ["factory"],
        "count": [90],
        "pmi_bits": [12.0],
    }
    pq.write_table(pa.table(columns), paths.COLLOCATIONS / "base_bigrams.parquet")
    found = look_up("red wine factory")
    of_base = {one["words"]: one["from_base"] for one in found["collocations"]}
    assert of_base == {"red wine": False, "wine factory": True}
    assert found["sentences"][0]["mst"]["tokens"] == ["red", "wine factory"]
    assert as_text(look_up(word="wine", length=2))[1].split() == [
        "90",
        "12.00",
        "–",
        "base",
        "wine",
        "factory",
    ]
