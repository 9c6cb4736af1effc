"""The format JSON lines, with one object per line; blank lines are skipped. The bytes between the
rewritten texts are written back unchanged.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import IO, Any

from lexveil.base.errors import RequestError, option
from lexveil.io.formats.base import InputRow, InputTable, Source, TableRequest
from lexveil.io.formats.chunks import Chunk, Matches, Texts
from lexveil.io.formats.lines import LineFormat, LineWriter, described, open_lines
from lexveil.io.formats.messages import name, no_documents
from lexveil.io.formats.values import type_name

# Patterns for an object that is known to be valid: a key and its colon; a string or another value
# without nested values; the characters after a value.
_KEY = re.compile(r'[ \t\n\r]*"([^"\\]*(?:\\.[^"\\]*)*)"[ \t\n\r]*:[ \t\n\r]*', re.DOTALL)
_PLAIN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[^\[{",}\] \t\n\r]+', re.DOTALL)
_END = re.compile(r"[ \t\n\r]*([,}\]])")
_SPACE = re.compile(r"[ \t\n\r]*")
# A path to texts inside a column. It consists of keys that are separated by dots, with [] after a
# key for each level of lists below the key.
_PATH = re.compile(r"[^.\[\]]+(?:\[\])*(?:\.[^.\[\]]+(?:\[\])*)*")
_EACH = None  # step of a path to every element of a list
_Path = tuple[str | None, ...]
_DECODER = json.JSONDecoder()
_ENCODER = json.JSONEncoder(ensure_ascii=False)
LOOKED_AT = 200  # number of rows that determine the types of columns


class JsonLines(LineFormat):
    """JSON Lines files, with one object per line."""

    name = "jsonl"
    title = "JSON lines"
    endings = ("json", "jsonl", "ndjson")

    def table(  # noqa: D102
        self, stream: IO[bytes], source: Source, request: TableRequest
    ) -> InputTable:
        text = open_lines(stream, source)
        rows = _rows(text.lines, source.shown, request.columns)
        first = next(rows, None)
        if first is None:
            raise no_documents(source.shown)
        columns = list(first.values)
        rows = itertools.chain([first], rows)
        paths = {
            column: path
            for column in request.texts
            if column not in columns and (path := _path_of(column)) is not None
        }
        if paths and request.spans is not None:
            raise RequestError(
                f"{source.shown}: {option('spans_column')} counts characters of texts in "
                f"columns, not of texts at a path such as {name(next(iter(paths)))}; use "
                "only one of the two"
            )
        if paths:
            rows = _with_matches(rows, source, paths)
        return described(replace(InputTable(source, columns, rows), paths=paths), text)

    def text_columns(self, table: InputTable) -> list[str]:
        """Return the keys whose value is a string in one of the first rows, or null in all of them.
        The types that occur are not secret, because they are published.
        """
        kinds = dict[str, set[type]]()
        for row in itertools.islice(table.rows, LOOKED_AT):
            for key, value in row.values.items():
                kinds.setdefault(key, set()).add(type(value))
        return [key for key, types in kinds.items() if str in types or types == {type(None)}]

    def nested_texts(self, table: InputTable) -> list[str]:
        """Return the paths of strings that are nested in columns of the first rows."""
        rows = itertools.islice(table.rows, LOOKED_AT)
        values = (item for row in rows for item in row.values.items())
        paths = dict.fromkeys(path for key, value in values for path in _nested(value, key))
        return [path for path in paths if _path_of(path) is not None]

    def rest(self, row: InputRow, table: InputTable, request: TableRequest) -> Any:  # noqa: D102
        if table.paths:
            where = table.source.location(row.line)
            return _cut_within(row.raw, request.texts, table.paths, where)
        return _cut(row.raw, request.rewritten)

    def encode(  # noqa: D102
        self,
        chunk: Chunk,
        texts: Texts,
        rows: Sequence[int],
        writer: LineWriter,  # noqa: ARG002
    ) -> str:
        every = [*texts]
        if chunk.widths is not None:
            starts = [0, *itertools.accumulate(chunk.widths)]
            cells = (
                (pieces, [starts[column] + place for column, place in matches])
                for pieces, matches in (chunk.rest[row] for row in rows)
            )
            return "".join(map(_joined, cells, (every[row] for row in rows)))
        return "".join([_joined(chunk.rest[row], every[row]) for row in rows])


def _rows(lines: Iterable[str], where: str, columns: Sequence[str]) -> Iterator[InputRow]:
    number = 0
    keys = [_ENCODER.encode(column) for column in columns]
    for line_number, line in enumerate(lines, 1):
        if line.strip():
            number += 1
            place = f"{where}, line {line_number}"
            values = _object(line, place, number == 1)
            # Without an escape sequence, a duplicate key is also written twice.
            if "\\u" in line or "\\/" in line or any(line.count(key) > 1 for key in keys):
                _require_distinct_keys(line, columns, place)
            yield InputRow(number, line_number, values, line)


def _object(line: str, where: str, is_first: bool) -> dict[str, object]:
    """Parse a line as a JSON object.

    Raises:
        RequestError: if the line contains anything else; the message names ``where``.
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
        raise RequestError(
            f"{where}: a number is too long, or the object is nested too deep; simplify the object"
        ) from None
    if not isinstance(values, dict):
        raise RequestError(
            f"{where}: the line has {type_name(values)}, not a JSON object; write one "
            "object per line"
        )
    return values


def _path_of(column: str) -> _Path | None:
    """Parse the name of a column as a path into nested JSON, and return its steps. The result is
    None if the name is a plain column name.
    """
    if not _PATH.fullmatch(column) or not ("." in column or "[]" in column):
        return None
    return tuple(step or _EACH for step in column.replace("[]", ".").split("."))


