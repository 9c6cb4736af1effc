"""Releases that an audit makes: of columns in memory and of files, over batches and processes, with
a ledger.
"""

from __future__ import annotations

import contextlib
import csv
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.auditing.toy_project import Document, TokenFate, ToyProject
from lexveil.base.errors import LexveilError
from lexveil.base.types import Ids
from lexveil.core.accounting.record import PrivacyRecord
from lexveil.io.request import FileRequest, Request
from lexveil.release.adapters.files import ReleaseHooks, privatize_file
from lexveil.release.adapters.memory import privatize
from lexveil.release.engine.engine import WordEngine
from lexveil.release.engine.worker import BatchWorker
from lexveil.release.ledger.statement import summary
from lexveil.release.settings import settings_of

PER_SUBJECT = 3  # documents
PAID = ("spent", "written", "committed")

Logged = list[list[tuple[str, float]]]  # for each row, the action and ε of its tokens in order
QUIET = ReleaseHooks(tells_columns=False)


@dataclass(slots=True)
class Release:
    """One release that an audit made, with its output texts.

    Attributes:
        names: the document of each row; outputs: (rows, columns) output texts.
    """

    toy: ToyProject
    names: list[str]
    documents: Mapping[str, Document]
    budget: float
    consistent: bool
    outputs: Sequence[tuple[str | None, ...]]
    logged: Logged
    subjects: list[str]
    record: PrivacyRecord
    _fates: dict[str, list[TokenFate]] = field(default_factory=dict, repr=False)
    _codes: dict[tuple[str | None, ...], list[int]] = field(default_factory=dict, repr=False)

    def rows(self, name: str) -> list[int]:
        """Return the numbers of the rows that contain one document."""
        return [row for row, document in enumerate(self.names) if document == name]

    def fates(self, name: str) -> list[TokenFate]:
        """Return the action (perturb, keep, drop or sample) that the release must take on each
        token of a document.
        """
        if name not in self._fates:
            document = self.documents[name]
            self._fates[name] = self.toy.fates(document, self.budget, self.consistent)
        return self._fates[name]

    def staying(self, name: str) -> list[TokenFate]:
        """Return the required actions on the tokens of a document that are not dropped."""
        return [fate for fate in self.fates(name) if fate.action != "drop"]

    def read(self, texts: Iterable[str | None]) -> list[int]:
        """Return the output tokens in the columns of a row, as word numbers."""
        row = tuple(texts)
        if row not in self._codes:
            self._codes[row] = [code for text in row for code in self.toy.read(text)]
        return self._codes[row]

    def codes(self, name: str) -> Ids:
        """Return (rows, tokens) word numbers of the output tokens of one document, for the rows in
        which no token is missing.
        """
        n_tokens = len(self.staying(name))
        rows = [self.read(self.outputs[row]) for row in self.rows(name)]
        whole = [codes for codes in rows if len(codes) == n_tokens]
        return np.array(whole, dtype=np.int64).reshape(len(whole), n_tokens)

    def contexts(self, name: str, codes: Ids) -> Ids:
        """Return (rows, tokens) the word number of the output token just before each of the
        ``codes`` in its column. The number is -1 at the beginning of a text or after an unknown
        token.
        """
        columns = np.array([fate.column for fate in self.staying(name)])
        before = np.full(codes.shape, -1)
        before[:, 1:] = np.where(columns[1:] == columns[:-1], codes[:, :-1], -1)
        return before


