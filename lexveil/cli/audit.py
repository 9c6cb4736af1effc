"""`lexveil audit`: test a mechanism's claim."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lexveil.auditing.request import AuditRequest
from lexveil.cli.options import CHOSEN, ChosenModel, Json
from lexveil.cli.output import anywhere, show
from lexveil.cli.rewriting import options_of, requested

if TYPE_CHECKING:

    class Auditing: ...  # noqa: D101
else:
    Auditing = options_of(AuditRequest)


def audit(
    *,
    how: Auditing,
    words: ChosenModel = CHOSEN,
    json: Json = False,
    out: Annotated[Path | None, Parameter(metavar="FILE")] = None,
) -> int:
    """Test the privacy that a mechanism claims.

    By its own distances, laws and budgets: of the mechanism on toys and on the words of the embedding, and of whole
    releases of a toy project with a ledger of its own. The verdict is violated (exit code 1), no violation found with
    power to see a factor, or inconclusive. Works anywhere, as `lexveil privatize`.

        lexveil audit --mechanism madlib --epsilon 10
        lexveil audit --mechanism madlib --epsilon 10 --strategy S3 --out audit.json

    Args:
        out: write the result to FILE as JSON
    """
    out, request = out and out.absolute(), requested(how, AuditRequest)
    anywhere()
    from lexveil.auditing import audit as auditing

    with contextlib.redirect_stdout(sys.stderr):  # progress; standard output is the result
        result = auditing.audit(request, out, model=words.name)
    show(result.as_dict() if json else result, json, auditing.AuditResult.as_text)
    return 1 if result.violation else 0
