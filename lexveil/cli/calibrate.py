"""`lexveil calibrate`: choose epsilon by what a reader gets back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lexveil.cli.options import CHOSEN, STRATEGIES, ChosenModel, Json, Share
from lexveil.cli.output import anywhere, show
from lexveil.request import BandName


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Target:
    """What is sought.

    Attributes:
        recovery: the share of words that a best-informed reader is to name
        band: of which words, by their public frequency; content: all but function words
        mechanism: one or several, with commas between them; or all
        strategy: S1 to S4, one or several, with commas between them
    """

    recovery: Annotated[Share, Parameter(metavar="R")]
    band: BandName = "all"
    mechanism: Annotated[str, Parameter(metavar="M,M")] = "tem,madlib"
    strategy: Annotated[str, Parameter(metavar="S,S")] = "S3"


def calibrate(
    file: Annotated[str | None, Parameter(name="FILE")] = None,
    /,
    *,
    target: Target,
    words: ChosenModel = CHOSEN,
    text_column: Annotated[tuple[str, ...], Parameter(metavar="NAME")] = ("text",),
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

    Args:
        file: say also what would become of this file or folder; it changes no epsilon
        text_column: of FILE; can be given several times
    """
    strategies = tuple(STRATEGIES.get(name, name) for name in _names(target.strategy))
    source = file if file in (None, "-") else Path(file).absolute()
    anywhere()
    from lexveil.artifacts.model import Model
    from lexveil.mechanisms.registry import MECHANISMS
    from lexveil.recovery import calibrate as calibration

    model = Model.load(None, words.name)
    mechanisms = tuple(MECHANISMS) if target.mechanism == "all" else _names(target.mechanism)
    result = calibration.calibrate(model, target.recovery, mechanisms, strategies, target.band)
    if source is not None:
        from lexveil.privatization.looking.inspect import with_texts

        result = with_texts(result, source, tuple(dict.fromkeys(text_column)), model)
    show(result.to_dict() if json else result, json, calibration.as_text)
    return 0 if any(run.epsilon is not None for run in result.runs) else 1


def _names(written: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in written.split(","))
