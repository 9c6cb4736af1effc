"""What `lexveil collocations` finds and how it cuts a text, by hand and against all collocations at once."""

import io
import json
import os
import random
import shutil
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil import paths
from lexveil.artifacts.collocation_tables import load_collocations
from lexveil.cli import main
from lexveil.collocations.lookup import LIMIT, as_text, look_up
from lexveil.errors import MissingArtifact, RequestError
from lexveil.text.segment import SEGMENTATIONS, segment
from lexveil.text.tokenize import sentences

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


def write(table: dict[str, tuple[float, ...]], measures: tuple[str, ...] = ("count", "pmi_bits", "npmi")) -> None:
    """Both files as the stage writes them."""
    paths.COLLOCATIONS.mkdir(parents=True, exist_ok=True)
    for name, size in (("bigrams", 2), ("trigrams", 3)):
        rows = [(*words.split(), *values) for words, values in table.items() if len(words.split()) == size]
        types = [pa.string()] * size + [pa.int64()] + [pa.float64()] * (len(measures) - 1)
        schema = pa.schema(list(zip((*WORDS[:size], *measures), types, strict=True)))
        columns = [[row[at] for row in rows] for at in range(len(schema))]
        pq.write_table(pa.table(columns, schema=schema), paths.COLLOCATIONS / f"{name}.parquet")


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that has collocations and nothing else."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    (tmp_path / "dvc.yaml").touch()
    write(TABLE)
    return tmp_path


def found(**request: object) -> list[str]:
    return [row["words"] for row in look_up(**request)["collocations"]]


def test_a_text_is_cut_as_by_hand(small: Path) -> None:
    result = look_up(TEXT)
    # In order of appearance; "signal red" crosses a line break.
    assert [tuple(row.values()) for row in result["collocations"]] == [
        ("old harbor", 2, False, 7, 5.0, 0.5),
        ("harbor storm", 2, False, 6, 6.0, 0.75),
        ("storm signal", 2, False, 5, 5.0, 0.25),
        ("red wine", 2, False, 1200, 4.0, 0.125),
        ("red wine glass", 3, False, 3, 3.0, 0.0625),
        ("glass factory", 2, False, 4, 8.0, 0.5),
    ]
    assert result["measures"] == ["count", "pmi_bits", "npmi"]
    assert list(result["collocations"][0]) == ["words", "length", "from_base", *result["measures"]]
    one, two = result["sentences"]
    assert {name: (of["tokens"], of["total_pmi_bits"]) for name, of in one.items()} == {
        "word": (["old", "harbor", "storm", "signal"], 0),
        "gst": (["old harbor", "storm signal"], 10.0),
        "mst": (["old", "harbor storm", "signal"], 6.0),
        "mst_exact": (["old harbor", "storm signal"], 10.0),
    }
    assert {name: (of["tokens"], of["total_pmi_bits"]) for name, of in two.items()} == {
        "word": (["red", "wine", "glass", "factory"], 0),
        "gst": (["red wine glass", "factory"], 3.0),
        "mst": (["red wine", "glass factory"], 12.0),
        "mst_exact": (["red wine", "glass factory"], 12.0),
    }


def test_what_is_printed_for_a_text(small: Path) -> None:
    assert as_text(look_up("Red wine, red WINE glass!")) == [
        "count  pmi_bits   npmi  collocation",
        "1,200      4.00  0.125  red wine",
        "    3      3.00  0.062  red wine glass",
        "",
        "sentence 1",
        "  word           0.00 bits  [red] [wine] [,] [red] [wine] [glass] [!]",
        "  gst            7.00 bits  [red wine] [,] [red wine glass] [!]",
        "  mst            8.00 bits  [red wine] [,] [red wine] [glass] [!]",
        "  mst_exact      8.00 bits  [red wine] [,] [red wine] [glass] [!]",
    ]


def test_a_text_without_collocations_is_still_cut(small: Path) -> None:
    result = look_up("Wine")
    assert result["collocations"] == []
    assert [of["tokens"] for of in result["sentences"][0].values()] == [["wine"]] * len(SEGMENTATIONS)
    assert as_text(result)[:3] == ["no collocations", "", "sentence 1"]