def _nested(value: object, path: str) -> Iterator[str]:
    """Yield the paths of the strings inside a nested JSON value. Paths through a key that the
    syntax cannot express are omitted.
    """
    if isinstance(value, str):
        yield path
    members: Iterable[tuple[str, object]] = ()
    if isinstance(value, list):
        members = ((f"{path}[]", member) for member in value)
    elif isinstance(value, dict):
        members = ((f"{path}.{key}", member) for key, member in value.items())
    for inner, member in members:
        if _PATH.fullmatch(inner):
            yield from _nested(member, inner)


def _with_matches(
    rows: Iterable[InputRow], source: Source, paths: Mapping[str, _Path]
) -> Iterator[InputRow]:
    """Yield rows to which columns are added: for each path, the nested values that the path matches
    in the row.
    """
    for row in rows:
        values = dict[str, object]()
        for column, path in paths.items():
            where = f"{source.location(row.line)}: {name(column)}"
            spans = _matches(row.raw, row.raw.index("{"), path, where)
            values[column] = Matches(json.loads(row.raw[start:end]) for start, end in spans)
        yield row._replace(values={**row.values, **values})


def _matches(line: str, start: int, path: _Path, where: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each value that a path matches inside the JSON value that
    begins at ``start``.

    Raises:
        RequestError: if an object on the way lacks the next key or repeats it, or if a value is not
            the expected list or object. Without the error, a text that the path misses would be
            published unchanged.
    """
    if not path:
        yield start, _end_of(line, start)
        return
    step = path[0]
    further = path[1:]
    if line.startswith("null", start):
        return
    kind, opening = ("a list", "[") if step is _EACH else ("an object", "{")
    if line[start] != opening:
        raise RequestError(
            f"{where} matches a value that is not {kind}; correct the path or the row"
        )
    if step is _EACH:
        for first in _elements(line, start):
            yield from _matches(line, first, further, where)
        return
    places = [first for key, first, _ in _members(line, start) if key == step]
    if len(places) != 1:
        fault = "repeats" if places else "lacks"
        raise RequestError(
            f"{where}: an object {fault} {name(step)}; every object must have this key "
            "once, with its text or null"
        )
    yield from _matches(line, places[0], further, where)


def _end_of(line: str, start: int) -> int:
    plain = _PLAIN.match(line, start)
    return plain.end() if plain is not None else _DECODER.raw_decode(line, start)[1]


def _elements(line: str, start: int) -> Iterator[int]:
    """Yield the start of each element of the valid JSON list that begins at ``start``."""
    position = _SPACE.match(line, start + 1).end()  # type: ignore[union-attr]
    while line[position] != "]":
        yield position
        position = _END.match(line, _end_of(line, position)).end()  # type: ignore[union-attr]
        if line[position - 1] == "]":
            return
        position = _SPACE.match(line, position).end()  # type: ignore[union-attr]


def _members(line: str, start: int | None = None) -> Iterator[tuple[str, int, int]]:
    """Yield each key of a valid JSON object, and the start and the end of the key's value in the
    line.

    Args:
        start: the position where the object begins; None means that the line is the object.
    """
    position = (line.index("{") if start is None else start) + 1
    while (member := _KEY.match(line, position)) is not None:
        position = member.end()
        key = member[1]
        if "\\" in key:
            key, _ = scanstring(line, member.start(1))
        end = _end_of(line, position)
        yield key, position, end
        position = _END.match(line, end).end()  # type: ignore[union-attr]
        if line[position - 1] == "}":
            break


def _require_distinct_keys(line: str, columns: Sequence[str], where: str) -> None:
    """Check that no column occurs twice as a key in the line of a valid JSON object. Of two values,
    this module could read one and another program the other.

    Raises:
        RequestError: if a column occurs twice; the message names it.
    """
    keys = set[str]()
    for key, _, _ in _members(line):
        if key in keys and key in columns:
            raise RequestError(f"{where}: duplicate key {name(key)} in the object; remove one")
        keys.add(key)


def _cut(line: str, columns: Sequence[str]) -> tuple[list[str], list[int]]:
    """Split the line of a valid JSON object, in which no column occurs twice, at the values of some
    columns.

    Returns:
        The pieces between the values, and the column number of each value, in the order of the
            line.
    """
    pieces = list[str]()
    numbers = list[int]()
    start = 0
    for key, position, end in _members(line):
        if key in columns:
            pieces.append(line[start:position])
            numbers.append(columns.index(key))
            start = end
    return [*pieces, line[start:]], numbers


def _cut_within(
    line: str, columns: Sequence[str], paths: Mapping[str, _Path], where: str
) -> tuple[list[str], list[tuple[int, int]]]:
    """Split a line of JSON at the values of columns and at the nested values that paths match.

    Returns:
        The pieces between the values, and for each value the number of its column and its position
            among the values of that column.
    """
    matches = [
        (first, end, number, place)
        for number, column in enumerate(columns)
        for place, (first, end) in enumerate(
            _matches(
                line, line.index("{"), paths.get(column, (column,)), f"{where}: {name(column)}"
            )
        )
    ]
    pieces = list[str]()
    cells = list[tuple[int, int]]()
    start = 0
    for first, end, number, place in sorted(matches):
        pieces.append(line[start:first])
        cells.append((number, place))
        start = end
    return [*pieces, line[start:]], cells


def _joined(rest: tuple[list[str], list[int]], texts: Sequence[str | None]) -> str:
    pieces, order = rest
    parts = [pieces[0]]
    for number, piece in zip(order, pieces[1:], strict=True):
        parts += (_ENCODER.encode(texts[number]), piece)
    return "".join(parts) if parts[-1].endswith("\n") else "".join(parts) + "\n"
