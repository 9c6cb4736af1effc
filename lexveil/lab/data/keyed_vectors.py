"""Reader for words and vectors of gensim's ``KeyedVectors``, from an object in memory or from a
file.

``KeyedVectors.save`` writes a pickle, and a pickle may call any function when it is read. This
module calls only functions that build NumPy arrays, and replaces the class of the vectors by a
plain holder of attributes. The module refuses a file that needs anything else.
"""

from __future__ import annotations

import pickle  # only the parser is used, with a list of all allowed names
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lexveil.base.errors import RequestError
from lexveil.io.formats.messages import shown

MAGIC = b"\x80"  # first byte of a binary pickle
CLASSES = frozenset({"KeyedVectors", "Word2VecKeyedVectors"})
OTHER_FORM = "save the vectors again by KeyedVectors.save_word2vec_format(FILE)"


class _Holder:
    """Placeholder that holds the attributes of an unpickled object, whose own class is not
    instantiated.
    """

    vectors: Any = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class _RefusedError(Exception):
    """Error about a pickle file that contains an object that this module does not read."""


class _ArraysOnly(pickle.Unpickler):
    """Restricted unpickler that builds only NumPy arrays, lists, dictionaries and a placeholder
    object.
    """

    def find_class(self, module: str, name: str) -> Any:
        """Return one of the few classes and functions that a file of vectors needs; raise an error
        for all others.
        """
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
        raise _RefusedError(f"{module}.{name}")


def _numpy_function(name: str) -> Callable[..., Any]:
    from numpy._core import multiarray, numeric

    function: Callable[..., Any] = getattr(numeric if name == "_frombuffer" else multiarray, name)
    return function


class KeyedTable(NamedTuple):
    """Words with their vectors and counts.

    Attributes:
        words: n words.
        vectors: (n, p).
        counts: (n,) numbers of occurrences; 0 where the number is unknown.
    """

    words: list[str]
    vectors: npt.NDArray[np.float32]
    counts: npt.NDArray[np.int64]


def table_of(held: Any, name: str, way_out: str) -> KeyedTable:
    """Extract words, vectors and counts from a gensim object.

    Args:
        held: KeyedVectors, or an object with the same attributes.
        name: name of the object, for messages.
        way_out: advice in the message, if the object holds no word vectors.

    Raises:
        RequestError: if the object does not hold one vector for each word.
    """
    words: Any = getattr(held, "index_to_key", None) or getattr(held, "index2word", None)
    vectors: Any = getattr(held, "vectors", None)
    is_sound = (
        isinstance(words, list)
        and all(isinstance(word, str) for word in words)
        and isinstance(vectors, np.ndarray)
        and vectors.ndim == 2
        and vectors.dtype.kind == "f"
        and len(vectors) == len(words)
    )
    if not is_sound:
        raise RequestError(f"{name}: does not have one vector for each word; {way_out}")
    counts = getattr(held, "expandos", {}).get("count")
    if not isinstance(counts, np.ndarray) or counts.shape != (len(words),):
        counts = np.zeros(len(words))
    return KeyedTable(words, np.asarray(vectors, dtype=np.float32), counts.astype(np.int64))


def read_keyed_vectors(file: Path) -> KeyedTable:
    """Read the words and vectors of a file that gensim's ``KeyedVectors.save`` wrote.

    gensim stores arrays of more than a few megabytes beside the file, in FILE.vectors.npy.

    Raises:
        RequestError: if the file contains other objects, is damaged, or lacks its vectors.
    """
    try:
        with file.open("rb") as stream:
            held = _ArraysOnly(stream).load()
    except _RefusedError as refused:
        raise RequestError(
            f"{shown(file)}: contains {refused}, which is no part of word vectors; {OTHER_FORM}"
        ) from None
    except Exception:  # reading a damaged pickle can raise any exception
        raise RequestError(f"{shown(file)}: damaged, or no KeyedVectors; {OTHER_FORM}") from None
    if isinstance(held, _Holder) and held.vectors is None:
        beside = file.with_name(f"{file.name}.vectors.npy")
        if not beside.is_file():
            raise RequestError(
                f"{shown(file)}: its vectors belong in {shown(beside)}, which is missing"
            )
        held.vectors = np.load(beside, mmap_mode="r", allow_pickle=False)
    return table_of(held, shown(file), OTHER_FORM)
