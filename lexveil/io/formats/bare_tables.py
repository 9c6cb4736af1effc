"""Arrow columns reduced to types and values. Metadata, and data that no row shows, are removed
because they may contain texts.

Any program may have put texts into metadata of fields, names of extension types and entries of
dictionaries, and a slice of an array still holds the bytes of the whole array. The parts that
define the type of a column stay. These are extension types with fixed names, the categories of an
ordered dictionary, and the categories that Polars declares for an Enum.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lexveil.base.errors import RequestError
from lexveil.base.types import Flags, Ids
from lexveil.io.formats.messages import name

# Extension types without a parameter that could contain a text.
FIXED_EXTENSIONS = (pa.UuidType, pa.JsonType, pa.Bool8Type)
# Metadata that Polars writes for columns of type Categorical or Enum; an Enum declares categories.
POLARS_KEYS = re.compile(rb"_PL_(ENUM_VALUES|CATEGORICAL)2?")
# metadata key of an extension type that this process does not know
EXTENSION_KEY = b"ARROW:extension:name"


def bare_field(field: pa.Field) -> pa.Field:
    """Return an Arrow field without metadata and without extension types that have parameters.
    Inner fields are treated likewise.
    """
    metadata = {
        key: value for key, value in (field.metadata or {}).items() if POLARS_KEYS.fullmatch(key)
    }
    return pa.field(field.name, _bare_type(field.type), field.nullable, metadata or None)


def _bare_type(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, FIXED_EXTENSIONS):
        return kind
    return (
        _bare_type(kind.storage_type)
        if isinstance(kind, pa.BaseExtensionType)
        else _with_inner(kind, bare_field)
    )


def _with_inner(kind: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """Return an Arrow type whose inner fields are changed by a function. A type without inner
    fields is returned unchanged.
    """
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([change(field) for field in kind])
    if types.is_map(kind):
        return pa.map_(change(kind.key_field), change(kind.item_field), kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(change(kind.value_field), kind.list_size)
    for is_kind, make in (
        (types.is_list, pa.list_),
        (types.is_large_list, pa.large_list),
        (types.is_list_view, pa.list_view),
        (types.is_large_list_view, pa.large_list_view),
    ):
        if is_kind(kind):
            return make(change(kind.value_field))
    if types.is_union(kind):
        return pa.union([change(field) for field in kind], kind.mode, kind.type_codes)
    return kind


def require_plain_types(schema: pa.Schema, rewritten: Collection[str], where: str) -> None:
    """Check that every column that is not rewritten can be written with its type.

    Raises:
        RequestError: if a column cannot be written; the message names the first such column.
    """
    for field in schema:
        if field.name not in rewritten and _has_free_names(field):
            raise RequestError(
                f"{where}: {name(field.name)} has an extension type, and the type's name "
                "and parameters could contain text; cast the column to a plain type, or "
                "omit it"
            )


def _has_free_names(field: pa.Field) -> bool:
    """Return whether an Arrow field contains an extension type whose name or parameters could
    contain text.
    """
    kind = field.type
    if isinstance(kind, FIXED_EXTENSIONS):
        return False
    if isinstance(kind, pa.BaseExtensionType) or EXTENSION_KEY in (field.metadata or {}):
        return True
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _has_free_names(pa.field("", kind.value_type))
    return any(_has_free_names(kind.field(number)) for number in range(kind.num_fields))


def bare_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert an Arrow array to a type without metadata."""
    if isinstance(array, pa.ExtensionArray) and not isinstance(kind, pa.BaseExtensionType):
        array = array.storage
    return array if array.type.equals(kind, check_metadata=True) else array.cast(kind)


