"""Columns of Arrow with their values and nothing else: no metadata, no entry or byte that no row
has.

Any program may have put texts into metadata of fields, names of extension types and entries of
dictionaries, and a part of an array still holds the bytes of the whole.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa


def bare_field(field: pa.Field) -> pa.Field:
    """A field without metadata, its own and those of the fields in it, and without extension
    types.
    """
    return pa.field(field.name, _bare_type(field.type), field.nullable)


def _bare_type(kind: pa.DataType) -> pa.DataType:
    return (
        _bare_type(kind.storage_type)
        if isinstance(kind, pa.BaseExtensionType)
        else _with_inner(kind, bare_field)
    )


def _with_inner(kind: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """A type whose fields, if it has any, are changed."""
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([change(field) for field in kind])
    if types.is_map(kind):
        return pa.map_(change(kind.key_field), change(kind.item_field), kind.keys_sorted)
    if types.is_large_list(kind):
        return pa.large_list(change(kind.value_field))
    if types.is_fixed_size_list(kind):
        return pa.list_(change(kind.value_field), kind.list_size)
    return pa.list_(change(kind.value_field)) if types.is_list(kind) else kind


def bare_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """An array as its bare type."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array if array.type.equals(kind, check_metadata=True) else array.cast(kind)


def bare_column(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> pa.ChunkedArray:
    """A column of a table in memory as its bare type, in memory of its own."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    bare = pa.chunked_array([bare_array(chunk, kind) for chunk in chunks], kind)
    try:
        return only_used(bare.take(pa.array(range(len(bare)))))
    except pa.ArrowNotImplementedError:  # of views of strings, for one
        return pa.chunked_array([pa.array(bare.to_pylist(), kind)])


def only_used(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column whose dictionaries, if it has any, hold what is in the column and nothing else."""
    kind = column.type
    if not pa.types.is_dictionary(kind):
        plain = _decoded(kind)
        if plain.equals(kind):
            return column
        # Taken row by row, because a part of a list array still has the values of the whole.
        return column.cast(plain).take(pa.array(range(len(column)))).cast(kind)
    encoded = column.cast(kind.value_type).combine_chunks().dictionary_encode()
    indices = encoded.indices.cast(kind.index_type)
    return pa.chunked_array(
        [pa.DictionaryArray.from_arrays(indices, encoded.dictionary, ordered=kind.ordered)]
    )


def _decoded(kind: pa.DataType) -> pa.DataType:
    """A type with the values in place of each dictionary in it."""
    return (
        _decoded(kind.value_type)
        if pa.types.is_dictionary(kind)
        else _with_inner(kind, _decoded_field)
    )


def _decoded_field(field: pa.Field) -> pa.Field:
    return field.with_type(_decoded(field.type))
