"""Sorted runs on disk: written, read in stretches, merged in pieces."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks.io import runs
from tasks.io.runs import Run, merge, write_run

PARTS = st.lists(st.dictionaries(st.integers(0, 40), st.integers(1, 9), max_size=25), max_size=5)


def written(folder: Path, number: int, counts: dict[int, int]) -> Run:
    keys = np.array(sorted(counts), dtype=np.int64)
    file = folder / f"{number}.run"
    write_run(file, keys, np.array([counts[key] for key in keys.tolist()], dtype=np.int32))
    return Run.of(file)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=PARTS, at_once=st.sampled_from([1, 4, 8, 1000]))
def test_any_runs_add_up(parts: list[dict[int, int]], at_once: int, tmp_path: Path) -> None:
    """With a key looked at in every three, so that small runs are cut as large ones are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "STEP", 3)
        files = [written(tmp_path, number, part) for number, part in enumerate(parts)]
        pieces = list(merge(files, at_once))
    total = Counter[int]()
    for part in parts:
        total.update(part)
    found = [pair for keys, counts, _ in pieces for pair in zip(keys.tolist(), counts.tolist(), strict=True)]
    assert found == sorted(total.items())
    assert sum(rows for _, _, rows in pieces) == sum(map(len, parts))
    # A piece is bounded, or memory would not be.
    assert all(rows <= at_once + 3 * (len(parts) + 1) for _, _, rows in pieces)


def test_a_run_is_read_in_stretches(tmp_path: Path) -> None:
    run = written(tmp_path, 0, {key * key: key + 1 for key in range(100)})
    assert run.n_rows == 100
    assert run.keys(3, 6).tolist() == [9, 16, 25]
    assert run.counts(3, 6).tolist() == [4, 5, 6]
    assert run.file.stat().st_size == 100 * runs.ROW
