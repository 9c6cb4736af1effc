"""Detection of scripts without spaces between words. In such scripts the tokenizer finds only
clauses, not words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Script name -> its characters, and the least mean length of a run without spaces.
_SCRIPTS = {
    "Japanese": (r"\u3005\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f", 4),
    "Chinese": (r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af", 4),
    "Thai": (r"\u0e01-\u0e3a\u0e40-\u0e4e", 10),
    "Lao": (r"\u0e81-\u0edf", 10),
    "Khmer": (r"\u1780-\u17d3", 10),
    "Myanmar": (r"\u1000-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f", 10),
}
_RUNS = {name: re.compile(f"[{characters}]+") for name, (characters, _) in _SCRIPTS.items()}
# Japanese mixes kana with Chinese characters; a text with kana is Japanese.
_RUNS["Chinese"] = re.compile(
    f"[{''.join(_SCRIPTS[name][0] for name in ('Japanese', 'Chinese'))}]+"
)
_ANY = re.compile(f"[{''.join(characters for characters, _ in _SCRIPTS.values())}]")

LEAST = 8  # characters of the script; a single name or word in it does not count as a text


def script_without_spaces(text: str) -> str | None:
    """Return the script that makes up at least half of a text, if this script has no spaces
    between words and the text is not separated into words; otherwise None.
    """
    if text.isascii() or not _ANY.search(text):
        return None
    for name in ("Chinese", "Thai", "Lao", "Khmer", "Myanmar"):
        runs = _RUNS[name].findall(text)
        size = sum(map(len, runs))
        if size < LEAST or size < _SCRIPTS[name][1] * len(runs):
            continue
        others = sum(map(str.isalnum, _RUNS[name].sub("", text)))
        if size >= others:
            return "Japanese" if name == "Chinese" and _RUNS["Japanese"].search(text) else name
    return None


def emptied(texts: Sequence[str | None]) -> tuple[list[str | None], int]:
    """Replace each text in a script without spaces between words by an empty text. Return the
    texts, and the number of emptied texts.
    """
    is_unsupported = [
        text is not None and script_without_spaces(text) is not None for text in texts
    ]
    texts_to_cut = (
        "" if is_empty else text for text, is_empty in zip(texts, is_unsupported, strict=True)
    )
    return [*texts_to_cut], sum(is_unsupported)


def first_without_spaces(texts: Sequence[str], forms: Sequence[str]) -> tuple[int, str] | None:
    """Return the number and the script of the first text in a script without spaces between words;
    None if no text is in such a script.

    Args:
        forms: the distinct tokens of the texts, which are quicker to search than the texts.
    """
    together = "".join(forms)
    if together.isascii() or not _ANY.search(together):
        return None
    scripts = ((number, script_without_spaces(text)) for number, text in enumerate(texts))
    return next(((number, script) for number, script in scripts if script is not None), None)
