"""`lexveil recommend`: which runs of the grid keep a limit."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from lexveil.cli.options import Json, Share
from lexveil.cli.output import in_project, show
from lexveil.request import BandName


def recommend(
    *,
    min_utility: Annotated[Share | None, Parameter(metavar="U")] = None,
    max_attack: Annotated[Share | None, Parameter(metavar="A")] = None,
    max_recovery: Annotated[Share | None, Parameter(metavar="R")] = None,
    band: BandName | Literal["listed"] = "all",
    dataset: Annotated[str | None, Parameter(metavar="NAME")] = None,
    setting: Literal["private", "clean"] = "private",
    json: Json = False,
) -> int:
    """Which runs of the grid keep a limit of utility or attack.

    Of the evaluated runs, those that no other beats in both utility and attack (macro F1) and that keep the
    limits, how sure that is, and which of them cannot be told apart. A run on which the attack cannot be told from
    that on clean texts is never recommended. Ends with exit code 1 if none keeps the limits.
    Needs the artifacts of `lexveil run` with documents that have a label and an attribute.

        lexveil recommend --min-utility 0.8
        lexveil recommend --min-utility 0.8 --max-recovery 0.1 --band rare
        lexveil recommend --max-attack 0.4 --dataset reviews --setting clean --json

    Args:
        min_utility: the smallest utility, macro F1
        max_attack: the largest success of the adaptive attacker, macro F1
        max_recovery: the largest share of replaced words that a reader gets back, with its interval
        band: of which words --max-recovery is
        dataset: only this data set (default: all that have both scores)
        setting: utility on rewritten texts or on clean ones
    """
    in_project()
    from lexveil.report import recommend as recommendation

    result = recommendation.recommend(
        min_utility=min_utility,
        max_attack=max_attack,
        max_recovery=max_recovery,
        band=band,
        dataset=dataset,
        setting=setting,
    )
    show(result, json, recommendation.as_text)
    return 0 if any(found["fitting"] for found in result["datasets"].values()) else 1
