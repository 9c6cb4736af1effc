"""One-dimensional orders of a vocabulary, built greedily (Meisenbacher et al. 2024,
1-Diffractor).

An order starts at some word and proceeds to the nearest unused word until no word is left. Any
order is private with respect to its own metric |index(w) - index(w')|. The quality of the order
only determines how similar in meaning the words around a word are.

The construction walks along a graph of nearest words. When all neighbours of a word are used, a
scan finds the nearest unused word; the order never jumps to an arbitrary word. The graph is rebuilt
on the remaining words whenever their number has halved. So scans are rare, and nearly all work is
done by matrix products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from lexveil.base.types import Orders, Vectors

if TYPE_CHECKING:
    from lexveil.core.embeddings.knn_graph import Graph, Scanner

Search = Literal["exact", "pynndescent"]

NEIGHBORS = 50  # neighbours of each word in the graph; changes the time, not the exact order
EXACT_BELOW = 8192  # number of words below which an approximate graph saves nothing
NEAR = 100  # largest distance in positions at which a word counts as near its nearest neighbour

# The list sets of the paper: lists per model, and whether the set uses all models or only the
# first.
SETS: dict[str, tuple[int, bool]] = {"L0": (1, True), "L1": (2, True), "L2": (1, False)}


@dataclass(frozen=True, slots=True)
class WordLists:
    """List set of 1-Diffractor: several one-dimensional orders of one vocabulary.

    Attributes:
        words: W words that every model of the set knows; any other word is out of vocabulary for
            the whole set.
        orders: (n_lists, W) int32; ``orders[l, i]`` is the row, in ``words``, of the word at
            position i of list l.
    """

    words: Sequence[str]
    orders: Orders

    def __post_init__(self) -> None:
        if self.orders.ndim != 2 or self.orders.shape[1] != len(self.words):
            raise ValueError(
                f"orders of shape {self.orders.shape} do not fit {len(self.words)} words"
            )

    def positions(self) -> Orders:
        """Return the position of each word in each order, (n_lists, W) int32."""
        return positions(self.orders)

    def only(self, keep: npt.NDArray[np.bool_]) -> WordLists:
        """Return the word orders without the words for which ``keep`` (W,) is false. The remaining
        words keep their order.
        """
        new_row = (np.cumsum(keep) - 1).astype(np.int32)
        left = new_row[self.orders[keep[self.orders]]].reshape(len(self.orders), int(keep.sum()))
        return WordLists(
            [word for word, is_kept in zip(self.words, keep, strict=True) if is_kept], left
        )


def positions(orders: Orders) -> Orders:
    """Return the position of each word in each order, (n_lists, W), which is the inverse
    permutation of each order.
    """
    places = np.empty_like(orders)
    np.put_along_axis(places, orders, np.arange(orders.shape[1], dtype=np.int32)[None], axis=1)
    return places


def greedy_orders(
    vectors: Vectors,
    starts: Sequence[int],
    search: Search = "exact",
    seed: int = 0,
    on_step: Callable[[int], None] | None = None,
) -> Orders:
    """Build one greedy order of all V words for each start word.

    ``exact``: each step proceeds to the nearest unused word by float64 distance, and to the lowest
    row among equally near words. ``pynndescent``: each step proceeds to the nearest unused word
    among the approximate neighbours, and to the exactly nearest unused word if all neighbours are
    used. It serves vocabularies so large that V² products take too long.

    Args:
        vectors: (V, p).
        starts: the first row of each order.
        search: method that builds the graph.
        seed: seed of the approximate graph.
        on_step: called with the number of words placed since its last call.

    Returns:
        (len(starts), V) int32, each row a permutation.
    """
    from lexveil.core.embeddings.knn_graph import Scanner

    scanner = Scanner(vectors)
    first = _graph(scanner, search, seed)  # shared by all starts
    orders = np.empty((len(starts), len(vectors)), dtype=np.int32)
    for order, start in zip(orders, starts, strict=True):
        _fill(order, start, scanner, first, search, seed, on_step or (lambda _: None))
    return orders


def _graph(scanner: Scanner, search: Search, seed: int) -> Graph:
    from lexveil.core.embeddings.exact_search import approximate_neighbors
    from lexveil.core.embeddings.knn_graph import Graph, exact_graph

    if search == "exact" or len(scanner.vectors) < EXACT_BELOW:
        return exact_graph(scanner, NEIGHBORS, np.arange(len(scanner.vectors)))
    ids, _ = approximate_neighbors(scanner.vectors, NEIGHBORS, seed)
    return Graph(ids, np.full(len(ids), ids.shape[1], dtype=np.int32))


def _fill(
    order: Orders,
    start: int,
    scanner: Scanner,
    graph: Graph,
    search: Search,
    seed: int,
    on_step: Callable[[int], None],
) -> None:
    """Build the greedy order of all words that begins with the word ``start``, and write it into
    ``order`` (V,).
    """
    from lexveil.core.embeddings.knn_graph import Scanner, walk

    active = np.arange(len(order), dtype=np.int32)  # rows of the words in the graph
    used = np.zeros(len(active), dtype=np.bool_)
    current = start
    filled = 1
    order[0] = start
    used[start] = True
    while True:
        small = len(active) <= NEIGHBORS + 1  # the graph holds every pair
        target = len(order) if small else len(order) - len(active) // 2
        before = filled
        while filled < target:
            current, filled = walk(
                graph.ids, graph.proven, active, used, current, order, filled, target
            )
            if filled < target:
                current = scanner.nearest(current, used)
                order[filled] = active[current]
                used[current] = True
                filled += 1
        on_step(filled - before)
        if filled == len(order):
            return
        used[current] = False  # the current word stays in the graph as the next query
        keep = np.flatnonzero(~used)
        current = int(np.searchsorted(keep, current))
        active = active[keep]
        scanner = Scanner(scanner.vectors[keep])
        graph = _graph(scanner, search, seed)
        used = np.zeros(len(active), dtype=np.bool_)
        used[current] = True


def mean_step(vectors: Vectors, order: Orders) -> float:
    """Return the mean distance between consecutive words of an order; 0 for an order of one
    word.
    """
    if len(order) < 2:
        return 0.0
    total = 0.0
    for start in range(0, len(order) - 1, 4096):
        steps = np.diff(vectors[order[start : start + 4097]].astype(np.float64), axis=0)
        total += float(np.sqrt((steps * steps).sum(axis=1)).sum())
    return total / (len(order) - 1)


def share_near(vectors: Vectors, orders: Orders, rows: npt.NDArray[np.int64]) -> list[float]:
    """Return, for each order, the share of the words ``rows`` whose exact nearest word is at most
    ``NEAR`` positions away.
    """
    if orders.shape[1] < 2:
        return [1.0] * len(orders)
    from lexveil.core.embeddings.knn_graph import nearest_others

    nearest = nearest_others(vectors, rows, 1)[0][:, 0]
    return [
        float((np.abs(place[rows] - place[nearest]) <= NEAR).mean()) for place in positions(orders)
    ]
