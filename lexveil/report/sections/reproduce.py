"""Parameters and versions of libraries, and where everything is."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from typing import Any

import yaml

from lexveil.report.data import ReportData
from lexveil.report.section import Section
from lexveil.report.table import Column, Table

LIBRARIES = (
    "dvc", "duckdb", "gensim", "great-expectations", "jinja2", "matplotlib", "numba", "numpy", "pandas", "prefect",
    "pyarrow", "pynndescent", "randomgen", "scikit-learn", "scipy",
)  # fmt: skip  # fmt: skip

# What a run makes, by where it lies below artifacts/.
WHERE = {
    "corpus/": "the sampled corpus, its words, and its sentences as word numbers",
    "ngrams/": "counts of words, bigrams and trigrams",
    "collocations/": "bigrams and trigrams that are kept, with counts and PMI",
    "segmented/": "the corpus cut into tokens, one sentence per line: word, gst, mst",
    "embeddings/": "the embedding of each segmentation: words, counts, vectors",
    "neighborhoods/": "the nearest words of every word",
    "plans/STRATEGY/EPSILON.parquet": "what every text may spend",
    "plans/MECHANISM/STRATEGY/rLEVEL.json": "the epsilon that was found for a level of recovery, and the plan beside it",
    "private/MECHANISM/STRATEGY/EPSILON/": "the rewritten documents, their token ledger, record.json and metrics.json",
    "deniability/MECHANISM/SEGMENTATION.json": "plausible deniability statistics of a mechanism",
    "evaluation/MECHANISM/STRATEGY/EPSILON.json": "scores, cosine, perplexity and membership inference of a run",
    "checks/": "what the expectations said, as JSON",
    "data_docs/": "the same as pages; they carry times, so DVC does not keep them",
    "metrics/": "numbers of the corpus, the segmentations and the embeddings",
    "report/": "this page, metrics.json, runs.csv, pmi.csv",
}


def versions_table() -> Table:
    """The libraries of the installation that makes the page. Not Python's own: its patch level changes no result."""
    return Table(
        "versions",
        "Versions of libraries",
        [Column("library", "Library"), Column("version", "Version")],
        [(name, metadata.version(name)) for name in LIBRARIES],
    )


def view(report: ReportData) -> Mapping[str, Any]:
    """What the section shows."""
    settings = report.params.model_dump(exclude={"machine", "operation"})
    return {
        "params_text": yaml.safe_dump(settings, sort_keys=False, default_flow_style=None, width=46).strip(),
        "versions": versions_table(),
        "where": WHERE,
    }


SECTION = Section(
    name="reproduce",
    title="Reproduce",
    heading="Parameters, versions, and how to reproduce",
    view=view,
    prose="""\
<pre>lexveil run    <span>     # everything, with progress; only what changed runs again</span>
dvc repro           # the same graph without the flow
dvc metrics diff    # the numbers of this page, against the last commit
dvc plots diff      # the plots, against the last commit</pre>
<p>The same data, code and parameters give the same bytes: dvc.lock holds their hashes.</p>
<div class="pair">
<div>
<figure class="table">
<figcaption>Parameters (params.yaml)</figcaption>
<pre>{{ params_text }}</pre>
<p class="note">The section <code>machine</code> is left out: it changes no result.</p>
</figure>
</div>
<div>
{{ render_table(versions, csv=false) }}
</div>
</div>
<figure class="table prose">
<figcaption id="where-caption">Where everything is, below artifacts/</figcaption>
<div class="scroll" tabindex="0" role="region" aria-labelledby="where-caption">
<table id="table-where" class="fit" aria-labelledby="where-caption"><thead><tr><th scope="col">Path</th><th scope="col">What it holds</th></tr></thead><tbody>
{% for path, what in where.items() %}
<tr><th scope="row"><code>{{ path }}</code></th><td>{{ what }}</td></tr>
{% endfor %}
</tbody></table></div>
</figure>
""",
)
