"""Text columns: which columns of a table could hold texts, by type and name alone.

What stands in a column never says so. Were the one with the longest texts taken, then how long
private texts are would decide which column is rewritten and which goes out as it is, and everybody
could read it from the output and its record.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from lexveil.base.errors import RequestError, option
from lexveil.io.formats.messages import HIDES, PERSON

USUAL = "text"  # the column that is taken without a question, where there is one
# What the last word of a name says a column holds, where that is no text.
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
YES_OR_NO = frozenset(("is", "has", "was", "can"))  # which a name of a truth value begins with
_WORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+|\d+")


def could_hold_texts(column: str) -> bool:
    """Whether a column may hold texts, by its name: ``review_body`` and ``x7`` may, ``review_id``,
    ``createdAt`` and ``customer`` may not.
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
    """Error about a request that names no text column of a table where several columns could hold
    texts.

    Attributes:
        shown: their names; none where the names may be cells of a row, which are not shown.
    """

    def __init__(self, where: str, columns: Sequence[str], listed: str, *, are_names: bool) -> None:
        self.shown = tuple(columns) if are_names and not os.environ.get(HIDES) else ()
        super().__init__(
            f"{where}: {len(columns)} columns could hold texts: {listed}. What is not named goes "
            "out as it is, and no text may decide that: say which to rewrite by "
            f"{option('text_column')}, once for each"
        )