def bare_column(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> pa.ChunkedArray:
    """Copy a column of a table in memory, converted to a type without metadata.

    Raises:
        pa.ArrowNotImplementedError: if Arrow cannot copy the rows of this type without the rest of
            the array.
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if not sum(map(len, chunks)):
        return pa.chunked_array([pa.nulls(0, kind)])
    return _own_column(pa.chunked_array([bare_array(chunk, kind) for chunk in chunks], kind))


def only_used(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without the dictionary entries that no row of the column uses. An ordered
    dictionary stays whole, because it is part of the type.
    """
    return _own_column(column) if len(column) and _has_dictionary(column.type) else column


def _has_dictionary(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return True
    return any(_has_dictionary(kind.field(number).type) for number in range(kind.num_fields))


def _own_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    chunks = [_own(chunk) for chunk in column.chunks if len(chunk)]
    if pa.types.is_dictionary(column.type) and not column.type.ordered:
        # There is one dictionary, with entries in the order in which the rows use them.
        whole = pa.chunked_array([chunk.dictionary_decode() for chunk in chunks])
        return pa.chunked_array([_encoded(whole.combine_chunks(), column.type)])
    return pa.chunked_array(chunks, column.type)


def _encoded(values: pa.Array, kind: pa.DictionaryType) -> pa.Array:
    encoded = values.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(kind.index_type), encoded.dictionary)


VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def _own(array: pa.Array) -> pa.Array:
    """Copy only the visible values of an Arrow array. A slice still holds the values of the whole
    array, and a null may hide a value.
    """
    kind = array.type
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _own(array.storage))
    if types.is_dictionary(kind):
        if not kind.ordered:
            return _encoded(_own(array.dictionary_decode()), kind)
        indices = _own(array.indices)
        dictionary = _own(array.dictionary)
        return pa.DictionaryArray.from_arrays(indices, dictionary, ordered=True)
    if types.is_run_end_encoded(kind):
        decoded = _own(pc.run_end_decode(array))
        return pc.run_end_encode(decoded, run_end_type=kind.run_end_type)
    if types.is_union(kind):
        raise pa.ArrowNotImplementedError("union")
    if types.is_struct(kind):
        # Set fields to null where the struct is null.
        fields = [_own(values) for values in array.flatten()]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=array.is_null())
    if types.is_nested(kind):
        return _own_list(array)
    return _take(array, np.arange(len(array)))


def _take(array: pa.Array, places: Ids, is_null: Flags | None = None) -> pa.Array:
    """Copy the values of an Arrow array at the positions ``places``. The result is null wherever
    ``is_null`` is true.
    """
    kind = array.type
    plain = VIEWS.get(kind, kind)
    indices = pa.array(places, pa.int64(), mask=is_null)
    return array.take(indices) if plain == kind else array.cast(plain).take(indices).cast(kind)


def _own_list(array: pa.Array) -> pa.Array:
    """Copy only the visible values of an Arrow list array of any kind, or of a map array."""
    kind = array.type
    types = pa.types
    mask = array.is_null()
    if types.is_fixed_size_list(kind):
        size = kind.list_size
        valid = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
        places = np.full((len(array), size), -1)
        places[valid] = np.arange(len(valid) * size).reshape(-1, size)
        # No value stays hidden by a null.
        values = _take(_own(array.flatten()), places.ravel(), places.ravel() < 0)
        return pa.FixedSizeListArray.from_arrays(values, type=kind, mask=mask)
    if types.is_map(kind):
        entries = array.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
        offsets = _offsets(entries)
        keys, items = entries.flatten().flatten()
        return pa.MapArray.from_arrays(offsets, _own(keys), _own(items), type=kind, mask=mask)
    offsets = _offsets(array)
    values = _own(array.flatten())
    if types.is_list(kind) or types.is_large_list(kind):
        make = pa.ListArray if types.is_list(kind) else pa.LargeListArray
        return make.from_arrays(offsets, values, type=kind, mask=mask)
    width = pa.int32() if types.is_list_view(kind) else pa.int64()
    starts = offsets[:-1].cast(width)
    sizes = pa.array(np.diff(offsets.to_numpy())).cast(width)
    make = pa.ListViewArray if types.is_list_view(kind) else pa.LargeListViewArray
    return make.from_arrays(starts, sizes, values, type=kind, mask=mask)


def _offsets(array: pa.Array) -> pa.Array:
    """Return the offsets at which each list of an Arrow array begins among the values of all lists;
    null lists are empty.
    """
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    is_large = pa.types.is_large_list(array.type) or pa.types.is_large_list_view(array.type)
    return pa.array(np.append(0, np.cumsum(lengths)), pa.int64() if is_large else pa.int32())
