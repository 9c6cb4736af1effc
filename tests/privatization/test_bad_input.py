"""Refusals of `lexveil privatize`: one line with place and fault, no text, no output, and no
spending unless noise was drawn.
"""

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from asking import command
from bad_inputs import BAD, GOOD, MANY, SECRET, lines

from lexveil.base.errors import RequestError
from lexveil.io.formats import compression
from lexveil.io.formats.registry import known_endings
from lexveil.release.charge import STAYS_SPENT
from lexveil.release.ledger.ledger import Ledger
from lexveil.release.ledger.verification import verify
from lexveil.release.outputs import writing
from lexveil.release.run import Run

DOCS = Path(__file__).parents[2] / "docs/reference/bad-input.md"
HOW = ("--mechanism", "madlib", "--strategy", "S1")


@cache
def documented():
    """Exit code and message of every case, as docs/reference/bad-input.md has them."""
    rows = re.findall(
        r"^\| ([^|]+?) \| ([12]) \| ``? ?(.+?) ?``? \|$",
        DOCS.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert len(rows) == len({case for case, _, _ in rows})
    return {case: (int(code), message) for case, code, message in rows}


def spends():
    """Return the contents of the ledger, without the names of releases that published nothing."""
    with Ledger.open(".lexveil/ledger") as ledger:
        assert ledger.recovered == []
        rows = ledger.database.rows
        states = rows(
            "select count(*) from releases where state not in ('committed', 'aborted', 'failed')"
        )
        return [
            rows("select * from balances order by 1"),
            rows("select * from spends order by 1, 2"),
            states,
        ]


def files(folder):
    """All that is in a folder, links as what they point at."""
    return {
        str(path.relative_to(folder)): os.fsencode(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in folder.rglob("*")
    }


def said(err, folder):
    """The message without what stands before all, and without the folder; long names cut."""
    err = re.sub(r"(?m)^(count|privatize): [\d,]+ .*\n", "", err)  # progress, on a slow machine
    # Said before what is refused later.
    err = re.sub(r"(?m)^using the model own, made of .*\n", "", err)
    err = re.sub(
        r"(?m)^(the ledger has a cap from now on|published unchanged, with any names in them|"
        r"private to .*|CAUTION): .*\n",
        "",
        err,
    )
    assert err.count("\n") == 1 and err.endswith("\n"), err
    message = err.removeprefix("lexveil privatize: ").rstrip("\n").replace(f"{folder}/", "")
    message = message.replace(known_endings(), "…")
    # Compressors differ in how far they come.
    return re.sub(r"f{9,}|(?:o{9,}/)*o{9,}|(?<=line )\d{4}(?=;)|\d+(?= KiB)", "…", message)


@pytest.fixture
def inputs(ready, tmp_path):
    folder = tmp_path / "inputs"
    folder.mkdir()
    return folder


def refused(
    case,
    inputs,
    capsys,
    source,
    out,
    *options,
):
    """Rewrite ``source`` to ``out``, which must fail as docs/reference/bad-input.md says of
    ``case``."""
    before = files(inputs)
    spent = spends()
    target = out if out == "-" else str(inputs / out)
    code = command(
        "privatize", str(inputs / source), "-o", target, *HOW, *(options or ("--epsilon", "10"))
    )
    printed, err = capsys.readouterr()
    assert SECRET not in err and printed == ""
    assert (code, said(err, inputs)) == documented()[case]
    assert files(inputs) == before
    assert (spends() != spent) == documented()[case][1].endswith(STAYS_SPENT) and verify(
        Path(".lexveil/ledger")
    ).holds


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(inputs, monkeypatch, capsys, case):
    bad = BAD[case]
    monkeypatch.setattr(compression, "RATIO_FROM", 2**20)
    bad.write(inputs)
    source, _, file = bad.name.partition("/")
    is_folder = file or source == "d"
    refused(
        case,
        inputs,
        capsys,
        source,
        bad.out or ("out" if is_folder else f"out.{source.partition('.')[2]}"),
        *bad.budget,
        *bad.options,
    )


@pytest.fixture
def mount(inputs):
    """Mount a small file system in a folder of the inputs; skip where that is not allowed."""
    folder = inputs / "disk"
    folder.mkdir()

    def mounted(options):
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            pytest.skip("no file system can be mounted here")
        return folder

    try:
        yield mounted
    finally:
        subprocess.run(["umount", folder], capture_output=True, check=False)


@pytest.mark.parametrize(
    ("case", "options"), [("a full disk", "size=16k"), ("a read-only disk", "size=16k,ro")]
)
def test_disks(
    inputs,
    mount,
    capsys,
    case,
    options,
):
    mount(options)
    (inputs / "f.jsonl").write_bytes(MANY)
    refused(case, inputs, capsys, "f.jsonl", "disk/o.jsonl")


@pytest.mark.skipif(
    not Path("/proc/self/mem").exists(), reason="only Linux has a file that is never read"
)
def test_a_disk_that_fails(inputs, capsys):
    (inputs / "f.jsonl").symlink_to("/proc/self/mem")
    refused("a disk that fails", inputs, capsys, "f.jsonl", "o.jsonl")


CHANGES = {
    "a text that changes": lines(GOOD, GOOD | {"text": "another"}),
    "a row that is added": lines(GOOD, GOOD, GOOD),
    "a row that is removed": lines(GOOD),
    "a text that is null": lines(GOOD, GOOD | {"text": None}),
    "a text that moves to the next row": lines(
        GOOD | {"text": ""}, GOOD | {"text": GOOD["text"] * 2}
    ),
    "a file that is removed": None,
    "a row that becomes invalid": lines(GOOD, GOOD | {"text": 5}),
}


@pytest.mark.parametrize("case", CHANGES)
def test_an_input_that_changes_between_the_two_passes(inputs, monkeypatch, capsys, case):
    (inputs / "f.jsonl").write_bytes(lines(GOOD, GOOD))
    count = Run.count
    spent = spends()

    def counted_then_changed(self, *arguments):
        count(self, *arguments)
        (inputs / "f.jsonl").unlink()
        if (content := CHANGES[case]) is not None:
            (inputs / "f.jsonl").write_bytes(content)

    monkeypatch.setattr(Run, "count", counted_then_changed)
    code = command(
        "privatize", str(inputs / "f.jsonl"), "-o", str(inputs / "o.jsonl"), *HOW, "--epsilon", "10"
    )
    printed, err = capsys.readouterr()
    assert SECRET not in err and printed == ""
    assert (code, said(err, inputs)) == documented()[case]
    assert {path.name for path in inputs.iterdir()} <= {"f.jsonl"}
    assert spends() != spent and verify(Path(".lexveil/ledger")).holds


def test_a_link_where_the_hidden_output_will_be_is_not_written_through(inputs):
    """Whoever may write into the folder could otherwise have the input, or any
    other file, emptied."""
    (inputs / "f.jsonl").write_bytes(lines(GOOD))
    (inputs / ".partial-o.jsonl").symlink_to("f.jsonl")
    assert (
        command(
            "privatize",
            str(inputs / "f.jsonl"),
            "-o",
            str(inputs / "o.jsonl"),
            *HOW,
            "--epsilon",
            "10",
        )
        == 0
    )
    assert (inputs / "f.jsonl").read_bytes() == lines(GOOD)
    assert not (inputs / "o.jsonl").is_symlink() and not (inputs / ".partial-o.jsonl").is_symlink()


def test_two_outputs_that_a_disk_takes_for_one_are_refused(tmp_path):
    """Two names of one file are refused; a disk that tells no capitals apart makes such names."""
    finals = [tmp_path / "out/a.csv", tmp_path / "out/b.csv"]
    with writing(tmp_path / "out") as outputs:
        outputs.try_names(finals)
        assert not [*(tmp_path / "out").iterdir()]
        with pytest.raises(RequestError, match="would be the same file"):
            outputs.try_names([*finals, tmp_path / "out/../out/a.csv"])
    assert not [*tmp_path.iterdir()]


def test_strange_names_that_a_disk_takes_are_written(inputs, capsys):
    for name in ("a\nb.jsonl", " .jsonl", "é" * 100 + ".jsonl", "-o.jsonl"):
        (inputs / "d").mkdir(exist_ok=True)
        (inputs / "d" / name).write_bytes(lines(GOOD))
    options = (*HOW, "--epsilon", "10")
    assert command("privatize", str(inputs / "d"), "-o", str(inputs / "out\n"), *options) == 0
    assert "out\\n.record.json" in capsys.readouterr().out
    written = {path.name for path in (inputs / "out\n").iterdir()}
    assert written == {path.name for path in (inputs / "d").iterdir()}
    assert not [path for path in files(inputs) if ".probing-" in path or ".partial-" in path]


def test_every_case_is_in_the_docs_and_none_besides():
    tested = {*BAD, *CHANGES, "a full disk", "a read-only disk", "a disk that fails"}
    assert set(documented()) == tested
