"""`lexveil tune`: which words it takes, which ε it tries, what it chooses, writes and refuses."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil.artifacts.embeddings import load_embedding
from lexveil.cli.main import main
from lexveil.config import load_params
from lexveil.errors import MissingArtifact, ParameterError, RequestError
from lexveil.evaluation.inference_error import GRID, Tradeoff, measure
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.registry import ON_LISTS
from lexveil.tuning.candidates import STEPS, Candidate, choose, families, of_largest_error, row_of_epsilons
from lexveil.tuning.output import COLUMNS, as_table
from lexveil.tuning.tune import TuningRequest
from lexveil.tuning.tune import tune as tune_request
from lexveil.tuning.word_list import known_words, read_words, words_of_project
from tests.shared_trees import stand_beside

FAST = ["--runs", "2", "--draws", "3"]


@pytest.fixture(autouse=True)
def root(_built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project folder with the artifacts of the built one."""
    stand_beside(_built, tmp_path, monkeypatch)
    with mock.patch.dict(os.environ):
        yield tmp_path


@pytest.fixture
def words(root: Path) -> Path:
    """120 words of the embedding with two labels, and one that it does not know."""
    tokens = [token for token in load_embedding("word").tokens if token.isalpha()][:120]
    file = root / "words.csv"
    rows = [f"{token},{'good' if place % 3 else 'bad'}" for place, token in enumerate(tokens)]
    file.write_text("\n".join(["word,label", *rows, "zzzunknown,good"]) + "\n")
    return file


def tune(*arguments: Any, **fields: Any) -> dict[str, Any]:
    return tune_request(TuningRequest(*arguments, **fields))


def test_words_by_hand() -> None:
    """Rows 1, 2, 4; dull stands twice, Fine (fine) in both labels, and rare is not known."""
    entries = [("Dull", "bad"), ("good", "fair"), ("fine", "good"), ("dull", "bad"), ("Fine", "bad"), ("rare", "bad")]
    got = known_words([*entries, ("nice", "good")], ["the", "nice", "dull", "fine", "good"])
    assert (got.rows.tolist(), got.labels.tolist(), got.classes) == ([1, 2, 4], [2, 0, 1], ["bad", "fair", "good"])
    assert (got.n_read, got.n_repeated, got.n_ambiguous, got.n_unknown) == (7, 1, 1, 1)
    assert got.summary()["labels"] == {"bad": 1, "fair": 1, "good": 1}


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("column", ["word", "text"])
def test_a_list_can_have_any_form(root: Path, form: str, column: str) -> None:
    """`null` and `nan` are words."""
    rows = [("null", 1), ("nan", 0), ("good", 1)]
    file = root / f"list.{form}"
    if form == "parquet":
        pq.write_table(
            pa.table({"split": ["all"] * 3, column: [w for w, _ in rows], "label": [n for _, n in rows]}), file
        )
    elif form == "jsonl":
        file.write_text("".join(json.dumps({column: word, "label": label}) + "\n" for word, label in rows))
    else:
        mark = "," if form == "csv" else "\t"
        file.write_text("".join(f"{a}{mark}{b}\n" for a, b in [(column, "label"), *rows]))
    assert read_words(file) == [("null", "1"), ("nan", "0"), ("good", "1")]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("absent.csv", None, "no such file"),
        (".", None, "is a folder"),
        ("a.txt", "good\n", "no labels"),
        ("a.doc", "good\n", "the ending of the name"),
        ("a.csv", "name,label\ngood,1\n", "columns label and text"),
        ("a.csv", "word,class\ngood,1\n", "columns label and text"),
        ("a.csv", "word,label\n", "empty"),
        ("a.csv", "word,label\nsecretly,\n", "line 2: the label is missing"),
        ("a.csv", "word,label\ngood,1\n,1\n", "line 3: the word is missing"),
    ],
)
def test_a_list_that_is_none(root: Path, name: str, content: str | None, says: str) -> None:
    if content is not None:
        (root / name).write_text(content)
    with pytest.raises(RequestError, match=says) as refused:
        read_words(root / name)
    assert "secretly" not in str(refused.value)


