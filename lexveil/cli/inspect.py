"""`lexveil inspect`: what rewriting a file would do."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from lexveil.cli.options import Json, ModelName, Stream, option
from lexveil.cli.output import anywhere, located, show
from lexveil.cli.rewriting import Looking, option_name, written
from lexveil.errors import RequestError
from lexveil.request import BUDGETS, FileRequest

if TYPE_CHECKING:
    from lexveil.config import GridParams


def inspect(
    source: Annotated[
        Stream, option("file or folder to look at; the address of a database; - is standard input", name="IN")
    ],
    /,
    *,
    how: Looking = Looking(),  # noqa: B008  # frozen
    model: ModelName = None,
    show_examples: Annotated[
        bool, option("name the most frequent words that would be unprotected, and unknown ones: they are source text")
    ] = False,
    json: Json = False,
) -> int:
    """What `lexveil privatize` would do with a file, without doing it.

    Reads a file or folder and says how many of its words the vocabulary knows, what would be unprotected, how
    the budget would be spread, how much would change, and how long it would take. Writes and spends nothing.
    Mechanism, strategy and epsilon (or the level of recovery, where the grid has no epsilon) default to those of the
    grid of params.yaml, and standard error then says which: `lexveil privatize` has to be given them. Works anywhere,
    as it does.

      lexveil inspect letters.jsonl
      lexveil inspect tickets.csv --text-column body --mechanism tem --strategy S3 --epsilon 5 --show-examples
    """
    file = located(source)
    anywhere()
    from lexveil.artifacts.model import Model
    from lexveil.privatization.looking import inspect as inspection

    using = Model.load(name=model)
    asked = written(how)
    taken = _defaults(asked, using.params.grid)
    if "none" in (asked.get("mechanism"), asked.get("strategy")):
        raise RequestError("inspect: none leaves texts as they are; name a mechanism and a strategy, or neither")
    request = FileRequest.of(asked | taken, written=True)
    if taken:
        options = " ".join(f"{option_name(name)} {value}" for name, value in taken.items())
        grid = "the grid of params.yaml" if using.project.is_project else "the default grid"
        print(f"not named, so taken from {grid}: {options}; `lexveil privatize` takes none by itself", file=sys.stderr)
    result = inspection.inspect(file, request, show_examples=show_examples, project=using)
    show(result.to_dict() if json else result, json, inspection.as_text)
    return 0


def _defaults(asked: Mapping[str, Any], grid: GridParams) -> dict[str, object]:
    """What was not asked for, from the grid: its first mechanism, S3 if it has it, and its middle epsilon or level."""
    taken: dict[str, object] = {}
    if "mechanism" not in asked:
        taken["mechanism"] = grid.mechanisms[0]
    if "strategy" not in asked:
        taken["strategy"] = "S3" if "S3" in grid.strategies else grid.strategies[0]
    if not set(BUDGETS) & set(asked):
        if epsilons := grid.base_epsilons:
            taken["epsilon"] = sorted(epsilons)[len(epsilons) // 2]
        else:
            levels = sorted(level.share for level in grid.levels)
            taken |= {"recovery": levels[len(levels) // 2], "band": grid.recovery_band}
    return taken
