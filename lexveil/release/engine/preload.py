"""Preloaded kernels for worker processes. The parent imports this module before it forks workers.

Without this module, each process spends most of a second on loading compiled kernels. The module
draws no random numbers, because workers that shared a generator would get the same noise.
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
    """Encode and render one short text, which loads the kernels that every text needs. Pandas is
    not loaded.
    """
    keep_pandas_out()
    batch = Batch(ArrowRows([pa.array(["Some “words”, as of a text."], pa.large_string())]), [()])
    encoded = encode(batch.texts, Lexicon.build("word", ["words"], None))
    assert batch.text_keys
    render(Pieces.of([*encoded.forms]), encoded.word, encoded.text_of, 1)


preload_kernels()