def test_words_of_the_project_are_found_if_there_is_one_set(root: Path) -> None:
    def write(name: str, texts: list[str], labels: list[str | None]) -> None:
        folder = root / "data" / "documents"
        folder.mkdir(parents=True, exist_ok=True)
        ids = [f"{name}-{place}" for place in range(len(texts))]
        columns = {"doc_id": ids, "split": ["all"] * len(texts), "text": texts, "label": pa.array(labels, pa.string())}
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")

    write("letters", ["a whole letter", "word"], ["1", "0"])
    with pytest.raises(RequestError, match="none is"):
        words_of_project()
    write("lexicon", ["good", "bad"], ["1", "0"])
    file = Path("data/documents/lexicon.parquet")
    assert words_of_project() == (file, [("good", "1"), ("bad", "0")])
    write("unlabelled", ["good", "bad"], ["1", None])
    assert words_of_project()[0] == file
    write("other", ["good"], ["1"])
    with pytest.raises(RequestError, match="several are: lexicon, other"):
        words_of_project()


class Sudden:
    """Of two words with two labels: the other comes out with probability 1/2, from an ε on 1/100."""

    name = "sudden"
    size = 2

    def __init__(self, at: float, refused_below: float = 0.0, floor: float = 0.01) -> None:
        self.at, self.refused_below, self.floor = at, refused_below, floor

    def noise(self, epsilon: Any, rng: Any) -> Any:
        if (epsilon < self.refused_below).any():
            raise ParameterError("too small")
        return np.zeros((len(epsilon), 1))

    def log_pmf(self, ids: Any, epsilon: Any) -> Any:
        other = self.floor if epsilon[0] >= self.at else 0.5
        law = np.array([[1 - other, other], [other, 1 - other]])
        return np.log(law[ids])


@pytest.mark.parametrize(("at", "found"), [(6.0, 8.0), (8.0, 8.0), (1.0, 1.0), (0.1, 0.125), (1e5, 131072.0)])
def test_a_row_goes_one_step_beyond_the_first_that_keeps_the_loss(at: float, found: float) -> None:
    row = row_of_epsilons(Sudden(at), np.array([0, 1]), 0.05, stream(1, "row"))  # type: ignore[arg-type]
    assert row == [found / 4, found / 2, found, found * 2] and len(row) == STEPS


def test_a_row_leaves_out_what_is_refused() -> None:
    assert row_of_epsilons(Sudden(50.0, 20.0), np.array([0, 1]), 0.05, stream(1, "row")) == [32.0, 64.0, 128.0]  # type: ignore[arg-type]


@pytest.mark.parametrize("mechanism", [Sudden(1.0, floor=0.3), Sudden(0.0)])
def test_no_row(mechanism: Any) -> None:
    with pytest.raises(RequestError, match="say which --epsilons"):
        row_of_epsilons(mechanism, np.array([0, 1]), 0.05, stream(1, "row"))


def test_candidates() -> None:
    """t = 0 of vickrey is madlib and stands for it, but not where the input is left out."""
    vectors = np.random.default_rng(1).standard_normal((9, 3)).astype(np.float32)
    params = load_params().mechanisms
    made = families(["madlib", "vickrey", "mahalanobis"], [0.5, 0.25], vectors, params)
    assert [(one.mechanism, one.t) for one in made["vickrey"]] == [("madlib", 0.0), ("vickrey", 0.25), ("vickrey", 0.5)]
    assert [one.label for one in made["vickrey"]] == ["madlib", "vickrey t = 0.25", "vickrey t = 0.5"]
    assert list(made) == ["vickrey", "mahalanobis"] and [one.t for one in made["mahalanobis"]] == [None]
    assert len({one.kernel.vectors.ctypes.data for one in made["vickrey"]}) == 1  # type: ignore[attr-defined]  # they share noise
    without = params.model_copy(update={"vickrey": params.vickrey.model_copy(update={"exclude_input": True})})
    made = families(["madlib", "vickrey"], [0.5], vectors, without)
    assert [(one.mechanism, one.t) for one in made["vickrey"]] == [("vickrey", 0.0), ("vickrey", 0.5)]
    assert [(one.mechanism, one.t) for one in made["madlib"]] == [("madlib", 0.0)]
    assert all(one.kernel.no_guarantee for one in made["vickrey"])


