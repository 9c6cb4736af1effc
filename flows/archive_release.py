"""Release of new texts into a folder that DVC tracks, for `lexveil release`. The flow runs this
module as `python -m flows.archive_release`.

Every release is an output of its own, releases/NAME.dvc beside releases/NAME. In git, a release is
one new file, which changes only if a text is withdrawn. Releases are outside data/, because
data.dvc tracks all of data/.
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
    """Release new documents and track the release with DVC; the caller holds the build lock.

    Raises:
        LexveilError: if the release fails (``lexveil.release.inbox.run.release_inbox``), or DVC
            cannot add the archived files.
    """
    with contextlib.redirect_stdout(sys.stderr):  # standard output carries the result only
        report = release_inbox(dry_run)
        if not dry_run:
            track(Path(load_configuration().inbox.archive))
    return report


def track(folder: Path) -> None:
    """Add new and changed files in a folder of releases to DVC.

    Raises:
        LexveilError: if DVC fails; the next release tries again.
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
            f"the release is archived, but {error}; correct that, and run `lexveil release` "
            "again to track the release"
        ) from None


def main() -> int:
    """Release new texts on behalf of the flow, which holds the build lock. The last line of output
    is the report or the error.
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
