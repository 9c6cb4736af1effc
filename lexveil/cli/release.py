"""`lexveil release`: release what is new in an inbox."""

from __future__ import annotations

from importlib import import_module

from lexveil.cli.options import Json, Wait
from lexveil.cli.output import in_project, show
from lexveil.runtime.project import build_lock


def release(
    *,
    dry_run: bool = False,
    wait: Wait = False,
    json: Json = False,
) -> int:
    """Release what is new in an inbox, in files or in a database.

    Reads the source that params.yaml names (release), releases documents that are new or changed, skips those
    it knows, takes out those that are withdrawn, and archives nothing that its checks do not pass. Documents
    are known again by salted hashes of their ids. docs/how-to/release.md says more.

        lexveil release --dry-run     what would be released, skipped and withdrawn, and what it costs
        lexveil release

    Args:
        dry_run: only say what would be done and what it would cost
    """
    in_project()
    with build_lock(wait):
        report = import_module("flows.archive_release").release(dry_run)
    show(report.as_dict() if json else report, json, type(report).as_text)
    return 0
