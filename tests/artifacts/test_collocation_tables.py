"""The collocations of a project: its corpus's own, and those of the base of its training."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil import paths
from lexveil.artifacts.collocation_tables import load_collocations, load_pmi


def test_the_collocations_of_the_base_have_their_pmi(tmp_path: Path) -> None:
    folder = tmp_path / paths.COLLOCATIONS
    folder.mkdir(parents=True)
    for name, pairs, triples in (
        ("", [("prime", "minister", 7.5)], [("new", "south", "wales", 9.0)]),
        ("base_", [("ice", "cream", 8.25), ("credit", "card", 6.5)], []),
    ):
        words = ("first_word", "second_word", "third_word")
        for kind, size, rows in (("bigrams", 2, pairs), ("trigrams", 3, triples)):
            columns = {
                word: pa.array([row[place] for row in rows], pa.string()) for place, word in enumerate(words[:size])
            }
            columns["pmi_bits"] = pa.array([row[-1] for row in rows], pa.float64())
            pq.write_table(pa.table(columns), folder / f"{name}{kind}.parquet")
    found = {"prime_minister": 7.5, "ice_cream": 8.25, "credit_card": 6.5, "new_south_wales": 9.0}
    assert load_pmi(tmp_path) == found
    collocations = load_collocations(tmp_path)
    pairs, triples = collocations.scores(collocations.ids(["ice", "cream", "prime", "minister"]), np.array([0, 2, 4]))
    assert (pairs[0], pairs[2]) == (8.25, 7.5) and np.all(triples == -np.inf)
