"""Rewrite the first rows of an input to look at them, for `lexveil privatize --preview N`.

Nothing is written or charged: what is drawn is an experiment. The result holds source text, because
that is what was asked for; no log may have it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lexveil.accounting.changes import TextChanges
from lexveil.accounting.operator_report import SECRECY
from lexveil.artifacts.model import Model
from lexveil.errors import RequestError, option
from lexveil.privatization.adapters.inputs import find_readers, is_a_folder, name_in
from lexveil.privatization.engine.batch import batch_of, supported
from lexveil.privatization.engine.engine import Engine
from lexveil.privatization.settings import document_budget, resolve_settings
from lexveil.request import FileRequest


@dataclass(frozen=True, slots=True, repr=False)
class PreviewRow:
    """A row, by its number in its file, from 1, and what becomes of its texts, without those that
    are missing.
    """

    file: str | None
    row: int
    texts: dict[str, TextChanges]


@dataclass(frozen=True, slots=True, repr=False)
class Preview:
    """The first rows of an input, rewritten as an experiment with this seed."""

    mechanism: str
    strategy: str
    seed: int
    document_budget: float
    rows: list[PreviewRow]

    def to_dict(self) -> dict[str, object]:
        """Return the preview as JSON values; the output of a token that was dropped is null."""
        rows = [
            {
                "file": row.file,
                "row": row.row,
                "texts": [{"column": c} | t.to_dict() for c, t in row.texts.items()],
            }
            for row in self.rows
        ]
        about = {
            name: getattr(self, name)
            for name in ("mechanism", "strategy", "seed", "document_budget")
        }
        return {"secrecy": SECRECY, "mode": "experiment", **about, "rows": rows}


def preview(
    source: Path | str,
    n_rows: int,
    request: FileRequest,
    *,
    project: Path | Model | None = None,
    model: str | None = None,
) -> Preview:
    """Rewrite the first rows of a file, a folder or standard input, exactly as an experiment of the
    same seed does.

    Args:
        source, project, model: as of ``privatize_file``.
        request: the request of an experiment.

    Raises:
        RequestError: as ``privatize_file``.
    """
    if request.mechanism == "none":
        raise RequestError("mechanism none leaves texts as they are; there is nothing to preview")
    using = Model.load(project, model)
    settings = resolve_settings(request, using)
    if not settings.has_public_budget:
        raise RequestError(
            f"{option('average_words')} data takes all rows, and a preview reads the first; "
            "give a number of words"
        )
    assert settings.seed is not None
    is_folder = is_a_folder(source)
    rows: list[PreviewRow] = []
    with find_readers(
        source, request, using.path(using.configuration.machine.temp_directory)
    ) as readers:
        using.require_checks(settings.of_words)
        engine = Engine(settings, using)
        budget = document_budget(settings, using)
        worker = engine.worker(readers[0].text_columns)
        # No more chunks are read than those with the first rows.
        for reader in readers:
            for read in reader.chunks(for_writing=False):
                chunk = supported(read)[0] if settings.empties_scripts else read
                first = min(n_rows - len(rows), len(chunk))
                file = name_in(source, reader.source.path) if is_folder else ""
                batch = batch_of(replace(chunk, file=file, selection=np.arange(len(chunk)) < first))
                changes = worker.draw(batch, budget).changes(batch.texts, engine.lexicon)
                texts = [dict[str, TextChanges]() for _ in range(first)]
                places = zip(batch.document, batch.column, batch.place, changes, strict=True)
                for row, column, place, of_text in places:
                    which = f" no. {place + 1}" if place else ""
                    texts[row][f"{worker.columns[column]}{which}"] = of_text
                rows += [
                    PreviewRow(file or None, chunk.first + row, of_row)
                    for row, of_row in enumerate(texts)
                ]
                if len(rows) == n_rows:
                    return Preview(
                        settings.mechanism, settings.strategy, settings.seed, budget.total, rows
                    )
    return Preview(settings.mechanism, settings.strategy, settings.seed, budget.total, rows)
