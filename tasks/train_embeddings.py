"""Train the embedding of one segmentation: segmented/SEGMENTATION.txt -> embeddings/SEGMENTATION/.

Training begins with the vectors of a packaged model, if params.yaml: embeddings.base names one, and its other tokens
are added. That of words may be a model that was brought in instead (embeddings.word_model). An interrupted training
goes on after its last finished epoch.
"""

from __future__ import annotations

import lexveil.runtime.blas  # noqa: F401  # isort: skip - before NumPy

import sys
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path

import numpy as np

from lexveil import paths
from lexveil.artifacts.base_model import DIMENSIONS, about_base, base_space, find_base
from lexveil.artifacts.embedding_benchmarks import SIMILARITY, load_analogies, load_similarity
from lexveil.artifacts.embeddings import write_embedding
from lexveil.artifacts.external_embeddings import load_model
from lexveil.artifacts.purpose_files import purposes_of
from lexveil.artifacts.training_checkpoints import FORMAT, Checkpoints, TrainingProgress, some_sentences
from lexveil.artifacts.user_lists import load_factors
from lexveil.config import EmbeddingParams, Params, load_params
from lexveil.embeddings.base import Base
from lexveil.embeddings.intrinsic_evaluation import analogies, by_frequency, neighbour_samples, similarity
from lexveil.embeddings.purposes import with_axes
from lexveil.embeddings.scaling import scaled
from lexveil.embeddings.training import (
    Trained,
    TrainingState,
    Word2VecSettings,
    train_word2vec,
    with_plain_copies,
)
from lexveil.embeddings.word_space import WordSpace
from lexveil.errors import RequestError
from lexveil.runtime.checkpoints import kept_work
from lexveil.runtime.stage import stage_main
from lexveil.runtime.tables import atomic_file, require, write_json

# on which the state of a training depends
CODE = ("lexveil.embeddings.training", "lexveil.embeddings.base")
SENTENCES = 2000  # of the corpus, from which the examples come that the loss is measured on


def main() -> None:
    """Run the stage for the segmentation named on the command line."""
    if len(sys.argv) != 2:
        raise RequestError("usage: python -m tasks.train_embeddings word|gst|mst")
    segmentation = sys.argv[1]
    params = load_params()
    options = params.embeddings
    purposes_of(options.purposes)  # what is refused is refused before the training
    if segmentation == "word" and options.word_model != "own":
        about: dict[str, object] = {"source": options.word_model, **about_scale(options)}
        write(load_model(options.word_model), segmentation, about, None, params)
        print(f"taken from {options.word_model}")
        return
    model = find_base(options)
    base = None if model is None else Base(base_space(options, model, segmentation), options.base_vectors == "keep")
    names = {field.name for field in fields(Word2VecSettings)} - {"seed", "dimensions"}
    settings = Word2VecSettings(
        **{name: getattr(options, name) for name in names},
        dimensions=(options.dimensions or DIMENSIONS) if model is None else model.card.dimensions,
        seed=params.seed,
    )
    corpus = require(paths.segmented(segmentation), "segment_corpus")
    plain_copy = options.plain_copy and segmentation != "word"
    about = {
        "source": "own",
        "base": None if model is None else about_base(options, model),
        **about_scale(options),
        "plain_copy": plain_copy,
        "workers": options.workers,
        # Threads write to the same vectors without locks: whoever reads this file later must know.
        "byte_stable": options.workers == 1,
    }
    versions = {name: version(name) for name in ("gensim", "numpy", "scipy")}
    depends = (FORMAT, settings, versions, about["base"], plain_copy)
    work = kept_work(params.machine, f"train_embeddings/{segmentation}", CODE, [corpus], *depends)
    with work as folder:  # until the result is written
        if plain_copy:
            read = folder / "with-plain-copies.txt"
            with corpus.open("rb") as lines, atomic_file(read) as partial, partial.open("wb") as out:
                out.writelines(with_plain_copies(lines))
        trained = train(segmentation, read if plain_copy else corpus, settings, base, Checkpoints(folder))
        write(trained.space, segmentation, about, trained, params)
    print("trained")


