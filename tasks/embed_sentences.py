"""Pipeline stage that builds the project's sentence bank: sentences.parquet, the gst embedding
(gst: collocations cut greedily) -> bank/. The bank's protection levels are calibrated on texts of
the corpus sample.

If there are fewer sentences than a bank needs, no bank is made, and the folder is empty.
"""

from __future__ import annotations

import lexveil.base.runtime.blas  # isort: skip - before NumPy  # noqa: F401

from pathlib import Path

from lexveil.base import paths
from lexveil.base.runtime.hashes import sha256
from lexveil.base.runtime.tables import atomic_directory, read_table, require
from lexveil.core.accounting.linkage import CANDIDATES
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.model_store import OWN
from lexveil.io.artifacts.sentence_banks import FEWEST, BankSource
from lexveil.io.artifacts.structure import first_texts
from lexveil.io.config import Params, load_params
from lexveil.io.execution.stage import stage_main
from lexveil.lab.data.public_sentences import TextSample
from lexveil.lab.data.sentence_banks import make_bank
from lexveil.lab.data.sentence_choice import choice_of


def run(params: Params, out: Path) -> int:
    """Build the sentence bank in ``out`` and return the number of its sentences; 0 if there are too
    few sentences for a bank.
    """
    table = read_table(paths.SENTENCES, "collect_sentences")
    if len(table) < FEWEST:
        with atomic_directory(out):
            return 0
    wanted = params.sentences
    corpus = BankSource(
        name=str(paths.SAMPLE), sha256=sha256(require(paths.SAMPLE, "sample_corpus"))
    )
    about = choice_of(wanted, params.seed).described(params.model.language)
    about |= {"public": wanted.public, "sources": [corpus]}
    sample = TextSample.of(first_texts(paths.SAMPLE, CANDIDATES))
    return make_bank(out, table, Model.load(Path(), OWN), about, sample).sentences


def main() -> None:
    """Run this stage of the DVC pipeline: build the sentence bank."""
    n_sentences = run(load_params(), paths.BANK)
    print(
        f"the bank has {n_sentences:,} sentences"
        if n_sentences
        else (
            f"no bank was made: it needs {FEWEST:,} sentences, and the corpus has fewer "
            "suitable ones"
        )
    )


if __name__ == "__main__":
    stage_main(main, pandas=False)
