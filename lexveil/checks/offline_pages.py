"""Data Docs that can be opened from a disk without a network.

Great Expectations renders its pages for a browser that fetches styles, scripts, fonts and a logo from elsewhere. Here a
rendered page is rebuilt from an allowed list of elements and attributes, none of which loads anything, and gets a small
stylesheet of our own. A list of what may stay cannot be outgrown by a new version, as a list of what must go could.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from html.parser import HTMLParser
from typing import Any

_KEPT = frozenset([
    "a", "b", "br", "code", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "li", "ol", "p",
    "pre", "small", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
])  # fmt: skip
_DROPPED_WHOLE = frozenset([
    "button", "footer", "form", "head", "iframe", "label", "nav", "noscript", "object", "script", "select",
    "style", "svg", "template", "textarea",
])  # fmt: skip
_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"]
)
_ATTRIBUTES = frozenset(["class", "colspan", "hidden", "id", "rowspan"])
# Side bar and folded details: both need scripts, and what they tell stands in the header and in results.json.
_DROPPED_CLASSES = frozenset(["collapse", "sticky"])

_STYLE = """
:root { color-scheme: light dark; --line: #d0d4da; --soft: #f4f5f7; --good: #1a7f37; --bad: #c62828; --dim: #667; }
@media (prefers-color-scheme: dark) {
  :root { --line: #3a3f47; --soft: #22262c; --good: #57c273; --bad: #ff7b72; --dim: #9aa3af; }
}
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1.5rem; }
header { border-bottom: 1px solid var(--line); margin-bottom: 1rem; padding-bottom: .5rem; }
header h1 { font-size: 1.4rem; margin: 0; }
header p, .lead { color: var(--dim); margin: .2rem 0; }
h4, h5, h6 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
.alert h5 { font-family: ui-monospace, monospace; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; }
th { background: var(--soft); font-weight: 600; }
td:first-child, th:first-child { width: 9rem; }
td:last-child:not(:nth-child(2)), th:last-child:not(:nth-child(2)) { width: 12rem; }
ul { list-style: none; padding-left: .6rem; }
hr { display: none; }
.badge { background: var(--soft); border-radius: .25rem; font-family: ui-monospace, monospace; padding: 0 .3rem; }
.fa-check-circle::before { color: var(--good); content: "\\2713  holds"; }
.fa-times::before { color: var(--bad); content: "\\2717  does not hold"; }
.fa-exclamation-triangle::before { color: var(--bad); content: "!  not evaluated"; }
.text-danger { color: var(--bad); }
i { font-style: normal; }
""".strip()


def offline_page(page: str, name: str, about: str) -> str:
    """Rebuild one rendered page so that nothing in it is fetched.

    Args:
        page: HTML as Great Expectations renders it.
        name: of the validation; each ``/`` in it puts the page one folder deeper.
        about: a line for the header.
    """
    body = _Allowed()
    body.feed(page)
    body.close()
    up = "../" * (name.count("/") + 1)
    links = (
        '<a href="index.html">results</a> · <a href="suite.html">suite</a> · <a href="results.json">json</a> · '
        f'<a href="{up}index.html">all validations</a>'
    )
    return _page(name, f"<p>{escape(about)}</p><p>{links}</p>", "".join(body.parts))


def index_page(results: Sequence[Mapping[str, Any]]) -> str:
    """The page that leads to every validation.

    Args:
        results: what each results.json holds.
    """
    rows = "".join(
        f'<tr><td><i class="fas {"fa-check-circle" if result["success"] else "fa-times"}"></i></td>'
        f'<td><a href="{escape(result["name"])}/index.html">{escape(result["name"])}</a></td>'
        f"<td>{result['statistics']['successful_expectations']} of "
        f"{result['statistics']['evaluated_expectations']}</td>"
        f"<td>{escape(result['run_time'][:19])}</td></tr>"
        for result in results
    )
    head = "<tr><th>Status</th><th>Validation</th><th>Expectations that hold</th><th>Time (UTC)</th></tr>"
    return _page("Data Docs", "<p>Every validation of this project</p>", f"<table>{head}{rows}</table>")


def _page(title: str, header: str, body: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}\n</style></head>\n"
        f"<body><header><h1>{escape(title)}</h1>{header}</header>\n{body}\n</body>\n</html>\n"
    )


class _Allowed(HTMLParser):
    """Keeps allowed elements and text, leaves out the rest."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._left_out: list[str] = []  # open elements, from the one that is dropped with its content

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep, unwrap or drop one element."""
        known = dict(attrs)
        classes = set((known.get("class") or "").split())
        unfolds = tag == "a" and "data-toggle" in known
        if self._left_out or unfolds or tag in _DROPPED_WHOLE or classes & _DROPPED_CLASSES:
            self._left_out += [tag] * (tag not in _VOID)
            return
        if tag in _KEPT:
            kept = [(key, value) for key, value in attrs if key in _ATTRIBUTES]
            href = known.get("href") or ""
            if href.startswith("#"):
                kept.append(("href", href))
            elif "/expectations/" in href:  # the one page of Great Expectations' own site that we keep
                kept.append(("href", "suite.html"))
            self.parts.append("".join([f"<{tag}", *(f' {key}="{escape(value or "")}"' for key, value in kept), ">"]))

    def handle_endtag(self, tag: str) -> None:
        """Close what was opened."""
        if self._left_out:
            if tag in self._left_out:  # those opened since then end with it, as <li> may
                del self._left_out[len(self._left_out) - 1 - self._left_out[::-1].index(tag) :]
        elif tag in _KEPT and tag not in _VOID:
            self.parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        """Keep text as text."""
        if not self._left_out:
            self.parts.append(escape(data, quote=False) if data.strip() else " ")
