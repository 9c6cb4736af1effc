"""Normal forms in a table of their bytes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lexveil.text.kernels.characters import kernel
from lexveil.types import Bytes, Ids, Int32

Hashes = npt.NDArray[np.uint64]


@kernel
def hash_forms(letters: Bytes, starts: Ids, hashes: Hashes) -> None:  # pragma: no cover - compiled
    """FNV-1a of each form, its high bits folded into the low ones that choose a slot."""
    for number in range(len(hashes)):
        value = np.uint64(0xCBF29CE484222325)
        for i in range(starts[number], starts[number + 1]):
            value = (value ^ np.uint64(letters[i])) * np.uint64(0x100000001B3)
        hashes[number] = value ^ value >> np.uint64(32)


@kernel
def find(
    letters: Bytes,
    starts: Ids,
    hashes: Hashes,
    known_letters: Bytes,
    known_starts: Ids,
    known_hashes: Hashes,
    slots: Int32,
    numbers: Int32,
) -> None:  # pragma: no cover - compiled
    """The number of each form in a table, -1 if it is not there.

    Args:
        letters, starts, hashes: of the forms; (n + 1,) where each begins.
        known_letters, known_starts, known_hashes: the same of the table.
        slots: number by hash, -1 if free; open addressing.
        numbers: (n,) written.
    """
    mask = len(slots) - 1
    for number in range(len(hashes)):
        begin, size = starts[number], starts[number + 1] - starts[number]
        slot = np.int64(hashes[number] & np.uint64(mask))
        found = slots[slot]
        while found >= 0:
            if known_hashes[found] == hashes[number]:
                start = known_starts[found]
                i = np.int64(0)
                if known_starts[found + 1] - start == size:
                    while i < size and known_letters[start + i] == letters[begin + i]:
                        i += 1
                    if i == size:
                        break
            slot = (slot + 1) & mask
            found = slots[slot]
        numbers[number] = found


@kernel
def insert(slots: Int32, hashes: Hashes, first: int, stop: int) -> None:  # pragma: no cover - compiled
    """Put forms from ``first`` to before ``stop`` into a table in which they are not."""
    mask = len(slots) - 1
    for number in range(first, stop):
        slot = np.int64(hashes[number] & np.uint64(mask))
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = number
