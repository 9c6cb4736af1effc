"""`lexveil audit`: test a mechanism's claim."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated, Literal

from lexveil.cli.options import Json, Positive, Strategy, option
from lexveil.cli.output import in_project, show


def audit(
    *,
    mechanism: Annotated[str, option("{mechanisms}", "M")],
    epsilon: Annotated[Positive, option("the claim: per token; in texts, base epsilon", "E")],
    words: Annotated[int, option("seeded words to test", "N")] = 300,
    samples: Annotated[int, option("draws per word or text, half tested", "N")] = 20_000,
    strategy: Annotated[Strategy, option("S1, S2, S3 or S4")] = "S1",
    mode: Annotated[
        Literal["experiment", "release"],
        option("where the noise comes from: the seed in params.yaml, or the operating system"),
    ] = "experiment",
    confidence: Annotated[Positive, option("that no bound is too high", "C")] = 0.999,
    json: Json = False,
    out: Annotated[Path | None, option("write the result to FILE as JSON", "FILE")] = None,
) -> int:
    """Test the privacy that a mechanism claims.

    Exact where a mechanism's distribution has a closed form; for the rest lower confidence bounds from samples of
    the mechanism and of whole texts. Ends with exit code 1 if the claimed epsilon is violated. Needs the artifacts
    of `lexveil run`.

      lexveil audit --mechanism madlib --epsilon 10
      lexveil audit --mechanism madlib --epsilon 10 --strategy S3 --mode release --out audit.json
    """
    out = out and out.absolute()
    in_project()
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
        result = auditing.audit(request, out)
    show(result.as_dict() if json else result, json, auditing.AuditResult.as_text)
    return 1 if result.violation else 0
