"""The table that numbers the surfaces of tokens, by their bytes with ASCII letters in lower case."""

from __future__ import annotations

import numpy as np

from lexveil.text.kernels.characters import Hashes, kernel
from lexveil.types import Bytes, Int32


@kernel
def lower(byte: np.uint8) -> np.uint8:  # pragma: no cover - compiled
    """ASCII letters in lower case, other bytes as they are."""
    return byte + np.uint8(32) if 65 <= byte <= 90 else byte


@kernel
def hash_of(data: Bytes, at: int, stop: int) -> np.uint64:  # pragma: no cover - compiled
    """FNV-1a over the lower-cased bytes, its high bits folded into the low ones that choose a slot."""
    value = np.uint64(0xCBF29CE484222325)
    for i in range(at, stop):
        value = (value ^ np.uint64(lower(data[i]))) * np.uint64(0x100000001B3)
    return value ^ value >> np.uint64(32)


@kernel
def find_slot(
    data: Bytes, at: int, stop: int, value: np.uint64, slots: Int32, hashes: Hashes, places: Int32
) -> np.int64:  # pragma: no cover - compiled
    """The slot of a surface, or the free one where it belongs. Equal means byte for byte, not only by hash."""
    mask = len(slots) - 1
    slot = np.int64(value & np.uint64(mask))
    while True:
        surface = slots[slot]
        if surface < 0:
            return slot
        if hashes[surface] == value:
            start = np.int64(places[surface, 0])
            if places[surface, 1] - start == stop - at:
                i = 0
                while i < stop - at and lower(data[start + i]) == lower(data[at + i]):
                    i += 1
                if i == stop - at:
                    return slot
        slot = (slot + 1) & mask


@kernel
def refill(slots: Int32, hashes: Hashes) -> None:  # pragma: no cover - compiled
    """Put surfaces 0, 1, ... into a table of free slots."""
    mask = len(slots) - 1
    for surface in range(len(hashes)):
        slot = np.int64(hashes[surface] & np.uint64(mask))
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = surface
