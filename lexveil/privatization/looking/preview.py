"""Rewrite the first rows of an input to look at them, for `lexveil privatize --preview N`.

Nothing is written or charged: what is drawn is an experiment. The result holds source text, because that is what was
asked for; no log may have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lexveil.accounting.budgets import DocumentBudget
from lexveil.accounting.changes import Fate, TextChanges, changes_of
from lexveil.accounting.operator_report import SECRECY
from lexveil.accounting.results import Result
from lexveil.artifacts.model import Model
from lexveil.databases.address import is_address
from lexveil.errors import RequestError, option
from lexveil.formats.chunks import Chunk
from lexveil.formats.readers import Reader
from lexveil.privatization.adapters.inputs import STDIN, find_readers, name_in
from lexveil.privatization.engine.batch import batch_of
from lexveil.privatization.engine.engine import Engine
from lexveil.privatization.engine.worker import BatchWorker
from lexveil.privatization.settings import resolve_settings
from lexveil.request import FileRequest
from lexveil.text.encode import Lexicon


class TokenPreview(Result):
    """What became of a token, and the characters that it and what came of it stand at; null where it was dropped."""

    fate: Fate
    source: tuple[int, int]
    output: tuple[int, int] | None


class TextPreview(Result):
    """A text as it is and as it comes out."""

    column: str
    source: str
    output: str
    tokens: list[TokenPreview]


class RowPreview(Result):
    """A row, by its number in its file, from 1; without the texts that are missing."""

    file: str | None
    row: int
    texts: list[TextPreview]


class PreviewResult(Result):
    """The first rows of an input, rewritten as an experiment with this seed."""

    secrecy: str
    mode: str
    seed: int
    mechanism: str
    strategy: str
    document_budget: float
    rows: list[RowPreview]


@dataclass(frozen=True, slots=True, repr=False)
class PreviewRow:
    """A row and what becomes of its texts; see ``RowPreview``."""

    file: str | None
    row: int
    texts: dict[str, TextChanges]


@dataclass(frozen=True, slots=True, repr=False)
class Preview:
    """The first rows of an input, rewritten as an experiment with this seed; see ``PreviewResult``."""

    mechanism: str
    strategy: str
    seed: int
    document_budget: float
    rows: list[PreviewRow]

    def result(self) -> PreviewResult:
        """The same with its JSON form."""
        return PreviewResult(
            secrecy=SECRECY,
            mode="experiment",
            seed=self.seed,
            mechanism=self.mechanism,
            strategy=self.strategy,
            document_budget=self.document_budget,
            rows=[
                RowPreview(file=row.file, row=row.row, texts=[_text(*item) for item in row.texts.items()])
                for row in self.rows
            ],
        )


def _text(column: str, changes: TextChanges) -> TextPreview:
    spans = zip(changes.fates, changes.source_spans.tolist(), changes.output_spans.tolist(), strict=True)
    tokens = [
        TokenPreview(fate=fate, source=tuple(source), output=None if output[0] < 0 else tuple(output))
        for fate, source, output in spans
    ]
    return TextPreview(column=column, source=changes.source, output=changes.output, tokens=tokens)


def preview(
    source: Path | str,
    n_rows: int,
    request: FileRequest,
    *,
    project: Path | Model | None = None,
    model: str | None = None,
) -> Preview:
    """Rewrite the first rows of a file, a folder or standard input, exactly as an experiment of the same seed does.

    Args:
        source, project, model: as of ``privatize_file``.
        request: of an experiment.

    Raises:
        RequestError: as ``privatize_file``.
    """
    if request.mechanism == "none":
        raise RequestError("mechanism none leaves texts as they are; there is nothing to preview")
    using = Model.load(project, model)
    settings = resolve_settings(request, using)
    if settings.average_words == "data":
        raise RequestError(
            f"{option('average_words')} data takes all rows, and a preview reads the first; give a number of words"
        )
    assert settings.seed is not None
    spool = using.path(using.params.machine.temp_directory)
    with find_readers(source, request, spool) as readers:
        using.require_checks(settings.strategy)
        engine = Engine(settings, using)
        budget = engine.budget()
        worker = engine.worker(readers[0].text_columns)
        rows: list[PreviewRow] = []
        for chunk in _first(source, readers, n_rows):
            rows += _rewritten(worker, budget, engine.lexicon, chunk)
    return Preview(settings.mechanism, settings.strategy, settings.seed, budget.total, rows)


def _first(source: Path | str, readers: Sequence[Reader], n_rows: int) -> Iterator[Chunk]:
    """The chunks with the first rows; no others are read."""
    is_folder = source != STDIN and not is_address(source) and Path(source).is_dir()
    for reader in readers:
        for chunk in reader.chunks(for_writing=False):
            name = name_in(source, reader.source.path) if is_folder else ""
            yield replace(chunk, file=name, selection=np.arange(len(chunk)) < n_rows)
            n_rows -= len(chunk)
            if n_rows <= 0:
                return


def _rewritten(worker: BatchWorker, budget: DocumentBudget, lexicon: Lexicon, chunk: Chunk) -> Iterator[PreviewRow]:
    """The selected rows of a chunk and what becomes of their texts."""
    batch = batch_of(chunk)
    done = worker.draw(batch, budget)
    changes = changes_of(done.encoded, batch.texts, done.texts, done.action, done.rows, lexicon, done.written)
    texts: dict[int, dict[str, TextChanges]] = {row: {} for row in np.flatnonzero(chunk.is_selected).tolist()}
    for row, column, of_text in zip(batch.document.tolist(), batch.column.tolist(), changes, strict=True):
        texts[row][worker.columns[column]] = of_text
    for row, of_row in texts.items():
        yield PreviewRow(chunk.file or None, chunk.first + row, of_row)
