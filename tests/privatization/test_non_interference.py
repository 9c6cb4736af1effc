"""Published files are a function of output, parameters and disclosed structure: every verb, format
and option.

Two sources with the same disclosed structure are rewritten by a mechanism that gives both the same
answers, see tests/same_noise.py.
"""

import io
import sys

import pandas as pd
import pyarrow as pa
import pytest
from bad_inputs import lines, packed, parquet

import lexveil
from lexveil import MECHANISMS, Model
from lexveil.faces.cli import main
from tests.same_noise import SameAnswers, published, reach_workers, sources
from tests.shared_trees import stand_beside

# Stop words are perturbed in S1 too, so that they may stand where words stood; unknown words are
# drawn.
BASE = {
    "--stopwords": "perturb",
    "--punctuation": "drop",
    "--oov": "sample",
    "--document-budget": "5",
}


@pytest.fixture
def world(listed, tmp_path_factory, monkeypatch):
    """Does the same with both sources, each in a project with a new ledger, and compares what is
    published."""
    same = SameAnswers(monkeypatch)
    both = sources(Model.load(listed))

    def compare(does):
        made = []
        for number, texts in enumerate(both):
            project = stand_beside(
                listed, tmp_path_factory.mktemp("world") / "project", monkeypatch
            )
            folder = project.parent
            same.restart()
            made.append(does(texts, folder))
            assert made[number], "nothing is published"
        first, second = made
        assert first.keys() == second.keys()
        differ = [name for name in first if first[name] != second[name]]
        assert not differ, {name: (first[name][-2000:], second[name][-2000:]) for name in differ}

    return compare


def write(texts, folder, form, *more):
    """A source in one of the forms; ``more`` are further columns of texts."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"in.{form}"
    rows = [
        {"id": str(row), "text": text, "n": row} | dict.fromkeys(more, text)
        for row, text in enumerate(texts)
    ]
    if form == "parquet":
        content = parquet(pa.Table.from_pylist(rows))
    elif form.startswith("jsonl"):
        content = lines(*rows)
    elif form == "txt":
        content = "".join(text + "\n" for text in texts if text).encode()
    else:
        content = (
            pd.DataFrame(rows).to_csv(index=False, sep="\t" if form == "tsv" else ",").encode()
        )
    file.write_bytes(packed(content, form.rpartition(".")[2]))
    return file


def options(mechanism, strategy, more):
    """Return options of the command line; None omits an option, True stands for a flag, and a tuple
    for an option given twice.
    """
    given = ["--mechanism", mechanism, "--strategy", strategy]
    for name, value in (BASE | more).items():
        for one in value if isinstance(value, tuple) else (value,):
            given += [] if one is None else [name] if one is True else [name, one]
    return given


def privatized(mechanism, strategy, form="jsonl", **more):
    def run(texts, folder):
        named = {f"--{name.replace('_', '-')}": value for name, value in more.items()}
        source = write(texts, folder, form, *(["title"] if "text_column" in more else []))
        out = folder / "published"
        out.mkdir()
        arguments = options(mechanism, strategy, named)
        assert (
            main.main(["privatize", str(source), "-o", str(out / f"out.{form}"), *arguments]) == 0
        )
        return published(out)

    return run


@pytest.mark.parametrize(
    ("mechanism", "strategy"),
    [*((name, "S3") for name in MECHANISMS), *(("tem", name) for name in ("S1", "S2", "S4"))],
)
def test_mechanisms_and_strategies(world, mechanism, strategy):
    world(
        privatized(
            mechanism, strategy, without_guarantee=True if mechanism == "truncated_gumbel" else None
        )
    )


@pytest.mark.parametrize("form", ["csv", "tsv", "txt", "parquet", "jsonl.gz", "csv.zst"])
def test_forms(world, form):
    world(privatized("tem", "S3", form, **({} if form == "txt" else {"subject_column": "id"})))


@pytest.mark.parametrize("strategy", ["S1", "S2"])
@pytest.mark.parametrize(
    "more",
    [
        {"consistent": True},
        {"text_column": ("text", "title")},
        {"oov": "drop"},
        {"formulas": "quote"},
        {"max_token_epsilon": "1.5"},
        {"document_budget": None, "epsilon": "2"},
        {"mode": "experiment"},
    ],
    ids=lambda more: next(iter(more)),
)
def test_options(world, strategy, more):
    world(privatized("madlib", strategy, **more))


@pytest.mark.parametrize(
    ("mechanism", "form"),
    [
        ("tem", "jsonl"),
        pytest.param("tem_context", "csv", marks=pytest.mark.nightly),
        pytest.param("madlib", "parquet", marks=pytest.mark.nightly),
        pytest.param("tem", "jsonl.gz", marks=pytest.mark.nightly),
    ],
)
def test_two_workers(world, monkeypatch, mechanism, form):
    """Two workers get the same answers as one process: what is published does not show where
    batches ended.
    """
    reach_workers(monkeypatch)
    world(privatized(mechanism, "S3", form, workers="2"))


def test_layout_that_is_copied_is_all_that_it_adds(world):
    """The first rows differ in layout, which is passed on: they are left out here."""
    run = privatized("madlib", "S3", keep_layout=True)
    world(lambda texts, folder: run(texts[1:], folder))


def test_a_folder_and_its_files(world):
    def run(texts, folder):
        write(texts, folder / "in", "jsonl")
        write(texts[::-1], folder / "in", "csv")
        (folder / "published").mkdir()
        out = folder / "published/out"
        assert (
            main.main(["privatize", str(folder / "in"), "-o", str(out), *options("tem", "S4", {})])
            == 0
        )
        return published(folder / "published")

    world(run)


def test_standard_output(world, monkeypatch):
    def run(texts, folder):
        source = write(texts, folder, "jsonl")
        out = io.BytesIO()
        stdout = io.TextIOWrapper(out)  # it would close ``out`` if nobody held it
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(source.read_bytes())))
            patch.setattr(sys, "stdout", stdout)
            assert main.main(["privatize", "-", "-o", "-", *options("tem", "S2", {})]) == 0
        return {"stdout": out.getvalue()}

    world(run)


def test_the_summary_for_machines(world, capsys):
    def run(texts, folder):
        privatized("tem", "S3", json=True)(texts, folder)
        return {"summary": capsys.readouterr().out.encode()}

    world(run)


def test_values_in_memory(world):
    how = {"mechanism": "tem", "strategy": "S2", "document_budget": 5.0}
    how |= {"stopwords": "perturb", "punctuation": "drop", "oov": "sample"}

    def run(texts, folder):
        done = lexveil.privatize(list(texts), **how)
        return {"values": repr(done.values).encode(), "record": repr(done.record).encode()}

    world(run)
