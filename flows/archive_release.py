"""`lexveil release`: makes one release, and DVC then tracks the archived files. The flow uses
`python -m flows.archive_release`.

Every release is an output of its own, releases/NAME.dvc beside releases/NAME. In git it is one new
file, which changes only if something is withdrawn. data.dvc owns all of data/, so releases are
outside it.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

from lexveil.base.errors import LexveilError
from lexveil.base.logs import messages_on_stderr
from lexveil.base.runtime import dvc_graph
from lexveil.base.runtime.crash import hide_messages
from lexveil.io.config import load_configuration
from lexveil.release.inbox.archive import CURRENT, CURRENT_WITHOUT, INDEX
from lexveil.release.inbox.report import ReleaseReport
from lexveil.release.inbox.run import release_inbox


def release(dry_run: bool = False) -> ReleaseReport:
    """Release new documents and have DVC track the release; the caller holds the build lock.

    Raises:
        LexveilError: see ``lexveil.release.inbox.run.release_inbox``; also if DVC cannot add the
            archived files.
    """
    with contextlib.redirect_stdout(sys.stderr):  # standard output is the result
        report = release_inbox(dry_run)
        if not dry_run:
            track(Path(load_configuration().inbox.archive))
    return report


def track(folder: Path) -> None:
    """Have DVC track new and changed files in a folder of releases.

    Raises:
        LexveilError: if DVC cannot; the next run tries again.
    """
    if not folder.is_dir():
        return
    outputs = [path.parent for path in sorted(folder.glob("*/documents.parquet"))]
    outputs += [
        folder / name for name in (CURRENT, CURRENT_WITHOUT, INDEX) if (folder / name).exists()
    ]
    try:
        if outputs:
            dvc_graph.track(Path(), outputs)
    except LexveilError as error:
        raise LexveilError(
            f"the release is archived, but {error}; put that right and run `lexveil release` "
            "again, which does it"
        ) from None


def main() -> int:
    """Make one release for the flow, which holds the build lock. The last line of output is the
    report, or the error.
    """
    hide_messages()
    try:
        with messages_on_stderr():
            report = release()
        print(json.dumps(report.as_dict()), flush=True)
    except LexveilError as error:
        print(f"lexveil release: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
