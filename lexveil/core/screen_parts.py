"""Parts of the public list of screened words, which never appear in an output, and the parts that
are screened by default.

The words of each part are in lexveil/models/blocklist.txt, and
lexveil/io/artifacts/screened_words.py reads them. `python -m benchmarks.screen_parts` gives the
reasons for the default.
"""

from __future__ import annotations

PARTS = ("vulgar", "jargon", "health", "crime", "religion", "names")
NONE = "none"
DEFAULT = ",".join(PARTS)


def chosen_parts(chosen: str) -> tuple[str, ...]:
    """Return the parts of the list of screened words that a setting such as ``vulgar,names`` or
    ``none`` chooses, in the order of ``PARTS``.

    Raises:
        ValueError: if the setting contains an unknown part, or ``none`` together with parts.
    """
    named = {name.strip() for name in chosen.split(",")}
    if named == {NONE}:
        return ()
    if not named.issubset(PARTS):
        raise ValueError(
            f"it must be {NONE!r}, or one or several of {', '.join(PARTS)}, separated by commas"
        )
    return tuple(name for name in PARTS if name in named)
