"""The terminal output of `lexveil privatize --preview N`: each source text above its rewritten
text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from lexveil.core.accounting.changes import Fate, Part
from lexveil.io.request import SENTENCES

if TYPE_CHECKING:
    from lexveil.release.looking.preview import Preview, PreviewRow

STYLES = {
    Fate.REPLACED: "underline cyan",
    Fate.RANDOM: "underline italic yellow",
    Fate.UNCHANGED: "",
    Fate.KEPT: "dim",
    Fate.DROPPED: "strike",
    Fate.FOUND: "underline magenta",
}
# Marks for a terminal without styles.
BRACKETS = {
    Fate.REPLACED: ("[", "]"),
    Fate.RANDOM: ("{", "}"),
    Fate.DROPPED: ("<", ">"),
    Fate.FOUND: ("(", ")"),
}
CAUTION = (
    "This is an experiment: anybody who knows its seed, {seed}, can repeat the noise. "
    "Nothing was written, and no ledger was charged. These lines are as secret as the "
    "source. If you choose parameters by private texts, the choice discloses something "
    "about them, and no budget accounts for that; choose by public texts that are like "
    "yours."
)


def show_preview(found: Preview, console: Console | None = None) -> None:
    """Print the rows of a preview, a legend of the marks, and a warning about previews."""
    console = console or Console(highlight=False, soft_wrap=False)
    has_styles = console.color_system is not None
    several = len({column for row in found.rows for column in row.texts}) > 1
    for row in found.rows:
        for name, source, output in _lines(row, several, has_styles):
            console.print(
                Text(f"row {name}", "bold"), source, Text("rewritten", "bold"), output, "", sep="\n"
            )
    counted = Counter(
        fate for row in found.rows for changes in row.texts.values() for fate in changes.fates
    )
    shown = [fate for fate in Fate if fate != Fate.FOUND or counted[fate]]
    legend = [
        _marked([Part(fate.value, fate, 0)], has_styles).append(f" {counted[fate]:,}")
        for fate in shown
    ]
    drawn = "sentences" if found.strategy == SENTENCES else "tokens"
    console.print(Text(f"{drawn}: ") + Text(" · ").join(legend))
    console.print(
        Text(
            f"{found.mechanism} {found.strategy}, budget of each document "
            f"{found.document_budget:.4g}. "
        )
        + Text(CAUTION.format(seed=found.seed))
    )


def _lines(row: PreviewRow, several: bool, has_styles: bool) -> Iterator[tuple[str, Text, Text]]:
    """Yield, for each text of a preview row, its name, its marked source, and its marked output."""
    name = " ".join(filter(None, (row.file, f"{row.row:,}")))
    for column, changes in row.texts.items():
        named = f"{name} {column}" if several else name
        yield (
            _plain(named),
            _marked(changes.source_parts(), has_styles),
            _marked(changes.output_parts(), has_styles),
        )
    if not row.texts:
        yield _plain(name), Text("no text"), Text("no text")


def _marked(parts: Sequence[Part], has_styles: bool) -> Text:
    """Return a text in which each token has a style, or brackets, for its treatment, such as
    perturbed or kept.
    """
    marked = Text()
    for text, fate, _ in parts:
        style = STYLES[fate] if fate else ""
        before, after = BRACKETS.get(fate, ("", "")) if fate and not has_styles else ("", "")
        marked.append(before + _plain(text) + after, style if has_styles else "")
    return marked


def _plain(text: str) -> str:
    """Return a text without control characters that would move the cursor of a terminal, change its
    state or change the direction of writing.
    """
    return "".join(
        c if c.isprintable() or c == "\n" else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}"
        for c in text
    )
