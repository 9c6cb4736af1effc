"""Sample texts of the documents, with the rewritten form that every run of the grid produced.

Sample texts are source texts. The embedded documents are public, and the report shows some of them.
The report shows other source texts only if ``report.samples`` of params.yaml is a number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lexveil.base import paths
from lexveil.base.errors import CheckFailedError
from lexveil.base.levels import stage_name
from lexveil.base.runtime.tables import require
from lexveil.core.accounting.budgets import SEGMENTATION_OF, Action
from lexveil.core.accounting.changes import TextChanges, changes_of
from lexveil.core.text.encode import Encoded, Lexicon, encode
from lexveil.io.artifacts.lexicons import load_lexicon
from lexveil.io.config import CLEAN, MachineParams, Params
from lexveil.io.execution import duckdb_session
from lexveil.lab.report.records import Key

N_EMBEDDED = 3  # number of embedded documents to show, if params.yaml has no number

# Hashes of the embedded documents, computed by sql/report/document_hashes.sql. A data set that
# differs from them in one character is not public.
EMBEDDED = {
    "drug_reviews": "f153d5b6f1e2ccb8a5d67bdcda70c9ad4578344fc956670b09813a0bd558244a",
    "pang_lee": "3f9bea3c6427d8dcb78bf3b0c09681b31daae81a41c1c3f1f3510e5becfc5d43",
    "reviews": "b3ba9a9afbfd0b4eb881c20788c5b85d1d64ab4d80e12da847a789d40ee09917",
}

NUMBERS = {label: number for number, label in enumerate(Action.labels())}


@dataclass(frozen=True, slots=True, repr=False)
class SampleText:
    """A source text and its rewritten forms.

    Attributes:
        is_embedded: whether the text is one of the embedded documents, which are public.
        runs: the changes that each run made to the text, by run (mechanism, strategy and epsilon).
    """

    dataset: str
    source: str
    is_embedded: bool
    runs: Mapping[Key, TextChanges]


class Logged(NamedTuple):
    """One text of a run, as a row of sql/report/sample_tokens.sql: the output, and for each token
    its action (such as perturbed or kept) and the row of its output word.
    """

    number: int
    output: str
    actions: list[str] | None
    word_ids: list[int] | None


def load_samples(params: Params, keys: Sequence[Key], machine: MachineParams) -> list[SampleText]:
    """Load the sample texts that ``params`` selects, with the changes that each run made to them;
    all runs have the same sample texts.

    Args:
        keys: mechanism, strategy, and epsilon or recovery level of each run.

    Raises:
        MissingArtifactError: if the output of a run does not exist.
        CheckFailedError: if the token log of a run does not belong to its texts.
    """
    n = params.report.samples
    if n == 0:
        return []
    with duckdb_session.session(machine) as con:
        duckdb_session.view(
            con, "documents", require(paths.private(*CLEAN) / "documents.parquet", "baseline")
        )
        hashes = dict(duckdb_session.run(con, "report/document_hashes").fetchall())
        embedded = [
            dataset for dataset, digest in hashes.items() if EMBEDDED.get(dataset) == digest
        ]
        shown, n = (embedded, N_EMBEDDED) if n is None else (list(hashes), n)
        duckdb_session.create(
            con, "samples", "report/samples", datasets=shown, n=n, seed=params.seed
        )
        chosen = con.execute("select dataset, source from samples order by number").fetchall()
        logs: dict[Key, list[Logged]] = {}
        for key in keys if chosen else ():
            for name in ("documents", "tokens"):
                file = require(
                    paths.private(*key) / f"{name}.parquet", stage_name("privatize", *key)
                )
                duckdb_session.view(con, name, file)
            logs[key] = [
                Logged(*row) for row in duckdb_session.run(con, "report/sample_tokens").fetchall()
            ]
    texts = [source for _, source in chosen]
    lexicons = {
        name: load_lexicon(name, Path(), params.model.language)
        for name in sorted({SEGMENTATION_OF[strategy] for _, strategy, _ in logs})
    }
    cut = {name: (encode(texts, lexicon), lexicon) for name, lexicon in lexicons.items()}
    changes = {
        key: _changes(key, texts, *cut[SEGMENTATION_OF[key[1]]], log) for key, log in logs.items()
    }
    return [
        SampleText(
            dataset,
            source,
            dataset in embedded,
            {key: of_texts[number] for key, of_texts in changes.items()},
        )
        for number, (dataset, source) in enumerate(chosen)
    ]


def _changes(
    key: Key, texts: Sequence[str], encoded: Encoded, lexicon: Lexicon, log: Sequence[Logged]
) -> list[TextChanges]:
    """Compute the changes that a run made to some texts; ``encoded`` has the tokens of the texts,
    segmented as in the run.
    """
    actions = np.array(
        [NUMBERS[action] for text in log for action in text.actions or ()], dtype=np.int8
    )
    rows = np.array([row for text in log for row in text.word_ids or ()], dtype=np.int64)
    try:
        if [len(text.actions or ()) for text in log] != np.diff(encoded.offsets()).tolist():
            raise ValueError("another number of tokens")
        return changes_of(encoded, texts, [text.output for text in log], actions, rows, lexicon)
    except ValueError:
        raise CheckFailedError(
            f"{paths.private(*key)}: the token log does not belong to the texts beside it; run "
            f"`dvc repro --force {stage_name('privatize', *key)}`"
        ) from None