def test_choice_by_hand() -> None:
    """At ε = 1 the loss of t = 0 is too large; at 2, t = 1 costs too much, and t = 0.5 has more error than t = 0."""
    at = {(0.0, 1.0): (0.9, 0.3), (0.5, 1.0): (0.95, 0.1), (1.0, 1.0): (0.99, 0.1),
          (0.0, 2.0): (0.5, 0.1), (0.5, 2.0): (0.7, 0.2), (1.0, 2.0): (0.8, 0.21)}  # fmt: skip
    one_of = {t: Candidate("vickrey", t, Sudden(1.0)) for t in (0.0, 0.5, 1.0)}  # type: ignore[arg-type]
    rows = [(one_of[t], Tradeoff(epsilon, *figures, 0, 0, 1)) for (t, epsilon), figures in at.items()]
    chosen, why = choose(rows, 0.2)
    assert chosen is not None and why is None
    assert (chosen[0].t, chosen[1].epsilon, chosen[1].inference_error) == (0.5, 2.0, 0.7)
    assert of_largest_error(rows, 0.2) == rows[2]  # more error at the smaller ε
    assert of_largest_error(rows, 0.05) is None
    chosen, why = choose(rows, 0.05)
    assert chosen is None and why is not None and "the smallest loss was 0.1" in why


def test_the_frontier_is_what_each_mechanism_measures(words: Path) -> None:
    """From the same streams; every t and ε has a row, and the chosen one is among them."""
    made = tune(max_loss=0.6, words=words, epsilons=[2.0, 30.0], t=[0.5], n_runs=2, n_draws=3)
    space = load_embedding("word")
    listed = known_words(read_words(words), space.tokens)
    vectors = np.ascontiguousarray(space.vectors[listed.rows])
    kernel = families(["vickrey"], [0.5], vectors, load_params().mechanisms)["vickrey"][1].kernel
    expected = measure(kernel, 30.0, listed.labels, stream(20261, "tune", "vickrey", "30.0"), n_draws=3, n_runs=2)
    assert [(row["mechanism"], row["t"], row["epsilon"]) for row in made["frontier"]] == [
        ("madlib", 0.0, 2.0), ("vickrey", 0.5, 2.0), ("madlib", 0.0, 30.0), ("vickrey", 0.5, 30.0)
    ]  # fmt: skip
    row = made["frontier"][3]
    assert (row["inference_error"], row["utility_loss"]) == (expected.inference_error, expected.utility_loss)
    assert made["words"]["used"] == 120 and made["words"]["unknown"] == 1
    assert made["words"]["file"] == "words.csv" and str(words.parent) not in json.dumps(made)
    assert made["words"]["sha256"] == hashlib.sha256(words.read_bytes()).hexdigest()
    best = made["of_largest_error"]["vickrey"]
    fitting = [row for row in made["frontier"] if row["utility_loss"] <= 0.6]
    assert best == max(fitting, key=lambda row: row["inference_error"])
    assert made == tune(max_loss=0.6, words=words, epsilons=[2.0, 30.0], t=[0.5], n_runs=2, n_draws=3)
    assert made != tune(max_loss=0.6, words=words, epsilons=[2.0, 30.0], t=[0.5], n_runs=2, n_draws=3, seed=1)


