"""Reader for files of gensim's ``KeyedVectors.save``, which runs no code from the file.

The file is a pickle, and a pickle may ask for a call of any function. This reader calls only
functions that build NumPy arrays, and replaces the class of the vectors by a plain holder of
attributes. It refuses a file that asks for anything else.
"""

from __future__ import annotations

import pickle  # only its parser, with a list of all allowed names
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lexveil.errors import RequestError
from lexveil.formats.messages import shown

MAGIC = b"\x80"  # first byte of a binary pickle
CLASSES = frozenset({"KeyedVectors", "Word2VecKeyedVectors"})
OTHER_FORM = "write it anew by KeyedVectors.save_word2vec_format(FILE)"


class _Holder:
    """Holder of the attributes of an object whose class is not instantiated."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class _Refused(Exception):
    """Error about a file that asks for an object that this module does not read."""


class _ArraysOnly(pickle.Unpickler):
    """Unpickler that builds arrays, lists, dictionaries and a holder of attributes only."""

    def find_class(self, module: str, name: str) -> Any:
        """Return one of the few classes and functions that a file of vectors needs."""
        if module == "gensim.models.keyedvectors" and name in CLASSES:
            return _Holder
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name in (
            "_reconstruct",
            "scalar",
        ):
            return _numpy_function(name)
        if module in ("numpy.core.numeric", "numpy._core.numeric") and name == "_frombuffer":
            return _numpy_function(name)
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        raise _Refused(f"{module}.{name}")


def _numpy_function(name: str) -> Callable[..., Any]:
    from numpy._core import multiarray, numeric

    function: Callable[..., Any] = getattr(numeric if name == "_frombuffer" else multiarray, name)
    return function


def read_keyed_vectors(
    file: Path,
) -> tuple[list[str], npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return words (n), vectors (n, p) and counts (n,) of a gensim file; counts are 0 if the file
    has none.

    gensim stores arrays of more than some megabytes beside the file, in FILE.vectors.npy.

    Raises:
        RequestError: if the file asks for other objects, is damaged, or lacks its vectors.
    """
    try:
        with file.open("rb") as stream:
            held = _ArraysOnly(stream).load()
    except _Refused as refused:
        raise RequestError(
            f"{shown(file)}: holds {refused}, which is no part of word vectors; {OTHER_FORM}"
        ) from None
    except Exception:  # a damaged pickle raises anything
        raise RequestError(f"{shown(file)}: damaged, or no KeyedVectors; {OTHER_FORM}") from None
    words: Any = getattr(held, "index_to_key", None) or getattr(held, "index2word", None)
    vectors: Any = getattr(held, "vectors", None)
    beside = file.with_name(f"{file.name}.vectors.npy")
    if vectors is None and beside.is_file():
        vectors = np.load(beside, mmap_mode="r", allow_pickle=False)
    if vectors is None:
        raise RequestError(f"{shown(file)}: its vectors lie in {shown(beside)}, which is not there")
    is_sound = (
        isinstance(words, list)
        and all(isinstance(word, str) for word in words)
        and isinstance(vectors, np.ndarray)
        and vectors.ndim == 2
        and vectors.dtype.kind == "f"
        and len(vectors) == len(words)
    )
    if not is_sound:
        raise RequestError(f"{shown(file)}: its words and vectors do not fit; {OTHER_FORM}")
    counts = getattr(held, "expandos", {}).get("count")
    if isinstance(counts, np.ndarray) and counts.shape == (len(words),):
        known = counts.astype(np.int64)
    else:
        known = np.zeros(len(words), dtype=np.int64)
    return words, np.asarray(vectors, dtype=np.float32), known
