"""The output that the driver publishes of a data set of Ray, whose engine is played here: the
output does not show which blocks were cut by the bytes of the source.
"""

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lexveil import Model
from lexveil.release.distributed import parts
from tests.same_noise import (
    WITHOUT_KEPT_TOKENS,
    SameAnswers,
    published,
    reach_workers,
    sources,
)

SOURCE = Path(__file__).parents[2] / "lexveil/ray.py"


class PlayedDataset:
    """Blocks of a table, in one process."""

    def __init__(self, blocks):
        self.blocks = list(blocks)

    def schema(self):
        return self.blocks[0].schema

    def select_columns(self, columns):
        return PlayedDataset([block.select(columns) for block in self.blocks])

    def map_batches(self, function, *, fn_args, **_):
        made = [function(block, *fn_args) for block in self.blocks]
        return PlayedDataset([one if isinstance(one, pa.Table) else pa.table(one) for one in made])

    def groupby(self, column, **_):
        grouped = pa.concat_tables(self.blocks).group_by(column)
        return SimpleNamespace(
            sum=lambda names: PlayedDataset([grouped.aggregate([(name, "sum") for name in names])])
        )

    def iter_batches(self, **_):
        yield from self.blocks

    def iter_rows(self):
        for block in self.blocks:
            yield from block.to_pylist()


@pytest.fixture
def releasing(monkeypatch):
    """The module that releases data sets of Ray, over the played engine."""
    played = ModuleType("ray")
    values = {
        "data": SimpleNamespace(Dataset=PlayedDataset, read_parquet=lambda path: path),
        "ObjectRef": object,
        "put": lambda value: value,
        "get": lambda value: value,
        "remote": lambda function: SimpleNamespace(remote=function),
        "cluster_resources": dict,
    }
    for name, value in values.items():
        setattr(played, name, value)
    monkeypatch.setitem(sys.modules, "ray", played)
    spec = importlib.util.spec_from_file_location("lexveil_ray_played", SOURCE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("rows", [10**9, 30, 7])
def test_files_do_not_show_how_long_source_words_are(releasing, outside, monkeypatch, rows):
    """Two sources of the same disclosed structure, in other blocks and other orders of blocks."""
    both = sources(Model.load(name="toy"))
    same = SameAnswers(monkeypatch)
    reach_workers(monkeypatch)
    monkeypatch.setattr(parts, "PART_ROWS", rows)
    made = []
    for side, (texts, sizes) in enumerate(zip(both, ([20, 20, 20, 20], [50, 7, 23]), strict=True)):
        same.restart()
        table = pa.table({"id": range(80), "body": [texts[n % len(texts)] for n in range(80)]})
        firsts = [sum(sizes[:number]) for number in range(len(sizes))]
        blocks = [table.slice(first, size) for first, size in zip(firsts, sizes, strict=True)]
        private = releasing.privatize(
            PlayedDataset(blocks[:: 1 - 2 * side]),
            column="body",
            model="toy",
            **WITHOUT_KEPT_TOKENS,
        )
        private.write_parquet(outside / f"out{side}")
        files = published(outside / f"out{side}")
        record = next(name for name in files if name.endswith("record.json"))
        written = sorted(content for name, content in files.items() if name.endswith("parquet"))
        made.append((record, files[record], written))
        n_rows = [pq.read_metadata(pa.BufferReader(file)).num_rows for file in written]
        assert sum(n_rows) == 80 and len(n_rows) == -(-80 // rows)
        for left in (outside.parent / "home").glob("ledger*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    assert made[0] == made[1]
    assert sorted(path.name for path in outside.iterdir()) == ["out0", "out1"]
