"""Text columns: choice of the columns of a table that could contain texts, by type and name alone.

The content of a column is never used for that choice. If the column with the longest texts were
taken, the lengths of private texts would determine which column is rewritten and which column is
published unchanged, and anybody could read the choice from the output and its record.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from lexveil.base.errors import RequestError, option
from lexveil.io.formats.messages import HIDES, PERSON

USUAL = "text"  # name of the column that is chosen without a question if it exists
# Last words of column names that imply other content than texts.
NO_TEXT = frozenset(
    """
    id ids uid uuid guid key keys pk ref reference no nr num number numbers count counts n index
    idx row rows rank position order size length
    date dates day days month months year years week hour hours minute minutes second seconds time
    times timestamp timestamps datetime at on created updated modified opened closed received sent
    since until duration age birthday dob
    name names firstname lastname surname gender sex nationality
    lang language languages locale country countries city town state region zip zipcode postcode
    address phone telephone mobile fax email url urls uri link links href path file files filename
    folder ip host domain lat lon lng latitude longitude
    category categories class classes label labels tag tags type types kind group groups status
    stage priority severity level channel platform source origin queue team department condition
    product products brand model version sku code codes currency price prices amount cost total sum
    quantity qty tax rating ratings score scores star stars sentiment polarity vote votes likes
    helpful useful recommended flag flags active verified enabled deleted split fold dataset hash
    md5 sha1 sha256 drug
    """.split()
)
YES_OR_NO = frozenset(("is", "has", "was", "can"))  # first words of column names of truth values
_WORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+|\d+")


def could_hold_texts(column: str) -> bool:
    """Return whether a column may contain texts, judged by its name alone. ``review_body`` and
    ``x7`` may; ``review_id``, ``createdAt`` and ``customer`` may not.
    """
    words = [
        word.lower()
        for word in _WORD.findall(column.replace("-mail", "mail"))
        if not word.isdigit()
    ]
    if not words:
        return bool(column)
    return not (
        words[-1] in NO_TEXT or words[0] in YES_OR_NO or PERSON.fullmatch(words[-1]) is not None
    )


class SeveralTextColumnsError(RequestError):
    """Error about a request that names no text column, for a table where several columns could
    contain texts.

    Attributes:
        shown: the names of these columns; empty if the names may be cells of a row, which are not
            shown.
    """

    def __init__(self, where: str, columns: Sequence[str], listed: str, *, are_names: bool) -> None:
        self.shown = tuple(columns) if are_names and not os.environ.get(HIDES) else ()
        super().__init__(
            f"{where}: {len(columns)} columns could contain texts: {listed}. Name each "
            f"column to rewrite by {option('text_column')}; all other columns are published "
            "unchanged, so the texts themselves must not decide"
        )