def test_the_command_writes_what_it_prints(words: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = ["tune", "--max-loss", "0.2", "--words", "words.csv", *FAST, "-o", "out"]
    assert main([*request, "--json"]) == 0
    shown = capsys.readouterr()
    made = json.loads(shown.out)  # progress is not in it
    assert "runs" in shown.err
    assert made == json.loads((root / "out" / "tuning.json").read_text(encoding="utf-8"))
    chosen = made["chosen"]["vickrey"]
    assert chosen["utility_loss"] <= 0.2 and chosen["none"] is None
    at_epsilon = [row for row in made["frontier"] if row["epsilon"] == chosen["epsilon"]]
    assert [row["t"] for row in at_epsilon] == [0.0, *GRID]
    fitting = [row for row in at_epsilon if row["utility_loss"] <= 0.2]
    assert chosen["inference_error"] == max(row["inference_error"] for row in fitting)
    with (root / "out" / "frontier.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(made["frontier"]) == 21 * len({row["epsilon"] for row in made["frontier"]})
    assert list(rows[0]) == list(COLUMNS)
    assert [float(row["utility_loss"]) for row in rows] == [row["utility_loss"] for row in made["frontier"]]
    assert {path.name for path in (root / "out").iterdir()} == {
        "tuning.json", "tuning.html", "frontier.csv", "frontier.svg", "epsilon.svg"
    }  # fmt: skip
    assert main(request) == 0  # again, into the same folder
    text = capsys.readouterr().out
    assert f"vickrey: ε = {chosen['epsilon']:g}, t = {chosen['t']:g}, for a utility loss of at most 0.2" in text
    assert "120 of 121 words (40 of label bad, 80 of label good); left out: 1 that" in text
    assert "ε is in 1 / embedding distance." in text and "no privacy of any text is claimed" in text


def test_figures_can_be_drawn_by_any_program(words: Path, root: Path) -> None:
    tune(compare=["madlib", "vickrey", "mahalanobis"], words=words, t=[0.5], epsilons=[2.0, 9.0], n_runs=2, n_draws=2,
         max_loss=0.9, out=root / "out")  # fmt: skip
    for name, label in (("frontier", "utility loss (probability of another label)"), ("epsilon", "1 / distance")):
        text = (root / "out" / f"{name}.svg").read_text(encoding="utf-8")
        tree = ElementTree.fromstring(text.encode())
        assert tree.tag == "{http://www.w3.org/2000/svg}svg" and "var(" not in text
        written = " ".join("".join(one.itertext()) for one in tree.iter())
        assert label in written and "inference error (probability)" in written
        drawn = [one.text for one in tree.iter("{http://www.w3.org/2000/svg}text")]
        assert drawn[-3:] == ["madlib", "vickrey t = 0.5", "mahalanobis"]  # the legend
        # Without colours too the lines differ.
        dashes = re.findall(r"stroke-dasharray: ([\d. ,]+)", text)
        assert len(set(dashes)) >= 2
    page = (root / "out" / "tuning.html").read_text(encoding="utf-8")
    assert page.count("<svg ") == 2 and page.count("<tr>") == 1 + 6
    assert "http" not in page  # it needs nothing beside it


def test_several_mechanisms_without_a_limit(words: Path) -> None:
    made = tune(compare=["madlib", "tem"], words=words, n_runs=1, n_draws=2)
    assert made["chosen"] == {}
    assert {row["mechanism"] for row in made["frontier"]} == {"madlib", "tem"}
    assert [row["n_runs"] for row in made["frontier"]] == [1] * STEPS + [0] * STEPS
    lines = as_table(made)
    assert any(line.startswith("One run of 2 draws") for line in lines) and "no guarantee" not in " ".join(lines)
    assert any("(exact)" in line for line in lines) and made["frontier"][0]["utility_loss_sd"] is None


def test_a_mechanism_that_refuses_small_epsilons_and_one_that_remaps(words: Path, root: Path) -> None:
    """Truncated Gumbel gets the ε of its row that it takes; with rank_remap no noise is shared, and t = 0 is madlib."""
    made = tune("truncated_gumbel", max_loss=0.3, words=words, n_runs=1, n_draws=2)
    assert "truncated_gumbel has no guarantee" in as_table(made)[-1]
    assert 1 <= len(made["frontier"]) <= STEPS and made["chosen"]["truncated_gumbel"]["none"] is None
    how: dict[str, Any] = {"words": words, "epsilons": [9.0], "t": [0.5], "n_runs": 1, "n_draws": 5}
    plain = tune(compare=["vickrey"], **how)
    params = (root / "params.yaml").read_text()
    (root / "params.yaml").write_text(params.replace("enabled: false", "enabled: true"))
    made = tune(compare=["vickrey"], **how)
    assert [row["mechanism"] for row in made["frontier"]] == ["madlib", "vickrey"]
    for before, after in zip(plain["frontier"], made["frontier"], strict=True):
        assert after["utility_loss"] != before["utility_loss"]


@pytest.mark.parametrize("name", [*ON_LISTS, "mahalanobis"])
def test_mechanisms_without_t(words: Path, name: str) -> None:
    made = tune(name, max_loss=0.4, words=words, epsilons=[0.05, 40.0], n_runs=1, n_draws=2)
    assert [row["t"] for row in made["frontier"]] == [None, None] and made["chosen"][name]["epsilon"] == 40.0


def test_nothing_keeps_the_loss(words: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was measured is written all the same."""
    assert main(["tune", "--max-loss", "0.01", "--epsilons", "1", "--words", "words.csv", *FAST, "-o", "out"]) == 1
    assert (
        "vickrey: nothing chosen; no epsilon from 1 to 1 keeps the utility loss below 0.01" in capsys.readouterr().out
    )
    assert (root / "out" / "frontier.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--words", "words.csv"], "--max-loss"),
        (["--max-loss", "0", "--words", "words.csv"], "between 0 and 1"),
        (["--max-loss", "2", "--words", "words.csv"], "between 0 and 1"),
        (["--max-loss", "0.1", "--words", "words.csv", "--mechanism", "laplace"], "no such mechanism"),
        (["--compare", "madlib,laplace", "--words", "words.csv"], "no such mechanism"),
        (["--compare", "madlib", "--mechanism", "tem", "--words", "words.csv"], "not allowed with"),
        (["--max-loss", "0.1", "--words", "words.csv", "--t", "2"], "between 0 and 1"),
        (["--max-loss", "0.1", "--words", "words.csv", "--t", "0.5", "--mechanism", "madlib"], "none has a t"),
        (["--max-loss", "0.1", "--words", "words.csv", "--epsilons", "1,-2"], "greater than 0"),
        (["--max-loss", "0.1", "--words", "words.csv", "--epsilons", "1,two"], "not a number"),
        (["--max-loss", "0.1", "--words", "words.csv", "--draws", "1"], "at least 2"),
        (["--max-loss", "0.1", "--words", "words.csv", "--runs", "0"], "--runs"),
        (["--max-loss", "0.1", "--words", "words.csv", "-o", "no/where"], "no such folder"),
        (["--max-loss", "0.1", "--words", "words.csv", "--space-of", "glove"], "lexveil embeddings list"),
        (["--max-loss", "0.1", "--words", "words.csv", "--space-of", "../x"], "lexveil embeddings list"),
        (["--max-loss", "0.1", "--words", "absent.csv"], "no such file"),
        (["--max-loss", "0.1"], "data/documents"),
        (["--max-loss", "0.1", "--words", "one.csv"], "at least two labels"),
    ],
)
def test_wrong_requests(
    words: Path, root: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    (root / "one.csv").write_text("\n".join(line.replace("bad", "good") for line in words.read_text().splitlines()))
    try:
        code = main(["tune", *arguments])
    except SystemExit as end:
        code = int(end.code or 0)
    shown = capsys.readouterr()
    assert code == 2 and shown.out == "" and says in shown.err and shown.err.count("\n") == 1
    assert not list(root.glob("*/frontier.csv"))


def test_the_embedding_can_be_one_brought_in(words: Path, root: Path) -> None:
    shutil.copytree(root / "artifacts" / "embeddings" / "word", root / "data" / "embeddings" / "brought")
    how: dict[str, Any] = {"max_loss": 0.9, "words": words, "epsilons": [5.0], "t": [0.5], "n_runs": 1, "n_draws": 2}
    made, own = tune(space_of="brought", **how), tune(**how)
    assert made["frontier"] == own["frontier"]
    assert made["space"] == own["space"] | {"name": "brought", "folder": "data/embeddings/brought"}
    assert tune(space_of=f"brought@{made['space']['hash']}", **how) == made
    with pytest.raises(RequestError, match=f"brought@{made['space']['hash']}"):
        tune(space_of="brought@000000000000", **how)


def test_no_embedding(words: Path, root: Path) -> None:
    shutil.rmtree(root / "artifacts")
    with pytest.raises(MissingArtifact, match="lexveil run"):
        tune(max_loss=0.1, words=words)
