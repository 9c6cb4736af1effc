"""`lexveil init`: make a project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def init(folder: Annotated[Path, Parameter(name="DIR")], /) -> int:
    """Make a project: the graph, its stages and queries, its flows and its parameters.

    Writes dvc.yaml, params.yaml, prefect.yaml, tasks/, flows/ and sql/ and makes it a git repository, in which DVC
    keeps versions. All of these are the project's own, to change at will; the library stays where it is installed,
    and a newer one makes stale only those stages whose code has changed.

        lexveil init demo && cd demo && lexveil run

    Args:
        folder: one that is new or empty
    """
    from lexveil.runtime.new_project import create

    create(folder)
    print(f"made a project in {folder}. Next:")
    print(f"  cd {folder}")
    print("  lexveil run              makes the embedded default data and everything from it")
    print("  lexveil data use --help  takes your own data instead")
    files = "data.dvc dvc.lock dvc.yaml params.yaml prefect.yaml flows sql tasks"
    print(f"  git add .dvc .dvcignore .gitignore .provenance.json {files} && git commit")
    print("after a run, so that lineage can name the commit it was made from; never add files with private texts")
    return 0
