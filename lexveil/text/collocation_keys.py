"""How a collocation is packed into one number: what the look-up and its compiled kernels agree on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lexveil.types import Ids

WordIds = npt.NDArray[np.int32] | Ids
Table = npt.NDArray[np.void]  # of kernels/collocations.py

BITS = 21  # of a word's number; three of them share 63 bits of a key
MAX_WORDS = 2**BITS
