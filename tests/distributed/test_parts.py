"""The files of a table that was rewritten on a cluster: their number, sizes and rows follow from
what is written, and not from how the source was cut."""

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lexveil import LexveilError
from lexveil.release.distributed import parts
from lexveil.release.distributed.rewriter import RunTotals
from tests.same_noise import numbers_by_id

WORDS = pa.array([f"word{n % 7}" for n in range(100)]).dictionary_encode()
WRITTEN = pa.table(
    {
        "id": range(100),
        "body": [f"written {n}" for n in range(100)],
        "word": WORDS,
        "more": [{"a": [n], "b": None} for n in range(100)],
    }
)
CUTS = [
    [100],
    [1, 2, 3, 94],
    [30, 0, 40, 30],
    [*[7] * 14, 2],
]


def divided(sizes, folder, n_parts):
    """Write the rows in blocks of some sizes, each block as one attempt does; then the parts."""
    waiting = list[Path]()
    first = 0
    for number, size in enumerate(sizes):
        block = WRITTEN.slice(first, size).combine_chunks()
        first += size
        for batch in block.unify_dictionaries().to_batches():
            waiting.append(folder / f"block-{number}.parquet")
            parts.write_undivided(batch, "order", waiting[-1])
    made = dict[str, bytes]()
    for number, numbers in enumerate(parts.ranges(n_parts)):
        out = folder / f"part-{number}.parquet"
        parts.write_part(waiting, "order", numbers, out)
        made[out.name] = out.read_bytes()
    return made


@pytest.mark.parametrize("n_parts", [1, 2, 7])
def test_parts_are_the_same_bytes_however_the_source_was_cut(tmp_path, monkeypatch, n_parts):
    """The parts are the same if a block has another dictionary or none, and if the blocks come in
    another order."""
    monkeypatch.setattr(parts, "random_numbers", numbers_by_id)
    made = list[dict[str, bytes]]()
    for number, sizes in enumerate([*CUTS, CUTS[1]]):
        folder = tmp_path / str(number)
        folder.mkdir()
        made.append(divided(sizes, folder, n_parts))
    assert all(one == made[0] for one in made)
    rows = pa.concat_tables(
        pq.read_table(file) for file in (tmp_path / "0").glob("part-*.parquet")
    ).sort_by("id")
    assert rows.column_names == WRITTEN.column_names
    assert rows.to_pylist() == WRITTEN.to_pylist()
    assert rows.schema.equals(WRITTEN.schema)


def test_without_that_the_order_is_of_chance_alone(tmp_path):
    """Two draws of the order differ. The chance that they agree is 1 in 100!."""
    orders = list[list[int]]()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        divided([50, 50], tmp_path / name, 1)
        orders.append(pq.read_table(tmp_path / name / "part-0.parquet").column("id").to_pylist())
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1]) == [*range(100)]


def test_random_numbers_fill_the_ranges_of_parts():
    """Every number is in the range of just one part."""
    numbers = parts.random_numbers(WRITTEN.to_batches()[0])
    ranges = parts.ranges(3)
    assert numbers.min() >= 0 and len(np.unique(numbers)) == 100
    assert ranges[0][0] == 0 and ranges[-1][1] == parts.LIMIT
    assert all(first[1] == second[0] for first, second in itertools.pairwise(ranges))


@pytest.mark.parametrize(
    ("rows", "withheld", "n_bytes", "expected"),
    [
        (0, 0, 0, 1),
        (500_000, 0, 0, 1),
        (500_001, 0, 0, 2),
        (500_001, 1, 0, 1),
        (10, 0, 2**27 + 1, 2),
        (10, 0, 2**30, 8),
    ],
)
def test_how_many_parts_there_are_follows_from_written_rows_and_bytes(
    rows, withheld, n_bytes, expected
):
    totals = RunTotals()
    totals.rows = rows
    totals.withheld = withheld
    totals.bytes_written = n_bytes
    assert parts.part_count(totals) == expected


@pytest.mark.parametrize("n_rows", [99, 101])
def test_rows_that_are_lost_or_doubled_while_parts_are_written_are_noticed(n_rows):
    totals = RunTotals()
    totals.rows = 102
    totals.withheld = 2
    parts.require_all(100, totals)
    with pytest.raises(LexveilError, match="lost or duplicated"):
        parts.require_all(n_rows, totals)


def test_a_part_without_rows_has_the_columns_of_the_others(tmp_path):
    file = tmp_path / "block.parquet"
    batch = WRITTEN.slice(0, 3).combine_chunks().to_batches()[0]
    parts.write_undivided(batch, "order", file)
    assert parts.write_part([file], "order", (0, 1), tmp_path / "empty.parquet") == 0
    empty = pq.read_table(tmp_path / "empty.parquet")
    assert empty.schema.names == WRITTEN.schema.names
    assert pc.count(empty.column("id")).as_py() == 0
