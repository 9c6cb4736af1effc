"""What a process that rewrites texts has loaded, once it has begun: imported by the one that
workers are forked from.

Loading compiled kernels takes most of a second in each process otherwise. Nothing is drawn here: a
generator that the workers shared would give all of them the same noise.
"""

from __future__ import annotations

import pyarrow as pa

from lexveil.formats.arrow_tables import ArrowRows
from lexveil.mechanisms import registry  # noqa: F401
from lexveil.privatization.engine import engine  # noqa: F401
from lexveil.privatization.engine.batch import Batch
from lexveil.runtime.arrow import keep_pandas_out
from lexveil.text.encode import Lexicon, encode
from lexveil.text.pieces import Pieces
from lexveil.text.render import render


def preload_kernels() -> None:
    """Do a little of all that is done with any text, none of which needs pandas."""
    keep_pandas_out()
    batch = Batch(ArrowRows([pa.array(["Some “words”, as of a text."], pa.large_string())]), [()])
    encoded = encode(batch.texts, Lexicon.build("word", ["words"], None))
    assert batch.text_keys
    render(Pieces.of([*encoded.forms]), encoded.word, encoded.text_of, 1)


preload_kernels()
