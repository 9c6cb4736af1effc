"""Names of files and columns as messages show them. No message quotes a text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from lexveil.base.errors import RequestError


@lru_cache(maxsize=256)
def shown(path: Path | str) -> str:
    """Return a path, or another name, as one printable line."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in str(path)
    )


def is_utf8(path: str) -> bool:
    """Return whether a path can be written as UTF-8. A path with other bytes has surrogates in
    their place.
    """
    with suppress(UnicodeEncodeError):
        return bool(path.encode())
    return False


# environment variable: the value 1 hides the names of columns in messages
HIDES = "LEXVEIL_HIDE_COLUMNS"
HIDDEN = "(hidden)"


def name(column: str) -> str:
    """Return a column's name for a message. A name that does not look like a name is hidden,
    because it may be a text of a file without a header.
    """
    if os.environ.get(HIDES):
        return HIDDEN
    if not column:
        return "(no name)"
    return (
        f"`{column}`"
        if re.fullmatch(r"[\w.:/\[\]-]{1,40}( [\w.:/-]{1,20}){0,2}", column)
        else "(not a name)"
    )


def is_name(column: str) -> bool:
    """Return whether the name of a column is surely a name: one word that consists of a letter and
    further letters and digits. A cell of a row without a header hardly ever has this form.
    """
    return bool(re.fullmatch(r"[^\W\d_]\w{0,39}", column))


def is_path(path: str) -> bool:
    """Return whether each key of a path to nested texts is surely a name."""
    return all(map(is_name, path.replace("[]", "").split(".")))


PERSON = re.compile(
    r"(account|author|buyer|caller|citizen|client|contact|customer|email|employee|guest|member|"
    r"owner|patient|person|phone|reporter|requester|sender|student|subscriber|user|username)s?",
    re.IGNORECASE,
)


def is_of_persons(column: str) -> bool:
    """Return whether the name of a column suggests that the column identifies the person of a row.
    Examples are customer_name, userId and e-mail.
    """
    return any(
        PERSON.fullmatch(word)
        for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", column.replace("-", ""))
    )


def is_a_value(column: str) -> bool:
    """Return whether the supposed name of a column has no letter, so that it is a number, a date or
    empty. It is then probably the cell of a file without a header.
    """
    return not re.search(r"[^\W\d_]", column)


def names(columns: Iterable[str]) -> str:
    """Return a list of at most twenty names for a message."""
    listed = [name(column) for column in columns]
    if HIDDEN in listed:
        return HIDDEN
    more = f" and {len(listed) - 20} more" if len(listed) > 20 else ""
    hint = " (is the first line a header?)" if "(not a name)" in listed else ""
    return ", ".join(listed[:20]) + more + hint


class NoColumnError(RequestError):
    """Error about a requested column that a table does not have. The message lists the columns of
    the table, unless one of them does not look like a name.

    In a file without a header, the columns would be the cells of the first row, which could be
    texts.

    Attributes:
        columns: the columns of the table.
    """

    def __init__(self, where: str, column: str, columns: Iterable[str], hint: str) -> None:
        self.columns = list(columns)
        has = f": {names(self.columns)}" if all(map(is_name, self.columns)) else ""
        super().__init__(
            f"{where}: there is no column {name(column)} among its "
            f"{len(self.columns):,}{has}; {hint}"
        )


def require_distinct(columns: Sequence[str], where: str) -> None:
    """Check that no two columns have the same name.

    Raises:
        RequestError: if two columns have the same name; the message has their numbers.
    """
    for number, column in enumerate(columns, 1):
        if (first := columns.index(column) + 1) < number:
            raise RequestError(
                f"{where}: columns {first} and {number} have the same name; rename one"
            )


def no_documents(file: str) -> RequestError:
    """Return the error for a file without any row."""
    return RequestError(
        f"{file}: the input is empty and has no document; remove it, or add documents to it"
    )
