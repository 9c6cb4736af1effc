"""Columns of every type that Arrow has, with extreme values, for tests that send them through."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

UNITS = ("s", "ms", "us", "ns")
BIG = 2**63 - 1
DAY = datetime.date(2026, 3, 1)


def _plain() -> Iterator[tuple[pa.DataType, list[Any]]]:
    """Types that hold no other, and three values of each, one of which is null."""
    yield pa.null(), [None, None, None]
    yield pa.bool_(), [True, None, False]
    for size in (8, 16, 32, 64):
        yield getattr(pa, f"int{size}")(), [-(2 ** (size - 1)), None, 2 ** (size - 1) - 1]
        yield getattr(pa, f"uint{size}")(), [0, None, 2**size - 1]
    yield pa.float16(), [np.float16(0.1), None, np.float16(6e4)]
    yield pa.float32(), [0.1, None, float("-inf")]
    yield pa.float64(), [0.1, None, 5e-324]
    for kind, digits in (
        (pa.decimal32(9, 2), 9),
        (pa.decimal64(18, 2), 18),
        (pa.decimal128(38, 2), 38),
        (pa.decimal256(76, 2), 76),
    ):
        yield kind, [decimal.Decimal(f"{'9' * (digits - 2)}.99"), None, decimal.Decimal("-0.01")]
    for text in (pa.string(), pa.large_string(), pa.string_view()):
        yield text, ["é", None, "a longer string than fits into a view"]
    for raw in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield raw, [b"\xff\x00", None, b"a longer string than fits into a view"]
    yield pa.binary(2), [b"\xff\x00", None, b"ab"]
    yield pa.date32(), [DAY, None, datetime.date(1, 1, 1)]
    yield pa.date64(), [DAY, None, datetime.date(1, 1, 1)]
    for unit in UNITS[:2]:
        yield pa.time32(unit), [1, None, 86_399]
    for unit in UNITS[2:]:
        yield pa.time64(unit), [1, None, 86_399]
    for unit in UNITS:
        for zone in (None, "UTC", "Europe/Berlin", "+02:00"):
            yield pa.timestamp(unit, zone), [BIG // 10**9 if unit == "s" else BIG, None, -1]
        yield pa.duration(unit), [BIG, None, -1]
    yield pa.month_day_nano_interval(), [(1, -2, 3), None, (-(2**31), 2**31 - 1, -(2**63))]


def _column(kind: pa.DataType, values: list[Any]) -> pa.Array:
    return pa.array(values, kind)


def _nested(name: str, array: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """Columns of types that hold another: three values, one null."""
    offsets = pa.array([0, 2, None, 3], pa.int32())
    field = pa.field("x", array.type)
    yield f"list of {name}", pa.ListArray.from_arrays(offsets, array)
    large = offsets.cast(pa.int64())
    yield f"large list of {name}", pa.LargeListArray.from_arrays(large, array)
    yield f"fixed list of {name}", pa.FixedSizeListArray.from_arrays(array, 1)
    starts = pa.array([1, 0, 0], pa.int32())
    sizes = pa.array([2, 1, 0], pa.int32())
    yield f"list view of {name}", pa.ListViewArray.from_arrays(starts, sizes, array)
    yield (
        f"large list view of {name}",
        pa.LargeListViewArray.from_arrays(starts.cast(pa.int64()), sizes.cast(pa.int64()), array),
    )
    mask = pa.array([False, True, False])
    yield f"struct of {name}", pa.StructArray.from_arrays([array], fields=[field], mask=mask)
    yield f"map of {name}", pa.MapArray.from_arrays(offsets, pa.array(["k", "l", "m"]), array)
    types = pa.array([0, 1, 0], pa.int8())
    places = pa.array([0, 0, 2], pa.int32())
    other = pa.array([5, 6, 7], pa.int64())
    yield f"dense union of {name}", pa.UnionArray.from_dense(types, places, [array, other])
    yield f"sparse union of {name}", pa.UnionArray.from_sparse(types, [array, other])
    ends = pa.array([1, 2, 3], pa.int32())
    if not pa.types.is_null(array.type):
        yield f"run-end encoded {name}", pa.RunEndEncodedArray.from_arrays(ends, array)


def _dictionaries() -> Iterator[tuple[str, pa.Array]]:
    for index in (pa.int8(), pa.uint16(), pa.int32(), pa.int64()):
        for values in (pa.array(["b", "a"]), pa.array([7, 5], pa.int16())):
            for is_ordered in (False, True):
                places = pa.array([1, None, 0], index)
                array = pa.DictionaryArray.from_arrays(places, values, ordered=is_ordered)
                yield f"{array.type}", array


def _extensions() -> Iterator[tuple[str, pa.Array]]:
    stored = {
        "uuid": (pa.uuid(), pa.array([b"0" * 16, None, b"\xff" * 16], pa.binary(16))),
        "json": (pa.json_(pa.string()), pa.array(['{"a": 1}', None, "[]"])),
        "large json": (pa.json_(pa.large_string()), pa.array(["1", None, "[]"], pa.large_string())),
        "bool8": (pa.bool8(), pa.array([1, None, 0], pa.int8())),
    }
    for name, (kind, storage) in stored.items():
        yield name, pa.ExtensionArray.from_storage(kind, storage)


def columns() -> dict[str, pa.Array]:
    """A column of three rows for each type, by the type's name."""
    every = {f"{kind}": _column(kind, values) for kind, values in _plain()}
    every |= dict(_dictionaries()) | dict(_extensions())
    for name, array in list(every.items()):
        every |= dict(_nested(name, array))
    every |= dict(_nested("list of list", every["list of int8"]))
    every |= dict(_nested("struct of struct", every["struct of int8"]))
    return every


def shapes(column: pa.Array) -> dict[str, pa.ChunkedArray]:
    """The column as it is, cut out of a longer one, in several chunks, empty, and all null."""
    return {
        "whole": pa.chunked_array([column]),
        "cut": pa.chunked_array([column.slice(1)]),
        "in chunks": pa.chunked_array([column.slice(0, 1), column.slice(1)]),
        "empty": pa.chunked_array([column.slice(0, 0)]),
        "without chunks": pa.chunked_array([], column.type),
        "all null": pa.chunked_array([pa.nulls(2, column.type)]),
    }


def plain(value: Any) -> Any:
    """A value of Arrow as plain ones, to the last digit; made without the code under test."""
    if not value.is_valid:
        return None
    if isinstance(value, pa.MapScalar):
        return [(plain(entry["key"]), plain(entry["value"])) for entry in value.values]
    if isinstance(value, pa.ListScalar):
        return [plain(each) for each in value.values]
    if isinstance(value, pa.StructScalar):
        return [(name, plain(each)) for name, each in value.items()]
    if isinstance(value, pa.UnionScalar):
        return value.type_code, plain(value.value)
    if isinstance(value, pa.DictionaryScalar | pa.ExtensionScalar):
        return plain(value.value)
    return value.value if hasattr(value, "value") else value.as_py()


def same(source: pa.ChunkedArray, written: pa.ChunkedArray) -> bool:
    """Return whether two columns have one type and the same values."""
    return source.type.equals(written.type) and [*map(plain, source)] == [*map(plain, written)]