def train(
    segmentation: str, corpus: Path, settings: Word2VecSettings, base: Base | None, checkpoints: Checkpoints
) -> Trained:
    """Train, or go on with what ``checkpoints`` holds, and say how far it is."""
    epochs, workers = settings.epochs, settings.workers
    if workers > 1:
        print(f"training with {workers} workers: faster, and not byte-stable: other vectors each time", flush=True)
    state = checkpoints.load()
    if state is not None:
        print(f"going on with an interrupted training: {state.epoch} of {epochs} epochs are done", flush=True)
    progress = TrainingProgress(f"train {segmentation}", epochs)

    def on_epoch(state: TrainingState) -> None:
        checkpoints.save(state)
        progress.epoch_ends(state.epoch, state.losses)

    return train_word2vec(
        str(corpus),
        settings,
        base=base,
        sentences=some_sentences(corpus, SENTENCES),
        resume=state,
        on_start=lambda n_tokens: progress.begin(n_tokens, state.epoch if state else 0),
        on_epoch=on_epoch,
    )


def about_scale(options: EmbeddingParams) -> dict[str, str]:
    """What is said of the lengths of the vectors."""
    return {"scale": options.scale, **({"scale_list": options.scale_list} if options.scale_list else {})}


def write(raw: WordSpace, segmentation: str, about: dict[str, object], trained: Trained | None, params: Params) -> None:
    """Write the embedding of one segmentation, with lengths as params.yaml says, and its figures.

    Args:
        trained: the training that it is of; None of a model that was brought in.
    """
    options = params.embeddings
    factors = load_factors(options.scale_list) if options.scale_list else {}
    if factors:
        known = len(factors.keys() & set(raw.tokens))
        print(f"{known:,} of {len(factors):,} words of {options.scale_list} are in the vocabulary")
    purposes = purposes_of(options.purposes)
    for one in purposes:
        known = int(np.count_nonzero(one.of(raw.tokens)))
        print(f"{known:,} of {len(raw.tokens):,} tokens are on the scale of purpose {one}")
    if purposes:
        about |= {"purposes": {str(one): one.sha256 for one in purposes}}
    space = with_axes(scaled(raw, options.scale, factors), purposes)
    write_embedding(space, paths.embedding(segmentation), about)
    words_in_token = np.array([token.count("_") + 1 for token in space.tokens])
    norms = np.linalg.norm(space.vectors, axis=1)
    metrics = {
        "n_tokens": len(space.tokens),
        "n_unigrams": int((words_in_token == 1).sum()),
        "n_bigrams": int((words_in_token == 2).sum()),
        "n_trigrams": int((words_in_token == 3).sum()),
        "tokens_covered": int(space.counts.sum()) if trained is None else trained.tokens_covered,
        # Rounded: a metric people compare, not the vectors themselves.
        "norm_median": round(float(np.median(norms)), 3),
        "norm_largest": round(float(norms.max()), 3),
        "training": about
        | {
            "began": None if trained is None else trained.began,
            "loss_by_epoch": None if trained is None else [loss and round(loss, 4) for loss in trained.losses],
        },
        "quality": {
            "neighbours": neighbour_samples(raw),
            "similarity": {name: similarity(raw, load_similarity(name)) for name in SIMILARITY},
            "analogies": analogies(raw, load_analogies()),
            # Of the vectors as trained, whose lengths say what training did.
            "frequency": by_frequency(raw, None if trained is None else trained.moved),
        },
    }
    write_json(metrics, paths.METRICS / "embeddings" / f"{segmentation}.json")
    print(f"{len(space.tokens):,} vectors of {space.vectors.shape[1]} dimensions")


if __name__ == "__main__":
    stage_main(main, pandas=False)
