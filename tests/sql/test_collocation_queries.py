"""The queries of `lexveil collocations`: order, ties, filters, and measures that are not there."""

import pyarrow as pa
import pytest

from lexveil.association import COLUMNS, MEASURES, rendered
from lexveil.runtime import duckdb_session

ALL = {"by": "pmi_bits", "min_count": 1, "size": None, "word": None, "n": 99}
KEY = ("first_word", "second_word", "third_word")


def query(name: str, tables: dict[str, list[dict]], **parameters: object) -> list[dict]:
    with duckdb_session.session() as con:
        for table, rows in tables.items():
            con.register(table, pa.Table.from_pylist(rows))
        return con.sql(rendered(duckdb_session.text(name)), params=parameters).to_arrow_table().to_pylist()


def row(words: str, count: int, pmi_bits: float, **measures: float) -> dict:
    return (
        dict(zip(KEY, words.split(), strict=False))
        | {"from_base": False, "count": count, "pmi_bits": pmi_bits}
        | measures
    )


def keys(rows: list[dict]) -> list[str]:
    return [" ".join(row[key] for key in KEY if row[key] is not None) for row in rows]


def test_ties_fall_to_the_count_and_then_to_the_words() -> None:
    tables = {
        "bigrams": [row("b a", 5, 3.0), row("a c", 5, 3.0), row("a b", 5, 3.0), row("z z", 6, 3.0)],
        "trigrams": [row("a b a", 5, 3.0), row("a a z", 5, 3.0), row("q q q", 2, 4.0)],
    }
    found = query("collocations/collocations_best", tables, **ALL)
    assert keys(found) == ["q q q", "z z", "a a z", "a b", "a b a", "a c", "b a"]
    assert keys(query("collocations/collocations_best", tables, **ALL | {"n": 2})) == ["q q q", "z z"]
    other = {measure.column: None for measure in MEASURES if measure.name != "pmi"}
    assert found[1] == other | {
        "first_word": "z", "second_word": "z", "third_word": None, "from_base": False, "count": 6, "pmi_bits": 3.0,
    }  # fmt: skip


@pytest.mark.parametrize("by", COLUMNS)
def test_every_measure_orders(by: str) -> None:
    values = {name: dict.fromkeys(COLUMNS, 2.0) | {name: 3.0} for name in COLUMNS}
    tables = {
        "bigrams": [row(f"a {name}", **of) for name, of in values.items()],
        "trigrams": [row("a a a", **dict.fromkeys(COLUMNS, 2.0))],
    }
    assert keys(query("collocations/collocations_best", tables, **ALL | {"by": by}))[0] == f"a {by}"


def test_among_gives_each_given_collocation_once_and_nothing_else() -> None:
    tables = {
        "bigrams": [row("b c", 2, 2.0, llr=7.0), row("a b", 5, 3.0, llr=8.0), row("c a", 4, 4.0, llr=9.0)],
        "trigrams": [row("a b c", 3, 4.0, llr=1.0), row("b c a", 2, 3.0, llr=2.0)],
        "given_bigrams": [dict(zip(KEY, pair, strict=False)) for pair in ("ab", "ab", "bc", "zz")],
        "given_trigrams": [dict(zip(KEY, triple, strict=True)) for triple in ("abc", "cab")],
    }
    found = query("collocations/collocations_among", tables)
    assert keys(found) == ["a b", "a b c", "b c"]
    assert [(row["count"], row["pmi_bits"], row["llr"], row["npmi"]) for row in found] == [
        (5, 3.0, 8.0, None),
        (3, 4.0, 1.0, None),
        (2, 2.0, 7.0, None),
    ]
