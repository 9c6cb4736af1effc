"""Order the vocabulary of each segmentation along lines, for 1-Diffractor: embeddings -> word_orders/SEGMENTATION/SET/.

A set has one list of each model (L0), two of each (L1), or one of the first model alone (L2). Its words are those that
all of its models know: were the lists to differ in words, which of them a word can be drawn from would give it away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lexveil import paths
from lexveil.artifacts.external_embeddings import load_model
from lexveil.artifacts.word_orders import write_word_orders
from lexveil.config import load_params
from lexveil.embeddings.word_orders import NEAR, SETS, Search, WordLists, greedy_orders, mean_step, share_near
from lexveil.embeddings.word_space import WordSpace
from lexveil.errors import RequestError
from lexveil.mechanisms.noise.streams import stream
from lexveil.runtime.stage import Progress, stage_main
from lexveil.runtime.tables import atomic_directory
from lexveil.text.segment import TRAINED
from lexveil.types import Rows

STREAM = "build_lists"  # names the random stream; another name would give other orders
MEASURED = 20_000  # words at most whose nearest word is looked for in the lists

_Made = dict[str, tuple[npt.NDArray[np.int32], list[dict[str, object]]]]


def shared_words(spaces: Sequence[WordSpace]) -> tuple[list[str], list[Rows]]:
    """The W words that every space knows, in the order of the first, and their rows in each, (W,) int64."""
    numbers = [{token: row for row, token in enumerate(space.tokens)} for space in spaces]
    words = [token for token in spaces[0].tokens if all(token in number for number in numbers[1:])]
    return words, [np.array([number[word] for word in words], dtype=np.int64) for number in numbers]


def order_words(
    space: WordSpace, rows: Rows, n_lists: int, search: Search, seed: int, names: Sequence[str], progress: Progress
) -> tuple[npt.NDArray[np.int32], list[dict[str, object]]]:
    """Orders (n_lists, W) of the words at ``rows`` of one model, and the quality of each.

    The start of a list depends on seed, ``names`` and its number alone: the first of two is also the one of one.
    """
    vectors = np.ascontiguousarray(space.vectors[rows])
    starts = [int(stream(seed, STREAM, *names, str(i)).integers(len(rows))) for i in range(n_lists)]
    orders = greedy_orders(vectors, starts, search, seed, progress.advance)
    measured = np.arange(len(rows))
    if len(rows) > MEASURED:
        measured = np.sort(stream(seed, STREAM, *names, "quality").choice(len(rows), MEASURED, replace=False))
    shares = share_near(vectors, orders, measured)
    quality = [
        {
            "model": names[-1],
            "mean_step": round(mean_step(vectors, order), 6),
            f"share_within_{NEAR}": round(share, 6),
            "words_measured": len(measured),
        }
        for order, share in zip(orders, shares, strict=True)
    ]
    return orders, quality


def run(
    segmentation: str,
    models: Sequence[str],
    sets: Sequence[str],
    search: Search,
    seed: int,
    load: Callable[[str], WordSpace],
    out: Path,
) -> dict[str, WordLists]:
    """Write the list sets into folder ``out``, one folder each, and return them.

    Raises:
        RequestError: if the models share fewer than two words.
    """
    spaces = {model: load(model) for model in models}
    plans: dict[tuple[str, ...], int] = {}  # models of a set -> lists per model, the most that any set needs
    for name in sets:
        per_model, all_models = SETS[name]
        chosen = tuple(models) if all_models else (models[0],)
        plans[chosen] = max(per_model, plans.get(chosen, 0))
    vocabularies = {chosen: shared_words([spaces[model] for model in chosen]) for chosen in plans}
    steps = sum(n * len(chosen) * len(vocabularies[chosen][0]) for chosen, n in plans.items())
    progress = Progress(f"lists {segmentation}", steps, "words")
    ordered: dict[tuple[str, ...], _Made] = {}
    for chosen, n_lists in plans.items():
        words, rows = vocabularies[chosen]
        if len(words) < 2:
            raise RequestError(
                f"word_orders.models: {', '.join(chosen)} share {len(words)} words; lists need at least 2"
            )
        ordered[chosen] = {
            model: order_words(spaces[model], of, n_lists, search, seed, (segmentation, model), progress)
            for model, of in zip(chosen, rows, strict=True)
        }
    written: dict[str, WordLists] = {}
    with atomic_directory(out) as folder:
        for name in sets:
            per_model, all_models = SETS[name]
            chosen = tuple(models) if all_models else (models[0],)
            words = vocabularies[chosen][0]
            orders = np.concatenate([ordered[chosen][model][0][:per_model] for model in chosen])
            meta = {
                "lists": [quality for model in chosen for quality in ordered[chosen][model][1][:per_model]],
                "models": {model: {"words": len(spaces[model].tokens)} for model in chosen},
                "n_words": len(words),
                "search": search,
                "set": name,
            }
            written[name] = WordLists(words, orders)
            write_word_orders(written[name], meta, folder / name)
    return written


def main() -> None:
    """Run the stage."""
    params = load_params()
    for segmentation in TRAINED:
        # Other models know no collocations: in gst and mst the words that all of them share would be single words only.
        models = params.word_orders.models if segmentation == "word" else ["own"]
        ordered = run(
            segmentation,
            models,
            params.word_orders.sets,
            params.word_orders.search,
            params.seed,
            partial(load_model, segmentation=segmentation),
            paths.ARTIFACTS / "word_orders" / segmentation,
        )
        for name, lists in ordered.items():
            print(f"{segmentation} {name}: lists: {len(lists.orders)}, of {len(lists.words):,} words each")


if __name__ == "__main__":
    stage_main(main, pandas=False)
