"""MySQL and MariaDB by PyMySQL, which is not Arrow-native: rows come by a cursor of the server, and become Arrow here.

Passwords and options are those of the section [client] of ~/.my.cnf, as for the `mysql` program, and MYSQL_PWD.
"""

from __future__ import annotations

import decimal
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from lexveil.databases.address import WHERE_PASSWORDS_ARE, Address
from lexveil.databases.base import (
    BATCH,
    LOCK_SECONDS,
    QUERY,
    Rows,
    driver,
    lost,
    quotable,
    require_distinct,
    stripped,
)
from lexveil.errors import RequestError
from lexveil.formats.messages import name

BINARY = 63  # the character set of bytes
OF_QUERY = (1046, 1049, 1051, 1052, 1054, 1060, 1064, 1109, 1142, 1143, 1146, 1305)  # of names, rights and syntax
LOST = (2006, 2013, 1053, 1927)
HINTS = {
    1045: f"the server does not take this user; passwords are read from {WHERE_PASSWORDS_ARE['mysql']}",
    1205: f"a lock was not to be had in {LOCK_SECONDS} s; try again later",
    1792: "the transaction is read-only: give --sql a SELECT that changes nothing",
    1969: "the statement took longer than max_statement_time; see to that and run it again",
    3024: "the statement took longer than max_execution_time; see to that and run it again",
}


@contextmanager
def rows(address: Address, sql: str) -> Iterator[Rows]:
    """Run a query in a read-only transaction.

    Raises:
        RequestError: if there is no connection, or the query cannot be run; also while batches are read.
    """
    pymysql, cursors = driver("pymysql"), driver("pymysql.cursors")
    query = stripped(sql)
    try:
        with _connected(address, pymysql) as connection, _on_server(connection, cursors.SSCursor) as cursor:
            cursor.execute(f"set session lock_wait_timeout = {LOCK_SECONDS}, time_zone = '+00:00'")
            cursor.execute("start transaction with consistent snapshot, read only")
            cursor.execute(query)
            if cursor.description is None:
                raise RequestError(f"{address.shown}: the query gives no rows; write a SELECT")
            require_distinct([column for column, *_ in cursor.description])
            schema = pa.schema([(field.name, _arrow_type(field)) for field in cursor._result.fields])
            yield Rows(schema, _batches(cursor, schema, address, query, pymysql), {})
    except pymysql.Error as error:
        raise _fault(error, address, query) from None


@contextmanager
def _connected(address: Address, pymysql: Any) -> Iterator[Any]:
    given = {"host": address.host, "port": address.port, "user": address.user, "database": address.database}
    conv = dict(pymysql.converters.conversions)
    conv.pop(pymysql.constants.FIELD_TYPE.TIME)  # of more than a day too, so it stays text
    connection = pymysql.connect(
        **{key: value for key, value in given.items() if value is not None},
        password=os.environ.get("MYSQL_PWD", ""),
        read_default_file=str(Path("~/.my.cnf").expanduser()),
        charset="utf8mb4",
        connect_timeout=LOCK_SECONDS,
        autocommit=False,
        conv=conv,
    )
    try:
        yield connection
    finally:
        with suppress(Exception):
            connection._force_close()  # while rows are left it cannot be told anything


@contextmanager
def _on_server(connection: Any, kind: Any) -> Iterator[Any]:
    """A cursor of the server, which forgets its rows at the end: closed as it is, it would read all that are left."""
    cursor = connection.cursor(kind)
    try:
        yield cursor
    finally:
        cursor._result = None
        cursor.close()


def _arrow_type(field: Any) -> pa.DataType:
    from pymysql.constants import FIELD_TYPE, FLAG

    is_unsigned = bool(field.flags & FLAG.UNSIGNED)
    match field.type_code:
        case FIELD_TYPE.TINY | FIELD_TYPE.SHORT | FIELD_TYPE.LONG | FIELD_TYPE.INT24 | FIELD_TYPE.YEAR:
            return pa.int64()
        case FIELD_TYPE.LONGLONG:
            return pa.uint64() if is_unsigned else pa.int64()
        case FIELD_TYPE.FLOAT | FIELD_TYPE.DOUBLE:
            return pa.float64()
        case FIELD_TYPE.DECIMAL | FIELD_TYPE.NEWDECIMAL:
            return pa.decimal128(38, field.scale) if field.length <= 38 else pa.decimal256(76, field.scale)
        case FIELD_TYPE.DATE | FIELD_TYPE.NEWDATE:
            return pa.date32()
        case FIELD_TYPE.DATETIME:
            return pa.timestamp("us")
        case FIELD_TYPE.TIMESTAMP:
            return pa.timestamp("us", "UTC")
        case FIELD_TYPE.BIT | FIELD_TYPE.GEOMETRY:
            return pa.binary()
        case FIELD_TYPE.JSON:
            return pa.string()
        case _:
            is_blob = field.charsetnr == BINARY and field.type_code != FIELD_TYPE.TIME
            return pa.binary() if is_blob else pa.string()


def _batches(cursor: Any, schema: pa.Schema, address: Address, query: str, pymysql: Any) -> Iterator[pa.RecordBatch]:
    n_rows = 0
    while True:
        try:
            values = cursor.fetchmany(BATCH)
        except pymysql.Error as error:
            if error.args and error.args[0] in LOST:
                raise lost(address, n_rows) from None
            raise _fault(error, address, query) from None
        if not values:
            return
        columns = zip(*values, strict=True)
        arrays = [_array(column, field) for column, field in zip(columns, schema, strict=True)]
        n_rows += len(values)
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(column: tuple[Any, ...], field: pa.Field) -> pa.Array:
    try:
        return pa.array(column, field.type)
    except (pa.ArrowException, decimal.DecimalException, OverflowError):
        raise RequestError(
            f"{QUERY}: {name(field.name)} holds a value that is none of {field.type} (a date of zeros, or a number out "
            "of range); cast it to char in the query"
        ) from None


def _fault(error: Any, address: Address, query: str) -> RequestError:
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    said = str(error.args[1]) if len(error.args) > 1 else ""
    if number in LOST:
        return RequestError(
            f"{address.shown}: the connection was lost; nothing was released. See to the server and run it again"
        )
    if number in HINTS:
        return RequestError(f"{address.shown}: {HINTS[number]}")
    if number in OF_QUERY:
        return RequestError(f"{address.shown}: {quotable(said, query)} (error {number})")
    if 2000 <= number < 2100:  # of the connection, which knows no data
        return RequestError(f"{address.shown}: no connection: {said[:300]}")
    return RequestError(
        f"{address.shown}: the server refuses it (error {number}); what it says may hold a value and is not shown. Try "
        "the query in the mysql program"
    )
