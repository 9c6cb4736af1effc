"""`lexveil tune`: choose epsilon and t on labelled words."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated, Literal

from lexveil.cli.options import Count, Json, Seed, Share, exclusive, option, positive, several, share
from lexveil.cli.output import in_project, show

WHICH, SPACE = exclusive("which"), exclusive("space")


def tune(
    *,
    max_loss: Annotated[Share | None, option("the largest utility loss, a share of 1", "C")] = None,
    mechanism: Annotated[str, option("{mechanisms}", "M", group=WHICH)] = "vickrey",
    compare: Annotated[
        tuple[str, ...],
        option(
            "several, in one figure; --max-loss can be left out", "M,M", group=WHICH, converter=several(str), n_tokens=1
        ),
    ] = (),
    words: Annotated[
        Path | None,
        option(
            "a table with columns word (or text) and label (default: a document set of such words)",
            "FILE",
        ),
    ] = None,
    space: Annotated[Literal["word", "gst", "mst"], option("embedding", group=SPACE)] = "word",
    space_of: Annotated[str | None, option("a model of `lexveil embeddings list` instead", "NAME", group=SPACE)] = None,
    epsilons: Annotated[
        tuple[float, ...],
        option(
            "to measure (default: 5, each twice the one before, around the first that keeps the loss)",
            "E,E",
            converter=several(positive),
            n_tokens=1,
        ),
    ] = (),
    t: Annotated[
        tuple[float, ...],
        option(
            "of vickrey (default: 0.05 to 1); 0 is always tried",
            "T,T",
            name="--t",
            converter=several(share),
            n_tokens=1,
        ),
    ] = (),
    runs: Annotated[Count, option("what deviations are over")] = 5,
    draws: Annotated[Count, option("of each word in a run")] = 20,
    seed: Annotated[Seed | None, option("of the noise (default: that of params.yaml)")] = None,
    json: Json = False,
    output: Annotated[
        Path | None, option("write tuning.json, tuning.html, frontier.csv and two SVGs", "FOLDER", alias="-o")
    ] = None,
) -> int:
    """Choose epsilon and t on labelled words.

    Measures on a list of labelled words what an adversary gets wrong (inference error) and how often the label
    changes (utility loss), and chooses the epsilon and, of vickrey, the t with the largest error that keeps the
    loss (Vickrey, Algorithm 2). The words are public and the noise is seeded: an experiment. Exit code 1 if
    nothing keeps the loss. Needs an embedding: that of `lexveil run`, or one brought in.

      lexveil tune --max-loss 0.1 --words opinion.csv -o tuning
      lexveil tune --compare madlib,vickrey,mahalanobis --t 0.25,0.5,0.75,1 --words opinion.csv -o figure-2
    """
    words, out = (path and path.absolute() for path in (words, output))
    in_project()
    from lexveil.tuning import output as tuning_output
    from lexveil.tuning import tune as tuning

    with contextlib.redirect_stdout(sys.stderr):  # progress; standard output is the result
        request = tuning.TuningRequest(
            mechanism,
            max_loss=max_loss,
            compare=compare,
            words=words,
            space=space,
            space_of=space_of,
            epsilons=sorted(set(epsilons)),
            t=sorted(set(t)),
            n_runs=runs,
            n_draws=draws,
            seed=seed,
            out=out,
        )
        result = tuning.tune(request)
    show(result, json, tuning_output.as_table)
    if out and not json:
        print(f"written: {out}")
    return 1 if any(choice["none"] for choice in result["chosen"].values()) else 0
