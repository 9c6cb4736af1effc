"""Pipeline stage that orders the vocabulary of each segmentation along one-dimensional lists, for
the mechanism 1-Diffractor: embeddings -> word_orders/SEGMENTATION/SET/.

A set of lists has one list per embedding model (L0), two lists per model (L1), or one list of the
first model alone (L2). A set contains the words that all of its models know. If lists had different
words, the list from which a word is drawn could reveal the word.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lexveil.base import paths
from lexveil.base.errors import RequestError
from lexveil.base.runtime.tables import atomic_directory
from lexveil.core.embeddings.list_sets import list_sets
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.io.artifacts.embeddings import write_word_orders
from lexveil.io.artifacts.model_store import load_words_of
from lexveil.io.config import load_configuration, load_params
from lexveil.io.execution.effort import foresee
from lexveil.io.execution.stage import Progress, stage_main

STREAM = "build_lists"  # name of the random streams; another name would give other orders


def main() -> None:
    """Run this stage of the DVC pipeline: write the word orders.

    Raises:
        RequestError: if the models share fewer than two words.
    """
    params = load_params()
    options = params.word_orders
    for segmentation in params.grid.segmentations:
        # Other models have no collocations, so in gst and mst the shared words would be single
        # words only.
        models = options.models if segmentation == "word" else ["own"]
        spaces = {
            model: load_words_of(model, "word_orders.models", segmentation) for model in models
        }

        def on_start(
            n_words: int,
            label: str = f"lists {segmentation}",
            size: int = spaces[models[0]].vectors.size,
        ) -> Callable[[int], None]:
            work = {"distances ordered": n_words * size}
            way_out = "Name fewer word_orders.sets or models"
            foresee(
                f"{label}: {n_words:,} words in total", work, way_out, load_configuration().machine
            )
            return Progress(label, n_words, "words").advance

        streams = partial(stream, params.seed, STREAM, segmentation)
        try:
            made = list_sets(spaces, options.sets, options.search, params.seed, streams, on_start)
        except ValueError as error:
            raise RequestError(f"word_orders.models: {error}") from None
        with atomic_directory(paths.ARTIFACTS / "word_orders" / segmentation) as folder:
            for name, (lists, about) in made.items():
                write_word_orders(lists, about, folder / name)
                print(
                    f"{segmentation} {name}: lists: {len(lists.orders)}, of "
                    f"{len(lists.words):,} words each"
                )


if __name__ == "__main__":
    stage_main(main, pandas=False)
