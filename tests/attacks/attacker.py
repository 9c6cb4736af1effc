"""Shared parts of the attacks: the command line of the installed Lexveil, and the files that
anybody may read.
"""

import contextlib
import io
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lexveil.faces.cli import main

OTHERS = 0o044  # who may read a published file


def lexveil(*arguments: object) -> tuple[int, str, str]:
    """Run one command in this process; give exit code, standard output and standard error."""
    out = io.StringIO()
    err = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main.main([str(argument) for argument in arguments])
    return code, out.getvalue(), err.getvalue()


def words_of(project: Path, segmentation: str = "word") -> list[str]:
    """The words of an embedding."""
    return (
        (project / f"artifacts/embeddings/{segmentation}/words.txt")
        .read_text(encoding="utf-8")
        .split()
    )


def privatize(source: Path, out: Path, *how: object) -> tuple[int, str]:
    """Rewrite a file by MADLIB, stop words too; give exit code and standard error."""
    usual = ("--mechanism", "madlib", "--strategy", "S1", "--stopwords", "perturb")
    code, _, err = lexveil("privatize", source, "-o", out, *usual, *how)
    return code, err


def write_rows(file: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write JSON lines."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def public_files(folder: Path) -> list[Path]:
    """The files below a folder that an observer may read; what only its owner may read is the
    operator's."""
    files = (Path(where, name) for where, _, names in os.walk(folder) for name in names)
    return sorted(file for file in files if file.stat().st_mode & OTHERS)
