"""Standard input, output and error in every state: nothing is lost, and nothing is half-done."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

COPY = ("--mechanism", "none", "--strategy", "none", "--mode", "experiment")
NEEDS_FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has it")


def run(folder, redirected, *arguments, **environment):
    """Run a command of ``lexveil`` with streams as a shell redirects them."""
    (folder / "a.csv").write_text("text,né\nhello my good friend,1\n", encoding="utf-8")
    words = " ".join(f"'{word}'" for word in ("-m", "lexveil.faces.cli", *arguments))
    return subprocess.run(
        ["bash", "-c", f"'{sys.executable}' {words} {redirected}"],
        cwd=folder,
        env={**os.environ, "XDG_DATA_HOME": str(folder / "data"), **environment},
        capture_output=True,
        check=False,
    )


def copied(folder, redirected, out="out.csv", **environment):
    done = run(folder, redirected, "privatize", "a.csv", "-o", out, *COPY, **environment)
    assert b"Traceback" not in done.stderr and b"Exception" not in done.stderr
    return done.returncode


@pytest.mark.parametrize(
    "redirected", [">&-", "2>&-", "<&- >&- 2>&-", pytest.param("2>/dev/full", marks=NEEDS_FULL)]
)
def test_what_nobody_hears_stops_nothing(tmp_path, redirected):
    assert copied(tmp_path, redirected) == 0
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
    assert json.loads((tmp_path / "out.csv.record.json").read_text())["mechanism"] == "none"


@NEEDS_FULL
def test_a_result_that_cannot_be_said_is_a_failure_and_says_what_was_done(tmp_path):
    done = run(tmp_path, ">/dev/full", "privatize", "a.csv", "-o", "out.csv", *COPY)
    assert done.returncode == 1 and (tmp_path / "out.csv").exists()
    assert done.stderr.splitlines()[-1] == (
        b"lexveil privatize: the command is done, but its result cannot be written to standard "
        b"output (No space left on device)"
    )


def test_a_stream_that_is_asked_for_and_closed_is_refused(tmp_path):
    for redirected, source, out in ((">&-", "a.csv", "-"), ("<&-", "-", "out.csv")):
        done = run(tmp_path, redirected, "privatize", source, "-o", out, *COPY)
        assert done.returncode == 2 and b"is closed; connect it" in done.stderr
        assert not (tmp_path / "out.csv").exists()


def test_a_pipe_that_breaks_ends_quietly(tmp_path):
    (tmp_path / "big.txt").write_text("hello my good friend\n" * 200_000)
    read = "| head -c 9; exit ${PIPESTATUS[0]}"
    done = run(tmp_path, read, "privatize", "big.txt", "-o", "-", *COPY)
    assert done.returncode == 141 and done.stdout == b"hello my " and done.stderr == b""


def test_an_encoding_that_lacks_characters(tmp_path):
    """Messages escape the characters that the encoding lacks; the text itself stays as it was."""
    ascii_only = {"PYTHONIOENCODING": "ascii:strict"}
    assert copied(tmp_path, "", "né.csv", **ascii_only) == 0
    assert (tmp_path / "né.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
    done = run(tmp_path, "", "privatize", "a.csv", "-o", "-", *COPY, **ascii_only)
    assert done.stdout == (tmp_path / "a.csv").read_bytes()
    columns = ("--text-column", "né", "--json")
    done = run(tmp_path, "", "privatize", "a.csv", "-o", "b.csv", *COPY, *columns, **ascii_only)
    assert json.loads(done.stdout)["mechanism"] == "none"


def test_a_terminal_is_told_that_it_is_read(tmp_path):
    ours, theirs = pty.openpty()
    try:
        command = [
            sys.executable,
            "-m",
            "lexveil.faces.cli",
            "privatize",
            "-",
            "-o",
            "o.jsonl",
            *COPY,
        ]
        os.write(ours, b'{"text": "hello"}\n\x04')
        done = subprocess.run(
            command, cwd=tmp_path, stdin=theirs, capture_output=True, check=False, timeout=100
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 0 and b"reading standard input; Ctrl-D ends it" in done.stderr
