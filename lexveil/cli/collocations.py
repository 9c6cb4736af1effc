"""`lexveil collocations`: look collocations up."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from lexveil.association import MEASURES
from lexveil.cli.options import Count, Json, Stream, exclusive, option
from lexveil.cli.output import in_project, show

QUESTION = exclusive("question", required=True)


def collocations(
    text: Annotated[Stream | None, option("the text; - is standard input", name="TEXT", group=QUESTION)] = None,
    /,
    *,
    top: Annotated[Count | None, option("the N best collocations", group=QUESTION)] = None,
    word: Annotated[
        str | None, option("the collocations that W takes part in, best first", "W", group=QUESTION)
    ] = None,
    by: Annotated[
        str | None,
        Parameter(
            metavar="MEASURE",
            help="what is best: count, pmi_bits (the default), and as params.yaml asks for them "
            + ", ".join(measure.column for measure in MEASURES[1:]),
        ),
    ] = None,
    length: Annotated[Literal[2, 3] | None, option("only pairs, or only triples of words")] = None,
    min_count: Annotated[Count | None, option("only what the corpus has N times or more")] = None,
    limit: Annotated[Count | None, option("how many with --word (default: 30)")] = None,
    json: Json = False,
) -> int:
    """Look collocations up, and see how they cut a text.

    Of a text: every collocation in it with its count and measures, and its sentences cut by word, gst, mst and
    mst_exact with their total PMI, as the corpus is cut. Or the best collocations, of all or of one word.
    Needs the artifacts of `lexveil run`.

      lexveil collocations "New York City is in the United States"
      lexveil collocations --top 20 --by count --length 3
      lexveil collocations --word york --json
    """
    in_project()
    from lexveil.collocations import lookup

    result = lookup.look_up(text, top, word, by=by, length=length, min_count=min_count, limit=limit)
    show(result, json, lookup.as_text)
    return 0
