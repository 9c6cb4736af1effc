"""`lexveil inspect`: what rewriting a file would do."""

from __future__ import annotations

from typing import Annotated

from lexveil.cli.options import Json, Stream, option
from lexveil.cli.output import anywhere, located, show
from lexveil.cli.rewriting import Mechanism, Rewriting, StrategyOption
from lexveil.errors import RequestError


def inspect(
    source: Annotated[
        Stream, option("file or folder to look at; the address of a database; - is standard input", name="IN")
    ],
    /,
    *,
    mechanism: Mechanism | None = None,
    strategy: StrategyOption | None = None,
    how: Rewriting = Rewriting(),  # noqa: B008  # frozen
    show_examples: Annotated[
        bool, option("name the most frequent words that would be unprotected, and unknown ones: they are source text")
    ] = False,
    json: Json = False,
) -> int:
    """What `lexveil privatize` would do with a file, without doing it.

    Reads a file or folder and says how many of its words the vocabulary knows, what would be unprotected, how
    the budget would be spread, how much would change, and how long it would take. Writes and spends nothing.
    Mechanism, strategy and epsilon (or the level of recovery, where the grid has no epsilon) default to those in the
    middle of the grid of params.yaml. Works
    anywhere, as `lexveil privatize`.

      lexveil inspect letters.jsonl
      lexveil inspect tickets.csv --text-column body --mechanism tem --strategy S3 --epsilon 5 --show-examples
    """
    file = located(source)
    anywhere()
    from lexveil.privatization import inspection
    from lexveil.privatization.model import Model

    request = how.keywords()
    using = Model.load(name=request.pop("model"))
    grid = using.params.grid
    mechanism = mechanism or grid.mechanisms[0]
    strategy = strategy or ("S3" if "S3" in grid.strategies else grid.strategies[0])
    if all(request[name] is None for name in ("epsilon", "document_budget", "recovery")):
        if grid.epsilons:
            request["epsilon"] = sorted(grid.epsilons)[len(grid.epsilons) // 2]
        else:
            request |= {"recovery": sorted(grid.recovery)[len(grid.recovery) // 2], "band": grid.recovery_band}
    if "none" in (mechanism, strategy):
        raise RequestError("inspect: none leaves texts as they are; name a mechanism and a strategy, or neither")
    result = inspection.inspect(
        file, show_examples=show_examples, project=using, mechanism=mechanism, strategy=strategy, **request
    )
    show(result.to_dict() if json else result, json, inspection.as_text)
    return 0
