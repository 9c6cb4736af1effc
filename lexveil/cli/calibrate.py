"""`lexveil calibrate`: choose epsilon by what a reader gets back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from lexveil.cli.options import ChosenModel, Json, Strategy, Stream, option, reads, several, share, strategy
from lexveil.cli.output import anywhere, show
from lexveil.errors import RequestError


def calibrate(
    source: Annotated[
        Stream | None, option("say also what would become of this file or folder; it changes no epsilon", name="FILE")
    ] = None,
    /,
    *,
    recovery: Annotated[
        float, option("the share of words that a best-informed reader is to name", "R", converter=reads(share))
    ],
    band: Annotated[
        Literal["all", "content", "function", "frequent", "middle", "rare"],
        option("of which words, by their public frequency; content: all but function words"),
    ] = "all",
    mechanism: Annotated[
        tuple[str, ...], option("all, or of {mechanisms}", "M,M", converter=several(str), n_tokens=1)
    ] = ("tem", "madlib"),
    strategies: Annotated[
        tuple[Strategy, ...],
        option("S1 to S4", "S,S", name="--strategy", converter=several(strategy), n_tokens=1),
    ] = ("S3",),
    words: ChosenModel = ChosenModel(),  # noqa: B008  # frozen
    text_column: Annotated[tuple[str, ...], option("of FILE; can be given several times", "NAME")] = ("text",),
    json: Json = False,
) -> int:
    """Find the epsilon at which a reader gets back so many words.

    A reader who knows mechanism, words, epsilon and how frequent each word is decodes the output word by word. For each
    mechanism and strategy: the epsilon at which that reader is expected to name a share R of the perturbed words (or
    of the rare ones, ...), and what she then names and what comes out unchanged in each frequency band. It follows
    from public things alone, so it may be published, and `lexveil privatize --recovery R` uses it. Spends nothing, and
    keeps what it computed for the next call. Exit code 1 if no epsilon gives R for any of them.

      lexveil calibrate --recovery 0.1
      lexveil calibrate --recovery 0.05 --band rare --mechanism all --strategy S1,S3
      lexveil calibrate letters.jsonl --recovery 0.1 --mechanism tem --json
    """
    if "none" in strategies:
        raise RequestError("--strategy none leaves texts as they are; name S1, S2, S3 or S4")
    file = source if source in (None, "-") else Path(str(source)).absolute()
    anywhere()
    from lexveil.artifacts.model import Model
    from lexveil.mechanisms.registry import MECHANISMS
    from lexveil.recovery import calibrate as calibration

    using = Model.load(None, words.name)
    mechanisms = tuple(MECHANISMS) if "all" in mechanism else mechanism
    result = calibration.calibrate(using, recovery, mechanisms, strategies, band)
    if file is not None:
        from lexveil.privatization.looking.inspect import with_texts

        result = with_texts(result, file, tuple(dict.fromkeys(text_column)), using)
    show(result.to_dict() if json else result, json, calibration.as_text)
    return 0 if any(run.epsilon is not None for run in result.runs) else 1
