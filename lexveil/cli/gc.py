"""`lexveil gc`: free the space of results that nothing refers to."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from lexveil.cli.options import Json, Wait, exclusive
from lexveil.cli.output import in_project, show
from lexveil.runtime.project import build_lock

ACTION = exclusive()


def gc(
    *,
    dry_run: Annotated[bool, Parameter(group=ACTION)] = False,  # noqa: ARG001
    remove: Annotated[bool, Parameter(group=ACTION)] = False,
    wait: Wait = False,
    json: Json = False,
) -> int:
    """Free the space of results that nothing refers to any more.

    Shows which objects of DVC's cache belong neither to the work tree nor to any commit, tag or release, and
    how much they take; removes them only if told to. A release is a record that `lexveil privatize` wrote in
    release mode inside the project. Remotes are not touched.

        lexveil gc
        lexveil gc --remove

    Args:
        dry_run: only show what would go (the default)
        remove: remove it
    """
    root = in_project()
    from lexveil.lineage.gc import as_text, collect

    with build_lock(wait):
        garbage = collect(root, remove)
    show(garbage, json, as_text)
    return 0
