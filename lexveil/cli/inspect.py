"""`lexveil inspect`: what rewriting a file would do."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from lexveil.cli.options import CHOSEN, ChosenModel, Json
from lexveil.cli.output import anywhere, located, show
from lexveil.cli.rewriting import Looking, requested
from lexveil.errors import RequestError
from lexveil.request import FileRequest


def inspect(
    source: Annotated[str, Parameter(name="IN")],
    /,
    *,
    how: Looking = Looking(),  # noqa: B008  # frozen
    words: ChosenModel = CHOSEN,
    show_examples: bool = False,
    json: Json = False,
) -> int:
    """What `lexveil privatize` would do with a file, without doing it.

    Reads a file or folder and says how many of its words the vocabulary knows, what would be unprotected, how
    the budget would be spread, how much would change, and how long it would take. Writes and spends nothing.
    Works anywhere, and has the defaults of `lexveil privatize`.

        lexveil inspect tickets.csv
        lexveil inspect tickets.csv --protection strong --text-column body --show-examples
        lexveil inspect letters.jsonl --mechanism madlib --strategy S3 --epsilon 10

    Args:
        source: file or folder to look at; the address of a database; - is standard input
        show_examples: name the most frequent words that would be unprotected, and unknown ones: they are source text
    """
    file = located(source)
    anywhere()
    from lexveil.privatization.looking import inspect as inspection

    request = requested(how, FileRequest)
    if request.mechanism == "none":
        raise RequestError("inspect: none leaves texts as they are; name a mechanism and a strategy, or neither")
    result = inspection.inspect(file, request, show_examples=show_examples, model=words.name)
    show(result.to_dict() if json else result, json, inspection.as_text)
    return 0
