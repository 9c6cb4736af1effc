"""`lexveil collocations`: look collocations up."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from lexveil.cli.options import Count, Json, exclusive
from lexveil.cli.output import in_project, show

QUESTION = exclusive(required=True)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which collocations are shown, and in which order.

    Attributes:
        by: what is best: count, pmi_bits (the default), or another measure that params.yaml asks for
        length: only pairs, or only triples of words
        min_count: only what the corpus has N times or more
        limit: how many with --word (default: 30)
    """

    by: Annotated[str | None, Parameter(metavar="MEASURE")] = None
    length: Literal[2, 3] | None = None
    min_count: Count | None = None
    limit: Count | None = None


def collocations(
    text: Annotated[str | None, Parameter(name="TEXT", group=QUESTION)] = None,
    /,
    *,
    top: Annotated[Count | None, Parameter(group=QUESTION)] = None,
    word: Annotated[str | None, Parameter(metavar="W", group=QUESTION)] = None,
    filters: Filters = Filters(),  # frozen
    json: Json = False,
) -> int:
    """Look collocations up, and see how they cut a text.

    Of a text: every collocation in it with its count and measures, and its sentences cut by word, gst, mst and
    mst_exact with their total PMI, as the corpus is cut. Or the best collocations, of all or of one word.
    Needs the artifacts of `lexveil run`.

        lexveil collocations "New York City is in the United States"
        lexveil collocations --top 20 --by count --length 3
        lexveil collocations --word york --json

    Args:
        text: the text; - is standard input
        top: the N best collocations
        word: the collocations that W takes part in, best first
    """
    in_project()
    from lexveil.collocations import lookup

    show(lookup.look_up(text, top, word, **asdict(filters)), json, lookup.as_text)
    return 0
