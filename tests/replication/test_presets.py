"""Presets: their parameters, the texts they draw, and what they refuse before anything begins."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from examples.replication import bring
from examples.replication.__main__ import main
from examples.replication.preset import (
    PAPERS,
    ReplicationRequest,
    copy_runs,
    draw_texts,
    grids_of,
    load_preset,
    merged,
    parameters,
    read_request,
)
from lexveil.base.errors import RequestError
from lexveil.io.config import parse_params

PARAMS = Path(__file__).parents[2] / "params.yaml"


def request(paper, **changes):
    given = {
        "paper": paper,
        "sets": [],
        "corpus": [],
        "texts": 10,
        "epsilons": [],
        "mechanisms": [],
        "neural": None,
        "vectors": None,
        "full": False,
    }
    return ReplicationRequest(**(given | changes))


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("full", [False, True])
def test_parameters_of_presets_are_those_of_a_project(paper, full):
    own = merged(
        yaml.safe_load(PARAMS.read_text(encoding="utf-8")),
        parameters(load_preset(paper), request(paper, full=full, neural="/models")),
    )
    params = parse_params(own, "params.yaml")
    assert (params.embeddings.base, params.embeddings.scale) == ("none", "none")
    assert params.embeddings.dimensions == 300 and params.policy.oov == "keep"
    assert params.grid.budget == ("document" if paper == "clmldp" else "token")
    assert params.evaluation.encoder == "minilm" and params.evaluation.language_model == "gpt2"


def test_epsilons_and_mechanisms_of_the_command_line_take_the_place_of_those_of_the_preset():
    own = parameters(load_preset("tem"), request("tem", epsilons=[3.0], mechanisms=["tem"]))
    assert (own["grid"]["epsilons"], own["grid"]["mechanisms"]) == ([3.0], ["tem"])
    assert own["grid"]["strategies"] == ["S1"]


def test_what_few_mechanisms_are_run_at_comes_before_the_main_grid():
    preset = load_preset("clmldp")
    first, main_grid = grids_of(preset, request("clmldp"))
    assert (first["mechanisms"], first["epsilons"]) == (["madlib"], [0.5, 5.0, 15.0, 50.0])
    assert first["strategies"] == main_grid["strategies"]
    assert len(grids_of(preset, request("clmldp", full=True))) == 1


def test_runs_that_are_set_aside_come_back_and_replace_nothing(tmp_path):
    """Each file comes back unchanged; an existing file stays, and other artifacts are not
    copied.
    """
    files = {"evaluation/madlib/S1/0.5.json": "further", "private/none/x": "old", "plans/x": "p"}
    for name, text in files.items():
        file = tmp_path / "aside" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    there = tmp_path / "artifacts/private/none/x"
    there.parent.mkdir(parents=True)
    there.write_text("new", encoding="utf-8")
    copy_runs(tmp_path / "aside", tmp_path / "artifacts")
    copied = {
        file.relative_to(tmp_path / "artifacts").as_posix(): file.read_text(encoding="utf-8")
        for file in (tmp_path / "artifacts").rglob("*")
        if file.is_file()
    }
    assert copied == {"evaluation/madlib/S1/0.5.json": "further", "private/none/x": "new"}


def test_texts_are_drawn_from_the_split_that_is_learnt_and_the_one_that_is_scored():
    splits = ["train"] * 40 + ["test"] * 40 + ["dev"] * 40
    documents = pa.table({"split": splits, "number": list(range(120))})
    drawn = draw_texts(documents, 20, None)
    assert drawn.column("split").to_pylist() == ["train"] * 15 + ["dev"] * 5
    assert drawn.equals(draw_texts(documents, 20, None))
    assert len(draw_texts(documents, None, None)) == 80


def test_only_frequent_authors_are_kept():
    authors = ["a", "b", "a", "b", "c", "a"]
    documents = pa.table({"split": ["train"] * 3 + ["dev"] * 3, "attribute": authors})
    assert set(draw_texts(documents, None, 2).column("attribute").to_pylist()) == {"a", "b"}


def test_a_set_of_which_nothing_is_scored_is_kept_whole():
    documents = pa.table({"split": ["all"] * 5})
    assert len(draw_texts(documents, 2, None)) == 5


def with_sets(tmp_path, *names):
    folder = tmp_path / "sets"
    folder.mkdir()
    for name in names:
        pq.write_table(pa.table({"split": ["train"], "text": ["a"]}), folder / f"{name}.parquet")
    return folder


@pytest.mark.parametrize(
    ("paper", "there", "message"),
    [
        ("clmldp", ["cola", "mrpc", "sst2"], "bring rte RTE --into"),
        ("tem", [], "bring imdb FILE --into"),
        ("vickrey", [], "bring opinion_lexicon FILE --into"),
        ("diffractor", ["cola", "mrpc", "rte"], "bring sst2 SST-2 --into"),
        ("tem", ["imdb"], "no corpus was named"),
    ],
)
def test_a_preset_without_its_data_says_how_to_bring_it_and_begins_nothing(
    tmp_path,
    paper,
    there,
    message,
    capsys,
):
    project = tmp_path / "project"
    folder = with_sets(tmp_path, *there)
    with pytest.raises(SystemExit) as ended:
        main([str(project), "--paper", paper, "--sets", str(folder)])
    assert ended.value.code == 2 and not project.exists()
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--paper", "tem"], "--paper and --sets go together"),
        (["--paper", "tem", "--sets", ".", "--texts", "0"], "must be at least 1"),
        ([], "was not made by a preset"),
    ],
)
def test_a_request_that_cannot_be_is_refused(
    tmp_path,
    arguments,
    message,
    capsys,
):
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path / "project"), *arguments])
    assert ended.value.code == 2 and message in capsys.readouterr().err


def test_a_project_of_no_preset_has_no_page(tmp_path):
    with pytest.raises(RequestError, match="not made by a preset"):
        read_request(tmp_path)


def test_a_file_of_another_set_is_brought_with_its_own_names(tmp_path):
    file = tmp_path / "reviews.csv"
    file.write_text("review,stars,user_id\ngood,1,u1\nbad,0,u2\n", encoding="utf-8")
    names = ["--text", "review", "--label", "stars", "--attribute", "user_id"]
    bring.main(["yelp", str(file), "--into", str(tmp_path / "sets"), *names])
    table = pq.read_table(tmp_path / "sets" / "yelp.parquet")
    assert table.column("text").to_pylist() == ["good", "bad"]
    assert table.column("label").to_pylist() == ["1", "0"]
    assert set(table.column("split").to_pylist()) <= {"train", "dev"}


@pytest.mark.parametrize("name", ["cola", "rte"])
def test_glue_files_with_and_without_a_heading(tmp_path, name):
    folder = tmp_path / "glue"
    folder.mkdir()
    lines = {
        "cola": "gj04\t1\t\tOur friends won't buy this.\n",
        "rte": "index\tsentence1\tsentence2\tlabel\n"
        "0\tOur friends won't buy this.\tNo.\tentailment\n",
    }
    for file in ("train.tsv", "dev.tsv"):
        (folder / file).write_text(lines[name], encoding="utf-8")
    table = bring.read_glue(name, folder)
    assert table.column("text").to_pylist() == ["Our friends won't buy this."] * 2
    second, label = {"cola": (None, "1"), "rte": ("No.", "entailment")}[name]
    assert (table.column("text_b").to_pylist()[0], table.column("label").to_pylist()[0]) == (
        second,
        label,
    )
