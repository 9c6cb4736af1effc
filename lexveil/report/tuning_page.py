"""Figures and page of `lexveil tune`: inference error over utility loss and over ε (Vickrey, Figure 2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes

from lexveil.report import formatting
from lexveil.report.figures import STYLES, add_legend, epsilon_axis, new_panel
from lexveil.report.svg import DIM, HEIGHT, INK, PAPER, VARIABLES, WIDTH, drawing, to_svg

SHOWN = len(STYLES)  # more lines than styles cannot be told apart
LOSS = "utility loss (probability of another label)"
ERROR = "inference error (probability)"
_LEGEND_LINE = 18  # pixels


@dataclass(frozen=True, slots=True)
class Frontier:
    """One line: n points by rising ε.

    Attributes:
        epsilon: (n,) in 1 / units of the mechanism's metric.
        loss, error: (n,) means, shares of 1.
        loss_sd, error_sd: (n,) standard deviations over runs; 0 where the distribution is known or there was one run.
    """

    label: str
    epsilon: Sequence[float]
    loss: Sequence[float]
    error: Sequence[float]
    loss_sd: Sequence[float]
    error_sd: Sequence[float]


def error_over_loss(
    name: str,
    title: str,
    lines: Sequence[Frontier],
    *,
    max_loss: float | None = None,
    chosen: Sequence[tuple[float, float]] = (),
) -> Markup:
    """Figure 2 (B): up is better for the people, left for the task; points grow with ε, bars are ± one deviation.

    Args:
        lines: at most SHOWN.
        max_loss: drawn as a vertical line.
        chosen: (loss, error) of points to ring.
    """

    def draw(axes: Axes, place: int, one: Frontier) -> None:
        colour, marker, dashes = STYLES[place]
        axes.errorbar(
            one.loss, one.error, xerr=one.loss_sd, yerr=one.error_sd, color=colour, linestyle=dashes, linewidth=1.4,
            elinewidth=1.2, capsize=2.5, zorder=2,
        )  # fmt: skip
        for step, at in enumerate(zip(one.loss, one.error, strict=True)):
            axes.plot(
                *at, color=colour, marker=marker, linestyle="none", markersize=4 + 4 * (step + 1) / len(one.loss),
                markeredgecolor=PAPER, markeredgewidth=0.8, clip_on=False, zorder=3,
            )  # fmt: skip

    def frame(axes: Axes) -> None:
        if max_loss is not None:
            axes.axvline(max_loss, color=DIM, linestyle=":", linewidth=1.4, zorder=1)
        for at in chosen:
            axes.plot(
                *at, color=INK, marker="o", linestyle="none", markersize=14, markerfacecolor="none",
                markeredgewidth=1.3, clip_on=False, zorder=4,
            )  # fmt: skip
        axes.set_xlim(left=0)

    said = "" if max_loss is None else f" The largest loss allowed is {max_loss:g}; what was chosen has a ring."
    return _figure(name, title, LOSS, lines, draw, frame, said)


def error_over_epsilon(name: str, title: str, lines: Sequence[Frontier], *, unit: str) -> Markup:
    """Figure 2 (A), on a logarithmic axis; bars are ± one deviation.

    Args:
        lines: at most SHOWN.
        unit: of ε.
    """

    def draw(axes: Axes, place: int, one: Frontier) -> None:
        colour, marker, dashes = STYLES[place]
        axes.errorbar(
            one.epsilon, one.error, yerr=one.error_sd, color=colour, linestyle=dashes, linewidth=1.6, marker=marker,
            markersize=7, markeredgecolor=PAPER, markeredgewidth=0.8, elinewidth=1.2, capsize=2.5, zorder=3,
        )  # fmt: skip

    def frame(axes: Axes) -> None:
        epsilon_axis(axes, sorted({x for line in lines for x in line.epsilon}))

    return _figure(name, title, f"ε of a word ({unit}, log)", lines, draw, frame, "")


def _figure(
    name: str,
    title: str,
    x_label: str,
    lines: Sequence[Frontier],
    draw: Callable[[Axes, int, Frontier], None],
    frame: Callable[[Axes], None],
    said: str,
) -> Markup:
    description = (
        f"{ERROR} over {x_label}. "
        + " ".join(
            f"{line.label}: "
            + ", ".join(
                f"error {error:.3f} at loss {loss:.3f} and ε {formatting.epsilon(epsilon)}"
                for epsilon, loss, error in zip(line.epsilon, line.loss, line.error, strict=True)
            )
            + "."
            for line in lines
        )
        + said
    )
    columns = min(2, max(len(lines), 1))
    extra = _LEGEND_LINE * (-(-len(lines) // columns) - 1)
    with drawing(name) as figure:
        figure.set_size_inches(WIDTH / 72, (HEIGHT + extra) / 72)
        axes = new_panel(figure, x_label, ERROR, top=40 + extra)
        for place, line in enumerate(lines):
            colour, marker, dashes = STYLES[place]
            draw(axes, place, line)
            axes.plot([], [], color=colour, marker=marker, linestyle=dashes, linewidth=1.6, label=line.label)
        frame(axes)
        axes.set_ylim(0, 1)
        add_legend(axes, columns)
        return to_svg(figure, name, title, description)


def standalone(figure: Markup) -> str:
    """The same as a file of its own, that any program can draw: fixed colours, a font, white paper."""
    colours = {variable: colour for colour, variable in VARIABLES.items()}
    text = re.sub(r"var\((--\w+)\)", lambda found: colours[found[1]], figure)
    box = re.search(r'viewBox="0 0 (\d+) (\d+)"', text)
    assert box is not None
    size = f'width="{2 * int(box[1])}" height="{2 * int(box[2])}"'  # of a screen; it scales to any
    root = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" '
    paper = f'<rect width="{box[1]}" height="{box[2]}" fill="#ffffff"/>'
    # After the title and the description, which name the image only as its first children.
    text = text.replace("<svg ", root, 1).replace("</desc>", f"</desc>{paper}", 1)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def page(
    title: str, style: str, notes: Sequence[str], figures: Sequence[tuple[str, Markup]], table: Sequence[Sequence[str]]
) -> str:
    """One HTML page that needs nothing beside it.

    Args:
        style: text of page.css.
        notes: paragraphs.
        figures: with what each shows.
        table: rows of cells, the first the head.
    """
    css = Markup(style)  # ours: it holds no closing tag
    paragraphs = Markup().join(Markup("<p>{}</p>\n").format(note) for note in notes)
    drawn = Markup().join(
        Markup("<figure><figcaption>{}</figcaption>{}</figure>\n").format(caption, svg) for caption, svg in figures
    )
    head, *rows = (
        Markup().join(Markup("<{0}>{1}</{0}>").format(tag, cell) for cell in row)
        for tag, row in zip(["th", *["td"] * (len(table) - 1)], table, strict=True)
    )
    body = Markup("\n").join(Markup("<tr>{}</tr>").format(row) for row in rows)
    return str(
        Markup(
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            "<title>{0}</title>\n<style>\n{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{2}"
            '<div class="panels">\n{3}</div>\n<div class="table"><div class="scroll" tabindex="0"><table class="fit">\n'
            "<thead><tr>{4}</tr></thead>\n<tbody>\n{5}\n</tbody>\n</table></div></div>\n</body>\n</html>\n"
        ).format(title, css, paragraphs, drawn, head, body)
    )
