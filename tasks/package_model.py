"""Pipeline stage that packages the model of a project: its gst embedding (gst: collocations cut
greedily) without the tokens that a word screen excludes, with a metadata card -> model/.
"""

from __future__ import annotations

import lexveil.base.runtime.blas  # isort: skip - before NumPy  # noqa: F401

import shutil

import numpy as np
import pyarrow.parquet as pq

from lexveil.base import paths
from lexveil.base.errors import RequestError
from lexveil.base.runtime.tables import atomic_directory, require
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.core.text.screens import Candidate
from lexveil.io.artifacts.base_model import find_base
from lexveil.io.artifacts.collocation_tables import load_pmi
from lexveil.io.artifacts.embeddings import load_bigrams, load_embedding, load_purposes
from lexveil.io.artifacts.packaged_model import add_bigrams
from lexveil.io.config import load_configuration, load_params
from lexveil.io.execution.stage import stage_main
from lexveil.lab.modelling.packaging import package
from lexveil.lab.modelling.screening import count_documents, screened

SEGMENTATION = "gst"


def main() -> None:
    """Run this stage of the DVC pipeline: package the model.

    Raises:
        RequestError: if fewer than two tokens pass the word screens.
    """
    params = load_params()
    machine = load_configuration().machine
    base = find_base(params.embeddings)
    # Without a corpus, the model is the base model.
    if base is not None and not pq.read_metadata(require(paths.TOKENS, "sample_corpus")).num_rows:
        with atomic_directory(paths.PACKAGED) as partial:
            shutil.copytree(base.folder, partial, dirs_exist_ok=True)
        return
    if SEGMENTATION not in params.grid.segmentations:
        with atomic_directory(paths.PACKAGED):
            print(f"params.yaml: grid.segmentations has no {SEGMENTATION}, so no model is packaged")
        return
    space = load_embedding(SEGMENTATION)
    # The packaged model has no axes of purposes; its user names purposes anew.
    own = space.vectors.shape[1] - len(load_purposes(SEGMENTATION))
    space = WordSpace(space.tokens, space.vectors[:, :own], space.counts)
    in_corpus = {
        count.token: count
        for count in count_documents(SEGMENTATION, params.model.min_documents, machine)
    }
    # Tokens of the base model occurred in enough documents of the base model's own corpus.
    public = set() if base is None else set(base.tokens)
    candidates = [
        in_corpus.get(token) or Candidate(token, int(count), 0)
        for token, count in zip(space.tokens, space.counts.tolist(), strict=True)
        if token in in_corpus or token in public
    ]
    chosen = screened(candidates, params.model, machine)
    if len(chosen.kept) < 2:
        raise RequestError(
            f"{len(chosen.kept)} tokens occur in {params.model.min_documents} documents and "
            "pass the screens; enlarge the corpus, or lower model.min_documents in params.yaml"
        )
    card = package(paths.PACKAGED, chosen, space, load_pmi(), params, machine)
    row_of = {token: row for row, token in enumerate(space.tokens)}
    kept = np.array([row_of[one.token] for one in chosen.kept], dtype=np.int64)
    add_bigrams(paths.PACKAGED, load_bigrams(SEGMENTATION).only(kept))
    print(
        f"{card.n_tokens:,} tokens, {card.n_words:,} of them single words; left out: "
        f"{sum(card.dropped.values()):,}"
    )


if __name__ == "__main__":
    stage_main(main, pandas=False)