def test_a_text_finds_what_all_collocations_loaded_would_find(small: Path) -> None:
    draw = random.Random(20261)
    words = [f"w{number}" for number in range(12)]
    table = {
        " ".join(draw.choices(words, k=draw.choice((2, 3)))): (draw.randint(2, 99), draw.randint(4, 40) / 4, 0.5)
        for _ in range(250)
    }
    write(table)
    lines = [draw.choices([*words, ",", "other"], k=draw.randint(1, 30)) for _ in range(40)]
    text = "\n".join(" ".join(line) for line in lines)
    assert sentences(text) == lines
    in_text = {" ".join(line[i : i + size]) for line in lines for size in (2, 3) for i in range(len(line) - size + 1)}
    result = look_up(text)
    assert {row["words"]: (row["count"], row["pmi_bits"]) for row in result["collocations"]} == {
        ngram: values[:2] for ngram, values in table.items() if ngram in in_text
    }
    collocations = load_collocations()
    for line, of_sentence in zip(lines, result["sentences"], strict=True):
        offsets = np.array([0, len(line)])
        scores = collocations.scores(collocations.ids(line), offsets)
        for name in SEGMENTATIONS:
            lengths = segment(name, *scores, offsets).tolist()
            tokens = [" ".join(line[i : i + length]) for i, length in enumerate(lengths) if length]
            assert of_sentence[name]["tokens"] == tokens
            total = sum(table[token][1] for token in tokens if " " in token)  # quarters: exact in any order
            assert of_sentence[name]["total_pmi_bits"] == total


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"top": 3}, ["signal red", "glass factory", "harbor storm"]),
        # 5.0 bits twice: the more frequent first.
        ({"top": 5}, ["signal red", "glass factory", "harbor storm", "old harbor", "storm signal"]),
        ({"top": 2, "by": "count"}, ["red wine", "signal red"]),
        ({"top": 1, "by": "npmi"}, ["harbor storm"]),
        ({"top": 9, "length": 3}, ["red wine glass"]),
        ({"top": 2, "length": 2, "min_count": 7}, ["signal red", "old harbor"]),
        ({"top": 9, "min_count": 1201}, []),
        ({"word": "red"}, ["signal red", "red wine", "red wine glass"]),
        ({"word": "GLASS"}, ["glass factory", "red wine glass"]),
        ({"word": "wine", "limit": 1}, ["red wine"]),
        ({"word": "wine", "length": 3}, ["red wine glass"]),
        ({"word": "red", "by": "count", "min_count": 4}, ["red wine", "signal red"]),
        ({"word": "absent"}, []),
    ],
)  # fmt: skip
def test_the_best_are_those_by_hand(small: Path, request_: dict[str, object], expected: list[str]) -> None:
    assert found(**request_) == expected


def test_a_word_is_looked_up_by_its_normal_form(small: Path) -> None:
    write({"don't know": (3, 4.0, 0.5)})
    assert look_up(word="Don’t")["word"] == "don't"
    assert found(word="Don’t") == ["don't know"]


def test_a_word_lists_no_more_than_the_limit(small: Path) -> None:
    write({f"red w{number}": (2, 3.0 + number, 0.5) for number in range(LIMIT + 5)})
    assert found(word="red") == [f"red w{number}" for number in range(LIMIT + 4, 4, -1)]
    assert len(found(word="red", limit=LIMIT + 2)) == LIMIT + 2


def test_what_is_printed_for_the_best(small: Path) -> None:
    assert as_text(look_up(top=2, by="count")) == [
        "count  pmi_bits   npmi  collocation",
        "1,200      4.00  0.125  red wine",
        "    9      9.00  0.500  signal red",
    ]


