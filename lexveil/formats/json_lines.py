"""JSON lines: one object per line; blank lines are skipped. What is between the texts is written
back as it was.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import IO, Any

from lexveil.errors import RequestError
from lexveil.formats.base import InputRow, InputTable, Source, TableRequest
from lexveil.formats.chunks import Chunk, Texts
from lexveil.formats.lines import LineFormat, LineWriter, described, open_lines
from lexveil.formats.messages import name, no_documents
from lexveil.formats.values import type_name

# Of an object that is known to be valid: a key and its colon; a string or another value that holds
# no other; what follows a value.
_KEY = re.compile(r'[ \t\n\r]*"([^"\\]*(?:\\.[^"\\]*)*)"[ \t\n\r]*:[ \t\n\r]*', re.DOTALL)
_PLAIN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[^\[{",}\] \t\n\r]+', re.DOTALL)
_END = re.compile(r"[ \t\n\r]*([,}])")
_DECODER = json.JSONDecoder()
_ENCODER = json.JSONEncoder(ensure_ascii=False)
LOOKED_AT = 200  # rows, whose values have the types of columns


class JsonLines(LineFormat):
    """Objects, one per line."""

    name = "jsonl"
    title = "JSON lines"
    endings = ("json", "jsonl", "ndjson")

    def table(self, stream: IO[bytes], source: Source, request: TableRequest) -> InputTable:  # noqa: D102
        text = open_lines(stream, source)
        rows = _rows(text.lines, source.shown, request.columns)
        first = next(rows, None)
        if first is None:
            raise no_documents(source.shown)
        table = InputTable(source, list(first.values), itertools.chain([first], rows))
        return described(table, text)

    def text_columns(self, table: InputTable) -> list[str]:
        """The keys of the first rows that have a string, or nothing but null; types of values are
        published as they are.
        """
        kinds = dict[str, set[type]]()
        for row in itertools.islice(table.rows, LOOKED_AT):
            for key, value in row.values.items():
                kinds.setdefault(key, set()).add(type(value))
        return [key for key, found in kinds.items() if str in found or found == {type(None)}]

    def rest(self, row: InputRow, table: InputTable, request: TableRequest) -> Any:  # noqa: ARG002, D102
        return _cut(row.raw, request.rewritten)

    def encode(self, chunk: Chunk, texts: Texts, rows: Sequence[int], writer: LineWriter) -> str:  # noqa: ARG002, D102
        every = [*texts]
        return "".join([_joined(chunk.rest[row], every[row]) for row in rows])


def _rows(lines: Iterable[str], where: str, columns: Sequence[str]) -> Iterator[InputRow]:
    number = 0
    keys = [_ENCODER.encode(column) for column in columns]
    for line_number, line in enumerate(lines, 1):
        if line.strip():
            number += 1
            place = f"{where}, line {line_number}"
            values = _object(line, place, number == 1)
            # Without an escape a key that stands twice is written twice.
            if "\\u" in line or "\\/" in line or any(line.count(key) > 1 for key in keys):
                _require_distinct_keys(line, columns, place)
            yield InputRow(number, line_number, values, line)


def _object(line: str, where: str, is_first: bool) -> dict[str, object]:
    """The object that a line holds.

    Raises:
        RequestError: naming ``where``, if it holds anything else.
    """
    try:
        values = json.loads(line)
    except json.JSONDecodeError as error:
        is_array = is_first and line.lstrip()[0] == "["
        hint = (
            "a JSON array must become one object per line"
            if is_array
            else "each line must hold one whole object"
        )
        raise RequestError(
            f"{where}: not valid JSON at character {error.pos + 1}; {hint}"
        ) from None
    except (ValueError, RecursionError):
        raise RequestError(f"{where}: a number too long or nested too deep; simplify it") from None
    if not isinstance(values, dict):
        raise RequestError(
            f"{where}: {type_name(values)}, not a JSON object; write one object per line"
        )
    return values


def _members(line: str) -> Iterator[tuple[str, int, int]]:
    """Each key of a valid object, and where its value begins and ends in the line."""
    position = line.index("{") + 1
    while (member := _KEY.match(line, position)) is not None:
        position, key = member.end(), member[1]
        if "\\" in key:
            key, _ = scanstring(line, member.start(1))
        plain = _PLAIN.match(line, position)
        end = plain.end() if plain is not None else _DECODER.raw_decode(line, position)[1]
        yield key, position, end
        position = _END.match(line, end).end()  # type: ignore[union-attr]
        if line[position - 1] == "}":
            break


def _require_distinct_keys(line: str, columns: Sequence[str], where: str) -> None:
    """See that no column occurs twice in the line of a valid object: the second would hide the
    first from this reader, and the first the second from others.

    Raises:
        RequestError: naming the column.
    """
    keys = set[str]()
    for key, _, _ in _members(line):
        if key in keys and key in columns:
            raise RequestError(f"{where}: duplicate key {name(key)} in the object; remove one")
        keys.add(key)


def _cut(line: str, columns: Sequence[str]) -> tuple[list[str], list[int]]:
    """Cut the line of a valid object, in which no column occurs twice, at the values of some
    columns.

    Returns:
        What is between the values, and the number of each value's column, in the order of the line.
    """
    pieces, numbers, start = list[str](), list[int](), 0
    for key, position, end in _members(line):
        if key in columns:
            pieces.append(line[start:position])
            numbers.append(columns.index(key))
            start = end
    return [*pieces, line[start:]], numbers


def _joined(rest: tuple[list[str], list[int]], texts: Sequence[str | None]) -> str:
    pieces, order = rest
    parts = [pieces[0]]
    for number, piece in zip(order, pieces[1:], strict=True):
        parts += (_ENCODER.encode(texts[number]), piece)
    return "".join(parts) if parts[-1].endswith("\n") else "".join(parts) + "\n"
