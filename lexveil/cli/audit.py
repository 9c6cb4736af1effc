"""`lexveil audit`: test a mechanism's claim."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated, Literal

from lexveil.cli.options import Json, ModelName, Positive, Strategy, option
from lexveil.cli.output import anywhere, show


def audit(
    *,
    mechanism: Annotated[str, option("{mechanisms}", "M")],
    epsilon: Annotated[Positive, option("the claim: per token; in releases, base epsilon", "E")],
    words: Annotated[int, option("seeded words of the embedding to compare", "N")] = 300,
    samples: Annotated[int, option("draws per word of a toy", "N")] = 20_000,
    strategy: Annotated[Strategy, option("S1, S2, S3 or S4")] = "S1",
    model: ModelName = None,
    mode: Annotated[
        Literal["release", "experiment"],
        option("where the noise comes from: the operating system, or the seed in params.yaml"),
    ] = "release",
    confidence: Annotated[Positive, option("that no bound is too high", "C")] = 0.999,
    json: Json = False,
    out: Annotated[Path | None, option("write the result to FILE as JSON", "FILE")] = None,
) -> int:
    """Test the privacy that a mechanism claims.

    By its own distances, laws and budgets: of the mechanism on toys and on the words of the embedding, and of whole
    releases of a toy project with a ledger of its own. The verdict is violated (exit code 1), no violation found with
    power to see a factor, or inconclusive. Works anywhere, as `lexveil privatize`.

      lexveil audit --mechanism madlib --epsilon 10
      lexveil audit --mechanism madlib --epsilon 10 --strategy S3 --out audit.json
    """
    out = out and out.absolute()
    anywhere()
    from lexveil.auditing import audit as auditing

    with contextlib.redirect_stdout(sys.stderr):  # progress; standard output is the result
        request = auditing.AuditRequest(
            mechanism,
            epsilon,
            words=words,
            samples=samples,
            strategy=strategy,
            mode=mode,
            confidence=confidence,
        )
        result = auditing.audit(request, out, model=model)
    show(result.as_dict() if json else result, json, auditing.AuditResult.as_text)
    return 1 if result.violation else 0
