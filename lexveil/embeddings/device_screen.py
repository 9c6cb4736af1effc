"""Exact nearest neighbours by float32 products on a graphics processor: they screen, float64 decides on this one.

PyTorch is of the extra ``neural``; nothing here is used without it and a device that it sees.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np
import numpy.typing as npt

from lexveil.embeddings.kernels.search import measure_groups
from lexveil.types import Floats, Rows, Vectors

ROOM = 256  # words of a query that may be too near to tell apart
SCORES = 3  # arrays of (queries, words) that live at once: the scores, what is selected of them, and a reserve
LEAST = 64  # queries at a time; fewer are not worth a product


def graphics_device() -> str | None:
    """The device that PyTorch would use, if there is one and PyTorch is installed; it takes seconds to load."""
    if importlib.util.find_spec("torch") is None:
        return None
    torch: Any = importlib.import_module("torch")
    return "cuda" if torch.cuda.is_available() else None  # AMD's are called so too


def on_device(vectors: Vectors, half_norms: Vectors) -> DeviceScreen | None:
    """The words on the device, or None where there is none that takes them.

    It may be full; and a fork of a process that has used it cannot use it.
    """
    device = graphics_device()
    try:
        return None if device is None else DeviceScreen(vectors, half_norms, device)
    except RuntimeError:  # of PyTorch, whose OutOfMemoryError is one
        return None


class DeviceScreen:
    """The words of an exact search on a device. About 4·V·p bytes there, and scores in what else is free.

    Args:
        vectors: (V, p) float32, V > 0.
        half_norms: (V,) half their squared lengths.
        device: as PyTorch names it.
    """

    def __init__(self, vectors: Vectors, half_norms: Vectors, device: str) -> None:
        self.vectors, self.device = vectors, device
        self._torch: Any = importlib.import_module("torch")
        self._words = self._torch.tensor(vectors, device=device)
        self._halves = self._torch.tensor(half_norms, device=device)

    def nearest_k(self, queries: Floats, k: int, slack: Floats) -> tuple[Rows, Floats, npt.NDArray[np.bool_]]:
        """The k nearest rows of each query, with the squares of their distances.

        Args:
            queries: (n, p) float64, finite and contiguous.
            k: at most V.
            slack: (n,) twice the largest error of a score in float32; not finite where it has no room for one.

        Returns:
            (n, k) int64, (n, k) float64, and (n,) whether the query was answered.
        """
        n = len(queries)
        ids, squares = np.full((n, k), -1, dtype=np.int64), np.full((n, k), np.inf)
        answered, start, size = np.zeros(n, dtype=np.bool_), 0, self.batch()
        while start < n:
            some = slice(start, start + size)
            try:
                rows, of, found = self._near(queries[some], k, slack[some])
            except self._torch.OutOfMemoryError:
                if size <= LEAST:
                    break  # the rest is left to another search
                size = max(LEAST, size // 2)
                continue
            answered[some] = found
            measure_groups(self.vectors, queries[some], rows, of, 1, ids[some], squares[some])
            start += size
        return ids, squares, answered

    def batch(self) -> int:
        """How many queries fit into what memory is free."""
        if self.device.startswith("cuda"):
            free = int(self._torch.cuda.mem_get_info(self.device)[0])
        else:
            import psutil

            free = int(psutil.virtual_memory().available)
        return max(LEAST, free // 2 // (4 * SCORES * len(self.vectors)))

    def _near(self, queries: Floats, k: int, slack: Floats) -> tuple[Rows, Rows, npt.NDArray[np.bool_]]:
        """Words that may be among the k nearest, in ascending order for each query, and who has all of them."""
        torch = self._torch
        precision = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")  # no 10-bit fractions, whatever the process likes elsewhere
        try:
            with torch.inference_mode(), np.errstate(over="ignore"):  # of queries that are not answered
                single = torch.from_numpy(queries.astype(np.float32)).to(self.device)
                scores = torch.matmul(single, self._words.T)
                scores -= self._halves
                kth = torch.topk(scores, k, dim=1).values[:, -1].cpu().numpy().astype(np.float64)
                limit = np.nextafter((kth - slack).astype(np.float32), np.float32(-np.inf))
                near = scores >= torch.from_numpy(limit).to(self.device)[:, None]
                found = (near.sum(dim=1) <= ROOM).cpu().numpy() & np.isfinite(limit)
                near &= torch.from_numpy(found).to(self.device)[:, None]
                of, rows = (part.cpu().numpy() for part in torch.nonzero(near, as_tuple=True))
        finally:
            torch.set_float32_matmul_precision(precision)
        return rows, of, found
