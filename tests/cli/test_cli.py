"""The command line: what it refuses, in one line and before anything is touched, and what it hands
on."""

import json
import socket
import types
from pathlib import Path

import pytest

PRIVATIZE = (
    "privatize",
    "in.jsonl",
    "-o",
    "out.jsonl",
    "--mechanism",
    "madlib",
    "--strategy",
    "S3",
)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "COMMAND"),
        (("rum",), "run"),
        (("run", "--params", "absent.yaml"), "absent.yaml"),
        (("data", "use"), "--corpus"),
        (("data", "use", "--corpus", "absent"), "absent"),
        (("data", "use", "--corpus", "a", "b"), "each of several sources needs a name"),
        (("data", "use", "--corpus", "a=b", "a=c"), "the name a is repeated"),
        (
            ("privatize", "in.jsonl", "out.jsonl"),
            "no option takes out.jsonl; write a value after",
        ),
        ((*PRIVATIZE, "--epsilon", "ten"), "--epsilon is 'ten'; it must be a number"),
        (("report",), "lexveil run"),
        (("collocations",), "Only [1, 1] choices"),
        (("collocations", "a text"), "lexveil run"),
        (("ui", "--port", "0"), "port"),
        (("schedule",), "prefect.yaml: no such file"),
        (("lineage", "artifacts/first.txt"), "has not run yet"),
        (("lineage", "artifacts/counts"), "artifacts/counts/a.txt"),
        (("lineage", "src.txt"), "not made by any stage"),
        (("lineage", "../elsewhere"), "outside"),
        (("lineage", "artifacts/first.txt", "--at", "v9"), "there is no such commit"),
        (("lineage", "--verify", "artifacts/first.txt"), "has not run yet"),
        (("release",), "inbox.source and inbox.sql are both omitted"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_code_two(project, cli, arguments, says):
    assert says in cli(*arguments, code=2).err
    assert (
        project.artifacts() == {}
        and not (project.root / "out.jsonl").exists()
        and project.ran() == []
    )


def test_outside_a_project(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    assert "dvc.yaml" in cli("run", code=2).err and list(tmp_path.iterdir()) == []


def test_a_taken_port_is_said(project, cli):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "--port" in cli("ui", "--port", taken.getsockname()[1], code=2).err


def test_files_are_those_of_the_folder_the_command_was_given_in(project, monkeypatch, cli):
    """Relative paths start from the current folder, not from the project's folder."""
    asked = []

    def privatize_file(*arguments, **_):
        asked.extend(arguments)
        return types.SimpleNamespace(
            record=types.SimpleNamespace(to_dict=lambda: {"n_documents": 3}), operator=None
        )

    monkeypatch.setattr("lexveil.release.adapters.files.privatize_file", privatize_file)
    below = project.root / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    assert json.loads(cli(*PRIVATIZE, "--epsilon", "2.5", "--json").out) == {"n_documents": 3}
    assert asked[:2] == [below / "in.jsonl", below / "out.jsonl"] and asked[2].epsilon == 2.5


def test_report_prints_where_it_is_and_its_figures(project, cli):
    folder = project.root / "artifacts/report"
    folder.mkdir(parents=True)
    (folder / "index.html").write_text("<html>")
    (runs := project.root / "artifacts/runs").mkdir()
    (runs / "tem-S1-1.0.json").write_text('{"named": 0.2}\n')
    assert Path(cli("report").out.strip()) == folder / "index.html"
    assert json.loads(cli("report", "--json").out) == {"tem-S1-1.0": {"named": 0.2}}