def test_a_collocation_cannot_steer_the_terminal(small: Path) -> None:
    write({"red http://a\x1b[2j": (2, 3.0, 0.5)})
    assert as_text(look_up(word="red"))[1].endswith("red http://a\\x1b[2j")


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({}, "exactly one"),
        ({"text": "a", "word": "b"}, "exactly one"),
        ({"top": 0}, "top 0"),
        ({"top": 1, "min_count": 0}, "min_count 0"),
        ({"top": 1, "length": 4}, "length 4"),
        ({"top": 1, "limit": 2}, "limit does not go with top"),
        ({"text": "a", "length": 2}, "length does not go with TEXT"),
        ({"text": " \n"}, "no words"),
        ({"text": "caf\udce9"}, "not UTF-8"),
        ({"word": "caf\udce9"}, "not UTF-8"),
        ({"word": "red wine"}, "2 words"),
        ({"word": ""}, "0 words"),
        ({"top": 1, "by": "llr"}, "there are count, pmi_bits, npmi "),
    ],
)
def test_what_makes_no_sense_is_refused(small: Path, request_: dict[str, object], says: str) -> None:
    with pytest.raises(RequestError, match=says) as refused:
        look_up(**request_)
    str(refused.value).encode()  # can be printed


@pytest.mark.parametrize("request_", [{"text": "a b"}, {"top": 1}, {"word": "a"}])
def test_missing_collocations_are_said(small: Path, request_: dict[str, object]) -> None:
    (paths.COLLOCATIONS / "trigrams.parquet").unlink()
    with pytest.raises(MissingArtifact, match=r"trigrams\.parquet is not there yet; `lexveil run` makes it"):
        look_up(**request_)


def test_measures_that_were_not_written_are_not_shown(small: Path) -> None:
    write({"red wine": (5, 4.0)}, ("count", "pmi_bits"))
    assert look_up(top=1)["collocations"] == [
        {"words": "red wine", "length": 2, "from_base": False, "count": 5, "pmi_bits": 4.0}
    ]


def test_no_collocation_at_all(small: Path) -> None:
    write({})
    assert as_text(look_up(top=5)) == ["no collocations"]
    assert look_up("red wine")["sentences"][0]["gst"]["tokens"] == ["red", "wine"]


def call(*arguments: str, stdin: bytes = b"") -> int:
    with mock.patch.dict(os.environ), mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin))):
        return main.main(("collocations", *arguments))


def test_the_command_prints_tables_and_json(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--top", "1", "--by", "count", "--length", "3") == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["    3      3.00  0.062  red wine glass"]
    assert call("--word", "Factory", "--limit", "5", "--min-count", "2", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "word": "factory",
        "by": "pmi_bits",
        "measures": ["count", "pmi_bits", "npmi"],
        "collocations": [
            {"words": "glass factory", "length": 2, "from_base": False, "count": 4, "pmi_bits": 8.0, "npmi": 0.5}
        ],
    }


def test_the_command_reads_standard_input(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("-", "--json", stdin="Café glass factory".encode()) == 0
    (sentence,) = json.loads(capsys.readouterr().out)["sentences"]
    assert sentence["mst"] == {"tokens": ["café", "glass factory"], "total_pmi_bits": 8.0}
    assert call("-", stdin=b"caf\xe9") == 2
    out, err = capsys.readouterr()
    assert out == "" and "not UTF-8 at byte 3" in err and err.count("\n") == 1


def test_collocations_of_the_base_are_found_and_named(small: Path) -> None:
    """They cut a text as well; a measure that the base does not bring is left open."""
    columns = {"first_word": ["wine"], "second_word": ["factory"], "count": [90], "pmi_bits": [12.0]}
    pq.write_table(pa.table(columns), paths.COLLOCATIONS / "base_bigrams.parquet")
    found = look_up("red wine factory")
    assert [(one["words"], one["from_base"]) for one in found["collocations"]] == [
        ("red wine", False),
        ("wine factory", True),
    ]
    assert found["sentences"][0]["mst"]["tokens"] == ["red", "wine factory"]
    assert [line.split() for line in as_text(look_up(word="wine", length=2))] == [
        ["count", "pmi_bits", "npmi", "from", "collocation"],
        ["90", "12.00", "–", "base", "wine", "factory"],
        ["1,200", "4.00", "0.125", "corpus", "red", "wine"],
    ]
