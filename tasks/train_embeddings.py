"""Pipeline stage that trains the word embedding of one segmentation: segmented/SEGMENTATION.txt ->
embeddings/SEGMENTATION/.

If params.yaml: embeddings.base names a packaged model, training starts from its vectors, and the
tokens that only the base model has are added. A packaged model may replace the embedding of single
words (embeddings.word_model). An interrupted training resumes after its last finished epoch.
"""

from __future__ import annotations

import lexveil.base.runtime.blas  # isort: skip - before NumPy  # noqa: F401

from dataclasses import fields
from importlib.metadata import version

import numpy as np

from lexveil.base import paths
from lexveil.base.runtime.tables import atomic_file, read_json, require, write_json
from lexveil.core.embeddings.base import Base
from lexveil.core.embeddings.purposes import with_axes
from lexveil.core.embeddings.scaling import scaled
from lexveil.core.embeddings.training import Trained, Word2VecSettings, with_plain_copies
from lexveil.core.embeddings.training_defaults import default_epochs, default_min_count
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.io.artifacts.base_model import DIMENSIONS, about_base, base_space, find_base
from lexveil.io.artifacts.embeddings import write_embedding
from lexveil.io.artifacts.model_store import load_words_of
from lexveil.io.artifacts.training import FORMAT, embedding_metrics, resumed_training
from lexveil.io.artifacts.user_lists import load_factors, purposes_of
from lexveil.io.config import Params, load_configuration, load_params
from lexveil.io.execution.checkpoints import kept_work
from lexveil.io.execution.stage import named_segmentation, stage_main

# code on which the state of a training depends
CODE = ("lexveil.core.embeddings.training", "lexveil.core.embeddings.base")


def main() -> None:
    """Run this stage of the DVC pipeline for the segmentation named on the command line."""
    segmentation = named_segmentation("train_embeddings")
    params = load_params()
    machine = load_configuration().machine
    options = params.embeddings
    purposes_of(options.purposes)  # raise errors before the training
    if segmentation == "word" and options.word_model != "own":
        write(
            load_words_of(options.word_model, "embeddings.word_model"),
            segmentation,
            {"source": options.word_model},
            None,
            params,
        )
        return
    model = find_base(options)
    base = (
        None
        if model is None
        else Base(base_space(options, model, segmentation), options.base_vectors == "keep")
    )
    corpus = require(paths.segmented(segmentation), "segment_corpus")
    n_tokens = read_json(paths.METRICS / "segmented" / f"{segmentation}.json", "segment_corpus")[
        "n_tokens"
    ]
    names = {field.name for field in fields(Word2VecSettings)} - {
        "seed",
        "dimensions",
        "min_count",
        "epochs",
    }
    settings = Word2VecSettings(
        **{name: getattr(options, name) for name in names},
        min_count=options.min_count or default_min_count(n_tokens),
        epochs=options.epochs or default_epochs(n_tokens),
        dimensions=(options.dimensions or DIMENSIONS) if model is None else model.card.dimensions,
        seed=params.seed,
    )
    plain_copy = options.plain_copy and segmentation != "word"
    about: dict[str, object] = {
        "source": "own",
        "base": None if model is None else about_base(options, model),
        "plain_copy": plain_copy,
        "workers": options.workers,
        # Several workers write to the same vectors without locks, so the bytes differ each time.
        "byte_stable": options.workers == 1,
    }
    versions = {name: version(name) for name in ("gensim", "numpy", "scipy")}
    depends = (FORMAT, settings, versions, about["base"], plain_copy)
    work = kept_work(machine, f"train_embeddings/{segmentation}", CODE, [corpus], *depends)
    with work as folder:  # kept until the result is written
        if plain_copy:
            read = folder / "with-plain-copies.txt"
            with (
                corpus.open("rb") as lines,
                atomic_file(read) as partial,
                partial.open("wb") as out,
            ):
                out.writelines(with_plain_copies(lines))
        source = read if plain_copy else corpus
        trained = resumed_training(segmentation, source, settings, base, folder, machine)
        write(trained.space, segmentation, about, trained, params)


def write(
    raw: WordSpace,
    segmentation: str,
    about: dict[str, object],
    trained: Trained | None,
    params: Params,
) -> None:
    """Write the embedding of one segmentation, with vectors scaled as params.yaml states, and its
    metrics.

    Args:
        raw: the embedding as it was trained.
        about: facts about the training for the record.
        trained: the training of the embedding; None for a packaged model.
    """
    options = params.embeddings
    about["scale"] = options.scale
    factors = {}
    if options.scale_list:
        about["scale_list"], factors = options.scale_list, load_factors(options.scale_list)
        known = len(factors.keys() & set(raw.tokens))
        print(f"{known:,} of {len(factors):,} words of {options.scale_list} are in the vocabulary")
    purposes = purposes_of(options.purposes)
    for purpose in purposes:
        known = int(np.count_nonzero(purpose.of(raw.tokens)))
        print(f"{known:,} of {len(raw.tokens):,} tokens are on the scale of purpose {purpose}")
    if purposes:
        about["purposes"] = {str(purpose): purpose.sha256 for purpose in purposes}
    space = with_axes(scaled(raw, options.scale, factors), purposes)
    write_embedding(space, paths.embedding(segmentation), about)
    metrics = embedding_metrics(space, raw, about, trained)
    write_json(metrics, paths.METRICS / "embeddings" / f"{segmentation}.json")
    print(f"{len(space.tokens):,} vectors of {space.vectors.shape[1]} dimensions")


if __name__ == "__main__":
    stage_main(main, pandas=False)
