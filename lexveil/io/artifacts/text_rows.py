"""View of documents as single texts. A document has one text, or two if it is a pair (``text`` and
``text_b``).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

FIELDS = ("text", "text_b")


def texts_of(documents: pa.Table) -> pa.Table:
    """Return a table with one row per text (dataset, doc_id, field, text), in the order of the
    documents. A missing second text has no row.

    A text is the unit that gets a budget, so the average length of a data set counts texts, not
    pairs (CLMLDP Table 8).
    """
    row = np.repeat(np.arange(documents.num_rows), 2)
    field = np.tile([0, 1], documents.num_rows)
    both = pa.chunked_array(
        [*documents.column("text").chunks, *documents.column("text_b").chunks], pa.string()
    )
    position = row + field * documents.num_rows
    present = both.take(position).is_valid().to_numpy()
    row = row[present]
    field = field[present]
    position = position[present]
    return pa.table(
        {
            "dataset": documents.column("dataset").take(row),
            "doc_id": documents.column("doc_id").take(row),
            "field": pa.array([FIELDS[number] for number in field.tolist()], pa.string()),
            "text": both.take(position),
        }
    )
