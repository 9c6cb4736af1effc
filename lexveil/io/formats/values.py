"""Checks of single table values: texts, labels and ids."""

from __future__ import annotations

import datetime
import decimal
import math
import re
import uuid
from typing import TYPE_CHECKING, Any

from lexveil.base.errors import RequestError
from lexveil.io.formats.messages import name

if TYPE_CHECKING:
    import pyarrow as pa

TYPE_NAMES = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    decimal.Decimal: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
    bytes: "bytes",
}
CONTROL = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]")


def text_value(value: object, column: str, where: str) -> str | None:
    """Check the text of a document and return it; return None for null.

    Raises:
        RequestError: if the value is not a string, or is a string that a later step cannot store (a
            NUL character, an unpaired surrogate).
    """
    if value is None:
        return None
    if isinstance(value, float) and math.isnan(value):
        raise RequestError(
            f"{where}: {name(column)} is missing (NaN); remove the row, or write '' in its place"
        )
    if not isinstance(value, str):
        raise RequestError(
            f"{where}: {name(column)} has {type_name(value)}, not text; every text must be a string"
        )
    if "\x00" in value:
        raise RequestError(f"{where}: {name(column)} holds a NUL character; remove it")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise RequestError(
            f"{where}: {name(column)} holds an unpaired surrogate; remove it"
        ) from None
    return value


def plain_value(value: object, column: str, where: str, one_line: bool = True) -> str | None:
    """Return a label or id as a plain string. 1.0 becomes 1, 1e-7 becomes 0.0000001, and true and
    false are written as in JSON. Null, NaN and '' become None.

    A whole float loses its .0, because tools without nullable integers write integers as floats.

    Raises:
        RequestError: if the value is a list, an object or bytes, or, if ``one_line``, a string with
            control characters.
    """
    value = _plain_scalar(value)
    if (
        value is None
        or value == ""
        or (isinstance(value, float | decimal.Decimal) and math.isnan(value))
    ):
        return None
    if isinstance(value, str):
        value = text_value(value, column, where)
        if one_line and value is not None and CONTROL.search(value):
            raise RequestError(
                f"{where}: {name(column)} holds a line break or another control character; "
                "remove it"
            )
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float | decimal.Decimal):
        if not math.isfinite(value):
            return str(value)
        return str(int(value)) if value == int(value) else format(decimal.Decimal(str(value)), "f")
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    raise RequestError(
        f"{where}: {name(column)} has {type_name(value)}; it must be a string or a number"
    )


def _plain_scalar(value: object) -> object:
    """Convert a NumPy scalar or a UUID to the Python value that it represents. Return any other
    value unchanged.

    A float32 becomes the shortest decimal number that rounds to it, such as .1.
    """
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, datetime.datetime) and value != value:  # noqa: PLR0124
        return None  # pandas' NaT is unequal to itself
    if type(value).__module__ != "numpy" or not hasattr(value, "item"):
        return value
    kind = type(value).__name__
    if kind.startswith("float"):
        return decimal.Decimal(str(value))
    plain = value.item()
    if kind == "datetime64" and isinstance(plain, int):  # a datetime64 in nanoseconds
        rough = value.astype("datetime64[us]")  # type: ignore[attr-defined]
        return rough.item() if rough == value else str(value)
    return plain


def exact_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return an Arrow column as a list of Python values. A float of 16 or 32 bits keeps its type,
    so that .1 stays .1 and does not become the nearest 64-bit number.
    """
    import numpy as np  # formats are declared without importing Arrow
    import pyarrow as pa

    values: list[Any] = column.to_pylist()
    kind = {pa.float16(): np.float16, pa.float32(): np.float32}.get(column.type)
    if kind is None:
        return values
    return [None if value is None else kind(value) for value in values]


def type_name(value: object) -> str:
    """Return the name of a value's type, for messages."""
    return TYPE_NAMES.get(type(value), "a value of another kind")
