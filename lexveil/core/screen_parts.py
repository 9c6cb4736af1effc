"""The parts of the public list of words that are never put out: their names, and those that a
request takes unless it says otherwise.

The words of each part stand in lexveil/models/not_put_out.txt, and
lexveil/io/artifacts/screened_words.py reads them. The default is chosen by `python -m
benchmarks.screen_parts`.
"""

from __future__ import annotations

PARTS = ("vulgar", "jargon", "health", "crime", "religion", "names")
NONE = "none"
DEFAULT = ",".join(PARTS)


def chosen_parts(chosen: str) -> tuple[str, ...]:
    """Return the parts that a text such as ``vulgar,names`` or ``none`` chooses, in the order of
    ``PARTS``.

    Raises:
        ValueError: if it names something that is no part, or ``none`` beside parts.
    """
    named = {name.strip() for name in chosen.split(",")}
    if named == {NONE}:
        return ()
    if not named.issubset(PARTS):
        raise ValueError(
            f"it must be {NONE}, or some of {', '.join(PARTS)} with commas between them"
        )
    return tuple(name for name in PARTS if name in named)
