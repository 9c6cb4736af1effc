"""The page: one HTML file that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from lexveil.report import formatting

# What a run makes, by where it lies below artifacts/.
WHERE = {
    "corpus/": "the sampled corpus, its words, and its sentences as word numbers",
    "ngrams/": "counts of words, bigrams and trigrams",
    "collocations/": "bigrams and trigrams that are kept, with counts and PMI",
    "segmented/": "the corpus cut into tokens, one sentence per line: word, gst, mst",
    "embeddings/": "the embedding of each segmentation: words, counts, vectors",
    "neighborhoods/": "the nearest words of every word",
    "plans/STRATEGY/EPSILON.parquet": "what every text may spend",
    "private/MECHANISM/STRATEGY/EPSILON/": "the rewritten documents, their token ledger, record.json and metrics.json",
    "deniability/MECHANISM/SEGMENTATION.json": "plausible deniability statistics of a mechanism",
    "evaluation/MECHANISM/STRATEGY/EPSILON.json": "scores, cosine, perplexity and membership inference of a run",
    "checks/": "what the expectations said, as JSON",
    "data_docs/": "the same as pages; they carry times, so DVC does not keep them",
    "metrics/": "numbers of the corpus, the segmentations and the embeddings",
    "report/": "this page, metrics.json, runs.csv, pmi.csv",
}


@dataclass(frozen=True, slots=True)
class Sources:
    """The template and what it is filled with beside the numbers: text of page.html.j2, page.css and page.js."""

    template: str
    style: str
    script: str


def render(sources: Sources, view: Mapping[str, Any]) -> str:
    """Fill the template.

    Args:
        view: tables, figures and plain values, by the names that the template uses.

    Raises:
        jinja2.UndefinedError: if the template uses a name that ``view`` does not have.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "count": formatting.count,
        "share": formatting.share,
        "epsilon": formatting.epsilon,
        "three": formatting.three,
        "breakable": _breakable,
        "listed": formatting.listed,
    }
    page = environment.from_string(sources.template)
    # Both files are ours and hold no closing tag of their own.
    own = {"style": Markup(sources.style), "script": Markup(sources.script)}
    return page.render(view, where=WHERE, **own).rstrip() + "\n"


def _breakable(token: str) -> Markup:
    """A token that may be broken after each of its words; `_` alone is no place for it."""
    return Markup("_<wbr>").join(token.split("_"))
