"""The rejection samplers of kernels/tem.py for a few tokens: the same proposals, the same decisions, the same words.

Of each token some proposals are decided together; of those that are not refused the first one counts. Where NumPy's
logarithm, or another order of additions, could decide, the margins left for rounding hand it to the distance, or to
exact arithmetic, as there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from lexveil.embeddings.exact_search import pair_distances
from lexveil.embeddings.sketch_form import COORDINATES, SLACK
from lexveil.mechanisms.noise.keystream import token_stream
from lexveil.mechanisms.rejection import MARGIN, PENDING, ROUNDING, UNDECIDED
from lexveil.types import Floats, Ids, Steps, Vectors, Words

Members = npt.NDArray[np.int32]
# Words, positions, and a lower and an upper bound of the distance, of some proposals.
Proposals = tuple[Ids, Ids, Floats, Floats]

AT_ONCE = 64  # random words that become proposals together


def draw_uniformly(
    vectors: Vectors,
    sketches: Steps,
    step: float,
    ids: Ids,
    epsilon: Floats,
    gamma: Floats,
    keys: Words,
    attempts: int,
    bits: int,
    refused: Ids,
    doubts: Ids,
) -> Ids:
    """Draw by uniform proposals; arguments as of the kernel."""
    scale = 1 << bits
    out = np.full(len(ids), PENDING)
    for token, (word, half, radius) in enumerate(_tokens(ids, epsilon, gamma)):

        def propose(points: Ids, word: int = word) -> Proposals:
            proposed, q = points >> bits, points & (scale - 1)
            return proposed, q, *_sketch_bounds(sketches, step, word, proposed)

        points = _points(keys[token], 0, len(vectors) << bits)
        # The kernel decides on a proposal when it has the next one, so on one less than it makes.
        out[token] = _first(
            vectors, word, half, radius, bits, points, attempts - 1, propose, int(refused[token]), doubts[token]
        )
    return out


def draw_from_lists(
    vectors: Vectors,
    sketches: Steps,
    step: float,
    near_ids: Members,
    near_distances: Floats,
    shells: Ids,
    places: Ids,
    ids: Ids,
    epsilon: Floats,
    gamma: Floats,
    keys: Words,
    bits: int,
    refused: Ids,
    doubts: Ids,
) -> Ids:
    """Draw by shells of the nearest words, and all others; arguments as of the kernel."""
    n_words, n_shells, scale = len(vectors), len(shells) - 1, 1 << bits
    size = np.append(np.diff(shells), n_words if n_words > near_ids.shape[1] else 0)
    out = np.full(len(ids), PENDING)
    for token, (word, half, radius) in enumerate(_tokens(ids, epsilon, gamma)):
        members, distances = near_ids[places[token]], near_distances[places[token]]
        bounds = distances[np.minimum(shells, len(members) - 1)] * (1 - ROUNDING)
        weights = [math.exp(-half * min(bound, radius)) for bound in bounds.tolist()]
        envelope = np.array([min(scale, int(weight * (1 + MARGIN) * scale) + 1) for weight in weights])
        edges = np.cumsum(size * envelope)

        def propose(
            points: Ids,
            word: int = word,
            members: Members = members,
            distances: Floats = distances,
            envelope: Ids = envelope,
            edges: Ids = edges,
        ) -> Proposals:
            shell = np.searchsorted(edges, points, side="right")
            proposed, q = np.divmod(points - np.where(shell > 0, edges[shell - 1], 0), envelope[shell])
            far = shell == n_shells
            there = np.where(far, 0, shells[shell] + proposed)
            words = np.where(far, proposed, members[there])
            low, high = _sketch_bounds(sketches, step, word, words)
            q = np.where(far & np.isin(words, members), scale, q)  # a near word is proposed in its shell
            return words, q, np.where(far, low, distances[there]), np.where(far, high, distances[there])

        points = _points(keys[token], 1, int(edges[-1]))
        out[token] = _first(
            vectors, word, half, radius, bits, points, None, propose, int(refused[token]), doubts[token]
        )
    return out


def _tokens(ids: Ids, epsilon: Floats, gamma: Floats) -> Iterator[tuple[int, float, float]]:
    """Word, ε/2 and γ of each token."""
    return zip(ids.tolist(), (epsilon / 2).tolist(), gamma.tolist(), strict=True)


def _points(key: Words, nonce: int, total: int) -> Iterator[Ids]:
    """Uniform whole numbers below ``total``, some at a time."""
    stream = token_stream(key, nonce)
    mask = np.uint64((1 << (total - 1).bit_length()) - 1)
    while True:
        points = (stream.random_raw(AT_ONCE) & mask).astype(np.int64)
        yield points[points < total]


def _first(
    vectors: Vectors,
    word: int,
    half: float,
    radius: float,
    bits: int,
    points: Iterator[Ids],
    most: int | None,
    propose: Callable[[Ids], Proposals],
    refused: int,
    doubt: Ids,
) -> int:
    """The first proposal that is not refused, or UNDECIDED; PENDING if ``most`` were refused."""
    done = 0
    for some in points:
        here = some if most is None else some[: most - done]
        proposed, q, near, far = propose(here)
        fresh = np.arange(done, done + len(here)) >= refused
        accepted, open_ = _decided(q, near, far, half, radius, bits)
        for i in np.flatnonzero(fresh & (accepted | open_)).tolist():
            answer = int(proposed[i])
            if not accepted[i]:
                distance = min(float(pair_distances(vectors, np.array([word]), proposed[i : i + 1])[0]), radius)
                least, most_far = (float(limit[0]) for limit in _limits(q[i : i + 1], half, bits))
                if distance > most_far:
                    continue
                answer = answer if distance < least else UNDECIDED
            doubt[:] = proposed[i], q[i], done + i
            return answer
        done += len(here)
        if done == most:
            break
    return PENDING


def _limits(q: Ids, half: float, bits: int) -> tuple[Floats, Floats]:
    """Below the first a distance is accepted, above the second refused: for a position in [q, q + 1), 0 <= q < S."""
    scale = 1 << bits
    least = np.full(len(q), math.log(scale) / half * (1 - ROUNDING))
    most = np.full(len(q), np.inf)
    some = q > 0
    limit = -np.log(q[some] / scale) / half
    # The position may be as much as q + 1, and ln(1 + 1/q) <= 1/q.
    least[some] = limit * (1 - ROUNDING) - (1 + ROUNDING) / (half * q[some])
    most[some] = limit * (1 + ROUNDING)
    return least, most


def _decided(
    q: Ids, near: Floats, far: Floats, half: float, radius: float, bits: int
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which proposals are accepted by bounds of their distances, and which they leave open."""
    inside = q < 1 << bits
    least, most = _limits(np.where(inside, q, 1), half, bits)
    accepted = np.minimum(far, radius) * (1 + MARGIN) < least
    refused = np.minimum(near, radius) * (1 - MARGIN) > most
    return inside & accepted, inside & ~accepted & ~refused


def _sketch_bounds(sketches: Steps, step: float, first: int, second: Ids) -> tuple[Floats, Floats]:
    """A lower and an upper bound of the distances from one word to others."""
    here, there = sketches[first].astype(np.float64), sketches[second].astype(np.float64)
    square = np.einsum("nk,nk->n", there - here, there - here)
    both = 4.0 * here[COORDINATES] * there[:, COORDINATES]
    return step * (np.sqrt(square) - SLACK), step * (np.sqrt(square + both) + SLACK)
