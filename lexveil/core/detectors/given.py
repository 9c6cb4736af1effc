"""Given spans: sensitive spans that the user supplies with the texts, in a column or as a value
for each text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from lexveil.base.errors import RequestError
from lexveil.core.text.spans import Span

FORM = '[{"start": 8, "end": 18, "type": "PERSON"}]'
_TYPE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_KEYS = {"start", "end", "type", "column", "score"}


class GivenSpan(NamedTuple):
    """Span supplied by the user in one text of a document; ``column`` is the number of the text
    column.
    """

    column: int
    span: Span


GivenSpans = Sequence[GivenSpan]  # the spans of one document


def type_name(text: object) -> str | None:
    """Return the name of an entity type in capitals; None if ``text`` is not a valid name. Type
    names are published, so they must be names and not arbitrary texts.
    """
    name = text.strip().upper() if isinstance(text, str) else ""
    return name if _TYPE.fullmatch(name) else None


def given_spans(
    value: Any, texts: Sequence[str | None], columns: Sequence[str], where: str
) -> GivenSpans:
    """Parse the spans that the user supplies for a document.

    Args:
        value: a list of objects with start, end and type, or that list as JSON; null, '' and []
            mean that the document has no spans.
        texts: the text of each column; start and end count its characters.
        columns: names of the text columns; if there are several, each span must name its column.
        where: location of the value, for messages, which do not quote the value.

    Raises:
        RequestError: if the value is not a list of spans, or a span does not lie in its text.
    """
    if isinstance(value, str) and value:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise RequestError(f"{where}: not valid JSON; write a list such as {FORM}") from None
    if hasattr(value, "tolist"):  # pandas gives lists as NumPy arrays
        value = value.tolist()
    if value is None or value == "":
        return []
    if isinstance(value, dict) or not isinstance(value, Sequence):
        raise RequestError(f"{where}: this is not a list of spans; write a list such as {FORM}")
    return [
        _given(item, texts, columns, f"{where}, span {number}")
        for number, item in enumerate(value, 1)
    ]


def _given(item: Any, texts: Sequence[str | None], columns: Sequence[str], where: str) -> GivenSpan:
    if isinstance(item, Span):
        item = item._asdict()
    if not isinstance(item, dict) or not {"start", "end", "type"} <= set(item) or set(item) - _KEYS:
        raise RequestError(
            f"{where}: a span must have start, end and type, and may have column; write spans as "
            f"in {FORM}"
        )
    column_name = item.get("column")
    if column_name is None and len(columns) > 1:
        raise RequestError(
            f"{where}: the span has no column; there are several text columns, so each span must "
            "name its column"
        )
    if column_name is not None and column_name not in columns:
        raise RequestError(f"{where}: the column of the span is not one of the text columns")
    column = 0 if column_name is None else list(columns).index(column_name)
    start = item["start"]
    end = item["end"]
    name = type_name(item["type"])
    text = texts[column]
    if name is None:
        raise RequestError(
            f"{where}: the type of the span is not a name; types are published, so use only "
            "letters, digits and _"
        )
    if not {type(start), type(end)} <= {int}:
        raise RequestError(f"{where}: start and end of a span must be whole numbers")
    if not 0 <= start < end <= len(text or ""):
        raise RequestError(
            f"{where}: the span is empty or lies outside its text; start and end count characters "
            "(Unicode code points) from 0, and end is the position after the last character"
        )
    return GivenSpan(column, Span(start, end, name))
