"""`lexveil report`: where the report is, and its figures."""

from __future__ import annotations

import sys

from lexveil import paths
from lexveil.cli.output import in_project
from lexveil.errors import LexveilError, RequestError


def report(*, json: bool = False, open: bool = False) -> int:
    """Where the report of the last run is.

    Prints the path of the report, one self-contained page.

        lexveil report --open
        lexveil report --json      its figures, as JSON

    Args:
        json: print the report's figures
        open: open it in the browser
    """
    root = in_project()
    file = paths.REPORT / ("metrics.json" if json else "index.html")
    if not file.exists():
        raise RequestError(f"{file} is not there yet; `lexveil run` makes it")
    # A check that fails takes its record away and stops what comes after, so what is there is of an earlier run.
    missing = [
        name
        for name in ("corpus", "collocations", "coverage", "outputs")
        if not (paths.CHECKS / f"{name}.json").exists()
    ]
    if missing:
        print(
            f"lexveil report: of an earlier run; since then {', '.join(missing)} did not pass its check",
            file=sys.stderr,
        )
    if json:
        sys.stdout.write(file.read_text(encoding="utf-8"))
        return 0
    print(root / file)
    if open:
        import webbrowser

        if not webbrowser.open((root / file).as_uri()):
            raise LexveilError(f"no browser could be opened; open {root / file} yourself")
    return 0
