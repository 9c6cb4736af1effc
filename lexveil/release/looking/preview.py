"""Preview of the first rows of an input, for `lexveil privatize --preview N`.

Nothing is written or charged, because the draws are an experiment. The result holds source text,
which is the purpose of a preview, so it must not be logged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lexveil.base.errors import RequestError, option
from lexveil.core.accounting.changes import TextChanges
from lexveil.core.accounting.operator_report import SECRECY
from lexveil.io.artifacts.model import Model
from lexveil.io.formats.chunks import Chunk
from lexveil.io.request import FileRequest
from lexveil.release.adapters.inputs import find_readers, is_a_folder, name_in
from lexveil.release.engine.batch import batch_of
from lexveil.release.engine.sentences import engine_of
from lexveil.release.engine.worker import Processes
from lexveil.release.preconditions import settings_for
from lexveil.release.run import RowSource, Run
from lexveil.release.settings import document_budget


@dataclass(frozen=True, slots=True, repr=False)
class PreviewRow:
    """One row of a preview: its number in its file, from 1, and the rewriting of each of its texts.
    Missing texts are omitted.
    """

    file: str | None
    row: int
    texts: dict[str, TextChanges]


@dataclass(frozen=True, slots=True, repr=False)
class Preview:
    """The first rows of an input, rewritten as an experiment with a seed."""

    mechanism: str
    strategy: str
    seed: int
    document_budget: float
    rows: list[PreviewRow]

    def to_dict(self) -> dict[str, object]:
        """Return the preview as JSON values. The output of a dropped token is null."""
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
    """Rewrite the first rows of a file, a folder or standard input, exactly as an experiment with
    the same seed would.

    Args:
        source, project, model: the arguments of ``privatize_file``.
        request: the request of an experiment.

    Raises:
        RequestError: if ``privatize_file`` would refuse the request.
    """
    using = Model.load(project, model)
    settings = settings_for(request, using)
    if not settings.has_public_budget:
        raise RequestError(
            f"{option('average_words')} data needs all rows, but a preview reads only the "
            "first; give a number of words"
        )
    assert settings.seed is not None
    spool = using.path(using.configuration.machine.temp_directory)
    with find_readers(source, request, spool) as readers:
        named = readers if is_a_folder(source) else []
        names = {id(reader): name_in(source, reader.source.path) for reader in named}

        def chunks(*, for_writing: bool) -> Iterator[Chunk]:
            for reader in readers:
                for chunk in reader.chunks(for_writing):
                    yield replace(chunk, file=names.get(id(reader), ""))

        columns = tuple(readers[0].text_columns)
        budget = document_budget(settings, using)
        source_rows = RowSource(chunks, columns)
        run = Run(engine_of(settings, using), budget, source_rows, Processes(1))
        rows = _first_rows(run, n_rows)
    return Preview(settings.mechanism, settings.strategy, settings.seed, run.budget.total, rows)


def _first_rows(run: Run, n_rows: int) -> list[PreviewRow]:
    """Rewrite the first rows of an input, without reading more of the input than these rows
    need.
    """
    rows: list[PreviewRow] = []
    read = run.source.chunks(for_writing=False)
    for chunk in run.language.supported(read):
        first = min(n_rows - len(rows), len(chunk))
        batch = batch_of(replace(chunk, selection=np.arange(len(chunk)) < first))
        changes = run.worker.draw(batch, run.budget).changes(batch.texts, run.engine.lexicon)
        texts = [dict[str, TextChanges]() for _ in range(first)]
        places = zip(batch.document, batch.column, batch.place, changes, strict=True)
        for row, column, place, of_text in places:
            which = f" no. {place + 1}" if place else ""
            texts[row][f"{run.source.columns[column]}{which}"] = of_text
        rows += [
            PreviewRow(chunk.file or None, chunk.first + row, of_row)
            for row, of_row in enumerate(texts)
        ]
        if len(rows) == n_rows:
            break
    return rows
