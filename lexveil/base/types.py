"""Type aliases for arrays. A comment or docstring beside each use states shape and unit.

There are three numberings of words: rows of a model, numbers in a mechanism, and numbers after the
word screen, which excludes certain words from outputs. Each numbering has a type of its own, so
that mypy reports a confusion of the three.
"""

from __future__ import annotations

from typing import Any, NewType

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]  # numbers of words or tokens
Rows = npt.NDArray[np.int64]  # row numbers of a table or matrix
# rows of a model's tokens, which index its embedding and its lexicon; -1 for no token
ModelRows = NewType("ModelRows", npt.NDArray[np.int64])
# numbers of a mechanism's input and output words (``Vocabulary``); -1 for no word
WordNumbers = NewType("WordNumbers", npt.NDArray[np.int64])
# numbers of a mechanism's words after the screen, which replaces screened words by others
WrittenNumbers = NewType("WrittenNumbers", npt.NDArray[np.int64])
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.int8]  # words of each token
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]  # random 64-bit words
Steps = npt.NDArray[np.int16]  # quantized coordinates

Vectors = npt.NDArray[np.float32]  # (V, p), one row per word
Orders = npt.NDArray[np.int32]  # (n_lists, W), the word at each index of each list
Noise = npt.NDArray[Any]  # (n, k) float64 or uint64, one row per token, k fixed for a mechanism
