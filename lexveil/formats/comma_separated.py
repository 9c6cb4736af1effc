"""CSV: a header, commas, quotes where needed."""

from __future__ import annotations

from lexveil.formats.delimited import Delimited
from lexveil.formats.registry import register


@register
class CommaSeparated(Delimited):
    """CSV."""

    name = "csv"
    title = "CSV"
    endings = ("csv",)
    rank = 2
    delimiter = ","
    separator = "comma"