@dataclass(frozen=True, slots=True)
class Releasing:
    """Settings and methods with which an audit makes its releases.

    Attributes:
        more: further options, in addition to the options of all releases of an audit.
    """

    toy: ToyProject
    mechanism: str
    mode: str
    seed: int | None
    more: Mapping[str, object] = field(default_factory=dict)

    def options(self, budget: float, consistent: bool = False) -> dict[str, object]:
        """Return the request options of a release with this budget."""
        policy = self.toy.policy
        return {
            "mechanism": self.mechanism,
            "strategy": self.toy.strategy,
            "document_budget": budget,
            "mode": self.mode,
            "seed": self.seed,
            "consistent": consistent,
            "stopwords": policy.stopwords,
            "punctuation": policy.punctuation,
            "oov": policy.oov,
            **self.more,
        }

    def worker(self, budget: float) -> BatchWorker:
        """Return the worker that rewrites the batches of a release with this budget."""
        model = self.toy.model
        return WordEngine(
            settings_of(Request.of(self.options(budget)), model.project), model
        ).worker()

    def in_memory(
        self,
        documents: dict[str, Document],
        names: list[str],
        budget: float,
        consistent: bool = False,
        run: str = "memory",
    ) -> Release:
        """Rewrite a column of texts in memory, and return the release."""
        texts = {name: self.toy.written(document[0]) for name, document in documents.items()}
        subjects = _subjects(len(names), run)
        release = privatize(
            [texts[name] for name in names],
            Request.of(self.options(budget, consistent) | {"workers": 1}),
            self.toy.model,
            subjects=subjects if self.mode == "release" else None,
        )
        outputs = [(value,) for value in release.values]
        logged = _logged(release.token_log, len(names))
        return Release(
            self.toy,
            names,
            documents,
            budget,
            consistent,
            outputs,
            logged,
            subjects,
            release.record,
        )

    def of_files(
        self,
        documents: dict[str, Document],
        names: list[str],
        budget: float,
        workers: int,
        ending: str = "jsonl",
    ) -> Release:
        """Rewrite a file with two text columns, and return the release."""
        folder = self.toy.model.project.folder
        run = f"{budget!r}-{workers}"
        source = folder / f"in-{run}.{ending}"
        target = folder / f"out-{run}.{ending}"
        subjects = _subjects(len(names), f"file {run}")
        written = {
            name: [self.toy.written(column) for column in document]
            for name, document in documents.items()
        }
        rows = zip(subjects, (written[name] for name in names), strict=True)
        _write(source, ({"who": key, "title": title, "body": body} for key, (title, body) in rows))
        columns = {
            "text_column": ("title", "body"),
            "subject_column": "who" if self.mode == "release" else None,
        }
        request = FileRequest.of(self.options(budget) | columns | {"workers": workers})
        release = privatize_file(source, target, request, project=self.toy.model, hooks=QUIET)
        outputs = [(row["title"], row["body"]) for row in _read(target)]
        logged = _logged(
            pq.read_table(target.with_name(f"{target.name}.tokens.parquet")), len(names)
        )
        return Release(
            self.toy,
            names,
            documents,
            budget,
            consistent=False,
            outputs=outputs,
            logged=logged,
            subjects=subjects,
            record=release.record,
        )

    def capped(self, documents: dict[str, Document], budget: float) -> tuple[Release, list[str]]:
        """Make a release whose documents of one subject together exceed the subject's budget cap.
        Return the release with a list of its faults.
        """
        model = self.toy.model
        cap = 1.5 * budget
        configuration = model.configuration.changed(ledger={"cap": cap})
        names = [name for name in documents for _ in range(PER_SUBJECT)]
        project = replace(model.project, configuration=configuration)
        toy = replace(self.toy, model=replace(model, project=project))
        release = replace(self, toy=toy).in_memory(documents, names, budget, run="capped")
        spent: dict[str, float] = defaultdict(float)
        for key, logged in zip(release.subjects, release.logged, strict=True):
            spent[key] += math.fsum(epsilon for _, epsilon in logged)
        wrong = (
            ["a subject spent more than its cap"] if max(spent.values()) > cap * (1 + 1e-9) else []
        )
        hidden = [not logged for logged in release.logged]
        if [text is None for (text,) in release.outputs] != hidden or not any(hidden):
            wrong.append("documents beyond the cap were not withheld")
        return release, wrong

    def refused_or_streamed(
        self, documents: dict[str, Document], budget: float
    ) -> tuple[list[Release], list[str]]:
        """Make two releases whose budget charges must not depend on their outputs: one that a hook
        refuses after the noise was drawn, and one that is written to standard output.

        Returns:
            The two releases, and a list of faults in the time at which they were charged.
        """
        names = list(documents) * PER_SUBJECT
        folder = self.toy.model.project.folder
        model = self.toy.model
        request = FileRequest.of({"subject_column": "who", "workers": 1, **self.options(budget)})
        sources = {}
        watch = _Watch(self.toy)
        for run in ("refused", "streamed"):
            sources[run] = folder / f"{run}.jsonl"
            rows = zip(_subjects(len(names), run), names, strict=True)
            _write(
                sources[run],
                ({"who": key, "text": self.toy.written(documents[name][0])} for key, name in rows),
            )
        with contextlib.suppress(LexveilError):
            out = folder / "refused.out.jsonl"
            privatize_file(
                sources["refused"], out, request, project=model, hooks=_Refusal(tells_columns=False)
            )
        with contextlib.redirect_stdout(watch):  # type: ignore[type-var]
            record = privatize_file(
                sources["streamed"], "-", request, project=model, hooks=QUIET
            ).record
        state = watch.state or "unknown"
        wrong = (
            []
            if state in PAID
            else [f"the first byte was written to standard output while its release was {state}"]
        )

        @cache
        def cost(name: str) -> list[tuple[str, float]]:
            return [
                (fate.action, fate.epsilon)
                for fate in self.toy.fates(documents[name], budget, consistent=False)
            ]

        costs = [cost(name) for name in names]
        return [
            Release(
                self.toy,
                names,
                documents,
                budget,
                consistent=False,
                outputs=[],
                logged=costs,
                subjects=_subjects(len(names), run),
                record=record,
            )
            for run in sources
        ], wrong


class _Refusal(ReleaseHooks):
    """Release hook that refuses every release after its output was written."""

    def written(self, *_: Any) -> Any:
        """Raise the error that refuses the release, now that the output is written."""
        raise LexveilError("refused by the audit")


class _Watch:
    """Replacement for standard output that reads the ledger when the first byte is written."""

    def __init__(self, toy: ToyProject) -> None:
        self.buffer = self
        self.state = ""
        self.toy = toy

    def write(self, data: bytes) -> int:
        """Discard the data, and read the ledger at the first call."""
        if not self.state and data:
            with self.toy.open_ledger() as ledger:
                self.state = summary(ledger, None).releases[0].state
        return len(data)

    def flush(self) -> None:
        """Do nothing: no data is buffered."""


def _subjects(n: int, run: str) -> list[str]:
    return [f"{run}, subject {row // PER_SUBJECT}" for row in range(n)]


def _write(file: Path, rows: Iterable[dict[str, str]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as opened:
        if file.suffix == ".csv":
            writer = csv.DictWriter(opened, ["who", "title", "body"])
            writer.writeheader()
            writer.writerows(rows)
        else:
            opened.writelines(json.dumps(row) + "\n" for row in rows)


def _read(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as opened:
        if file.suffix == ".csv":
            return list(csv.DictReader(opened))
        return [json.loads(line) for line in opened]


def _logged(token_log: pa.Table, rows: int) -> Logged:
    columns = [token_log.column(name).to_pylist() for name in ("row", "action", "epsilon")]
    logged: Logged = [[] for _ in range(rows)]
    for row, action, epsilon in zip(*columns, strict=True):
        logged[row - 1].append((action, epsilon))
    return logged
