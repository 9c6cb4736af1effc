"""A matplotlib figure as SVG that belongs to the page: its font, its colours, no header of a file of its own."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

import matplotlib
import matplotlib.style
import numpy as np
from markupsafe import Markup
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

# A figure draws in these; the page replaces each by its own variable, which is another colour in the dark.
# Series colours are Okabe and Ito's, chosen to differ for colour-blind readers.
INK, DIM, LINE, PAPER = "#1f2328", "#59636e", "#d1d9e0", "#fefefe"
BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#d55e00", "#00875f", "#a4508b"
BROWN, SLATE, RED = "#8a6a00", "#5b6776", "#c2185b"  # where there are more than four
VARIABLES = {
    INK: "--ink",
    DIM: "--dim",
    LINE: "--line",
    PAPER: "--paper",
    BLUE: "--c1",
    ORANGE: "--c2",
    GREEN: "--c3",
    PURPLE: "--c4",
    BROWN: "--c5",
    SLATE: "--c6",
    RED: "--c7",
}

POINTS = 200  # of a line, at most, that can be pointed at
WIDTH, HEIGHT = 430, 295  # pixels of one panel; two stand side by side on a wide page, below each other on a phone

_XLINK = "{http://www.w3.org/1999/xlink}"
_MARK = "mark:"  # of an id that says what a group shows
_REFERENCE = re.compile(r"(?:url\(#|^#)([\w-]+)")


@contextmanager
def drawing(name: str) -> Iterator[Figure]:
    """Give an empty figure, drawn by the library's own defaults whatever the user's matplotlibrc says.

    Args:
        name: unique on the page; ids inside the SVG are derived from it, so that the same figure gives the same bytes.
    """
    style: dict[Any, Any] = {
        "svg.fonttype": "none",  # text stays text: it can be searched, read aloud, and takes the page's font
        "svg.hashsalt": name,
        "font.family": "DejaVu Sans",  # ships with matplotlib; the layout is measured in it
        "font.size": 12,
        "axes.edgecolor": DIM,
        "axes.labelcolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": LINE,
        "grid.linewidth": 0.8,
        "text.color": INK,
        "xtick.color": DIM,
        "ytick.color": DIM,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "hatch.linewidth": 1.2,
        "hatch.color": PAPER,
        "legend.frameon": False,
    }
    with matplotlib.style.context("default", after_reset=True), matplotlib.rc_context(style):
        figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72))
        figure.patch.set_visible(False)
        yield figure


def to_svg(figure: Figure, name: str, title: str, description: str) -> Markup:
    """Render ``figure``; call it inside ``drawing``.

    Args:
        name: the one given to ``drawing``.
        title: what the image shows, in a few words.
        description: what a person who cannot see it should know.
    """
    for axes in figure.axes:
        axes.patch.set_visible(False)
        _name_series(axes)
    out = io.BytesIO()
    # No metadata at all: it would carry the date, and the library's address.
    figure.savefig(out, format="svg", metadata=dict.fromkeys(["Date", "Creator", "Format", "Type"]))
    root = ElementTree.fromstring(out.getvalue())
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for key in [key for key in element.attrib if key.startswith(_XLINK)]:
            element.attrib[key.removeprefix(_XLINK)] = element.attrib.pop(key)
        for key in ("fill", "stroke"):  # only a style can name a variable
            if element.get(key, "").startswith("#"):
                colour = f"{key}: {element.attrib.pop(key)}"
                element.attrib["style"] = "; ".join(filter(None, [element.get("style"), colour]))
        if "style" in element.attrib:
            element.attrib["style"] = _themed(element.attrib["style"])
    # matplotlib numbers its groups the same way in every figure; ids that nothing refers to would only collide.
    used = {
        found for element in root.iter() for value in element.attrib.values() for found in _REFERENCE.findall(value)
    }
    for element in list(root.iter()):
        if element.get("id", "").startswith(_MARK):
            _say_values(element, json.loads(element.attrib["id"].removeprefix(_MARK)))
        if element.get("id") not in used:
            element.attrib.pop("id", None)
    for metadata in root.findall("metadata"):
        root.remove(metadata)
    width, height = (round(inches * 72) for inches in figure.get_size_inches())
    root.attrib.clear()
    label_ids = f"{name}-title {name}-desc"
    root.attrib.update({"viewBox": f"0 0 {width} {height}", "role": "img", "aria-labelledby": label_ids})
    for tag, text in (("desc", description), ("title", title)):
        label = ElementTree.Element(tag, {"id": f"{name}-{tag}"})
        label.text = text
        root.insert(0, label)
    text = ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)
    return Markup(re.sub(r">\s+<", "><", text))


def tell(artist: Artist, values: Sequence[str]) -> None:
    """Say what is shown where somebody points at an artist: a text for each of its points."""
    artist.set_gid(json.dumps(list(values)))


def _name_series(axes: Axes) -> None:
    """Write into the group of each artist which series it is of, by its label or else by its colour, and its values."""
    containers = [container for container in axes.containers if isinstance(container, BarContainer)]
    bars = {patch: container for container in containers for patch in container.patches}
    handles, labels = axes.get_legend_handles_labels()
    by_colour = {_colour(handle): label for handle, label in zip(handles, labels, strict=True)}
    for artist in (*axes.lines, *axes.collections, *axes.patches):
        bar = bars.get(artist) if isinstance(artist, Rectangle) else None
        label = str((bar or artist).get_label())
        series = by_colour.get(_colour(artist), "") if label.startswith("_") else label
        told = artist.get_gid()
        values = json.loads(told) if told else _values(artist, axes, series, bar)
        artist.set_gid(f"{_MARK}{json.dumps({'series': series, 'values': values})}")
    for legend in axes.findobj(Legend):
        assert isinstance(legend, Legend)
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
            mark = f"{_MARK}{json.dumps({'legend': text.get_text()})}"
            text.set_gid(mark)
            if handle is not None:
                handle.set_gid(mark)


def _colour(artist: Any) -> str:
    artist = artist.patches[0] if isinstance(artist, BarContainer) else artist
    colours = to_rgba_array(artist.get_color() if hasattr(artist, "get_color") else artist.get_facecolor())
    return str(colours[0, :3].tolist()) if len(colours) else ""


def _values(artist: Artist, axes: Axes, series: str, bar: BarContainer | None) -> list[str]:
    """What an artist shows at each point, by its own coordinates."""
    start = f"{series}: " if series else ""
    x, y = axes.get_xlabel(), axes.get_ylabel()
    if isinstance(artist, Line2D) and artist.get_marker() != "None":
        points = list(zip(np.atleast_1d(artist.get_xdata()), np.atleast_1d(artist.get_ydata()), strict=True))
        return (
            [f"{start}{_written(y, up)}, {_written(x, right)}" for right, up in points] if len(points) < POINTS else []
        )
    if isinstance(artist, Rectangle) and bar is not None:
        is_across = bar.orientation == "horizontal"
        return [start + _written(x if is_across else y, artist.get_width() if is_across else artist.get_height())]
    return []


def _written(label: str, value: float) -> str:
    """A value and what its axis calls it."""
    return f"{label.replace(' (%)', '')} {value:.1%}" if "%" in label else f"{label} {value:.4g}"


def _say_values(element: ElementTree.Element, mark: Mapping[str, Any]) -> None:
    """Let a group of the image tell its series and, by titles, which browsers show, the values of its points."""
    if "legend" in mark:
        element.set("data-legend", mark["legend"])
        return
    if mark["series"]:
        element.set("data-series", mark["series"])
    points = [inner for inner in element.iter() if inner.tag == "use"] or [element]
    if len(points) == len(mark["values"]):
        for point, value in zip(points, mark["values"], strict=True):
            title = ElementTree.Element("title")
            title.text = value
            point.insert(0, title)


def _themed(style: str) -> str:
    style = re.sub(r"font:[^;]*?([\d.]+px)[^;]*", r"font-size: \1", style)
    style = re.sub(r"font-family:[^;]*;?", "", style)  # the page's, which is there: the one measured in may not be
    style = re.sub(r"#[0-9a-f]{6}", lambda found: _variable(found[0]), style)
    return style.replace("stroke-linejoin: miter", "").replace("; ;", ";").strip("; ")


def _variable(colour: str) -> str:
    name = VARIABLES.get(colour)
    return f"var({name})" if name else colour
