"""List sets of the 1-Diffractor mechanisms: one-dimensional orders of the words that several
embeddings have in common, and the quality of these orders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lexveil.base.types import Orders, Rows, Vectors
from lexveil.core.embeddings.word_orders import (
    NEAR,
    SETS,
    Search,
    WordLists,
    greedy_orders,
    mean_step,
    share_near,
)
from lexveil.core.embeddings.word_space import WordSpace

MEASURED = 20_000  # greatest number of words whose nearest word is looked up in the lists

ListSet = tuple[WordLists, dict[str, object]]  # the lists and their metadata
Streams = Callable[[str, str], np.random.Generator]  # generator by model and use


def shared_words(spaces: Sequence[WordSpace]) -> tuple[list[str], list[Rows]]:
    """Return the W words that every space contains, in the order of the first space, and their
    rows in each space, (W,) int64.
    """
    numbers = [{token: row for row, token in enumerate(space.tokens)} for space in spaces]
    words = [token for token in spaces[0].tokens if all(token in number for number in numbers[1:])]
    return words, [np.array([number[word] for word in words], dtype=np.int64) for number in numbers]


def list_sets(
    spaces: Mapping[str, WordSpace],
    sets: Sequence[str],
    search: Search,
    seed: int,
    streams: Streams,
    on_start: Callable[[int], Callable[[int], None]],
) -> dict[str, ListSet]:
    """Build the named list sets, each of which contains one-dimensional word orders from several
    embeddings.

    The start of a list depends only on its model and its number. So a set with one list per model
    shares this list with a set that has two.

    Args:
        spaces: space by the name of the model.
        sets: names of the list sets to build, keys of ``SETS``.
        search: method of the neighbour search, see ``greedy_orders``.
        seed: seed of the approximate search.
        streams: random generators, for the start of each list and for the choice of measured words.
        on_start: called with the number of words to be placed in lists; returns a function that is
            called with the number of words placed since its last call.

    Raises:
        ValueError: if the models have fewer than two words in common.
    """
    # models of each list set
    groups = {name: tuple(spaces) if SETS[name][1] else (next(iter(spaces)),) for name in sets}
    n_lists = {
        group: max(SETS[name][0] for name in sets if groups[name] == group)
        for group in groups.values()
    }
    shared = {group: shared_words([spaces[model] for model in group]) for group in n_lists}
    for group, (words, _) in shared.items():
        if len(words) < 2:
            raise ValueError(
                f"{', '.join(group)} have {len(words)} words in common; lists need at least 2"
            )
    on_step = on_start(sum(n * len(group) * len(shared[group][0]) for group, n in n_lists.items()))
    orders: dict[tuple[tuple[str, ...], str], Orders] = {}
    quality: dict[tuple[tuple[str, ...], str], list[dict[str, object]]] = {}
    for group, n in n_lists.items():
        for model, rows in zip(group, shared[group][1], strict=True):
            vectors = np.ascontiguousarray(spaces[model].vectors[rows])
            starts = [int(streams(model, str(i)).integers(len(rows))) for i in range(n)]
            orders[group, model] = greedy_orders(vectors, starts, search, seed, on_step)
            quality[group, model] = _quality(model, vectors, orders[group, model], streams)
    sets_by_name: dict[str, ListSet] = {}
    for name, group in groups.items():
        n = SETS[name][0]
        words = shared[group][0]
        about: dict[str, object] = {
            "lists": [entry for model in group for entry in quality[group, model][:n]],
            "models": {model: {"words": len(spaces[model].tokens)} for model in group},
            "n_words": len(words),
            "search": search,
            "set": name,
        }
        sets_by_name[name] = (
            WordLists(words, np.concatenate([orders[group, model][:n] for model in group])),
            about,
        )
    return sets_by_name


def _quality(
    model: str, vectors: Vectors, orders: Orders, streams: Streams
) -> list[dict[str, object]]:
    """Measure, for each word order of a model, how similar in meaning the words are to the words
    around them.
    """
    measured = np.arange(len(vectors))
    if len(vectors) > MEASURED:
        measured = np.sort(streams(model, "quality").choice(len(vectors), MEASURED, replace=False))
    return [
        {
            "model": model,
            "mean_step": round(mean_step(vectors, order), 6),
            f"share_within_{NEAR}": round(share, 6),
            "words_measured": len(measured),
        }
        for order, share in zip(orders, share_near(vectors, orders, measured), strict=True)
    ]
