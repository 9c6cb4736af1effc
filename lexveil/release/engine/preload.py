"""Module that a parent process imports before it forks workers, so that workers need not load
compiled code.

Otherwise each process spends most of a second on loading compiled code. The module draws no random
numbers, because workers that shared a generator would get the same noise.
"""

from __future__ import annotations

import pyarrow as pa

from lexveil.base.runtime.arrow import keep_pandas_out
from lexveil.core.mechanisms import registry  # noqa: F401
from lexveil.core.text.encode import Lexicon, encode
from lexveil.core.text.pieces import Pieces
from lexveil.core.text.render import render
from lexveil.io.formats.arrow_tables import ArrowRows
from lexveil.release.engine import engine  # noqa: F401
from lexveil.release.engine.batch import Batch


def preload_kernels() -> None:
    """Load the compiled code that every text needs, by tokenizing and rendering one short text.
    Pandas is not loaded.
    """
    keep_pandas_out()
    batch = Batch(ArrowRows([pa.array(["Some “words”, as of a text."], pa.large_string())]), [()])
    encoded = encode(batch.texts, Lexicon.build("word", ["words"], None))
    assert batch.text_keys
    render(Pieces.of([*encoded.forms]), encoded.word, encoded.text_of, 1)


preload_kernels()
