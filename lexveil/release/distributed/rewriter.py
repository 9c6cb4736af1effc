"""Counting and rewriting of Arrow batches in any process of a cluster.

A worker loads the model by its name, once, and refuses a model that differs from the driver's. The
spending of a subject is counted in whole nano-epsilon, so that an engine can add it up in any
order.
"""

from __future__ import annotations

import hashlib
import pickle
import platform
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache
from operator import mul
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lexveil.base.errors import LexveilError, RequestError, option
from lexveil.base.runtime.crash import short_report
from lexveil.base.runtime.hashes import library_hash, version
from lexveil.base.types import Int64
from lexveil.core.accounting.budgets import DocumentBudget
from lexveil.core.accounting.record import ModelReference
from lexveil.core.accounting.shares import WHOLE
from lexveil.core.accounting.subject_keys import subject_key
from lexveil.core.text.languages.scripts import emptied
from lexveil.io.artifacts.default_bank import SHIPPED
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.model_source import PackagedSource
from lexveil.io.artifacts.model_store import find
from lexveil.io.artifacts.packaged_model import PackagedModel
from lexveil.io.artifacts.project import Project
from lexveil.io.artifacts.user_lists import find_purpose
from lexveil.io.config import MechanismParams
from lexveil.io.formats.arrow_tables import ArrowRows
from lexveil.io.formats.chunks import CHARACTERS_OF_A_CHUNK, TEXT_LIMIT, is_text, rewritten_type
from lexveil.io.formats.messages import name, names
from lexveil.io.formats.values import exact_values, plain_value
from lexveil.release.engine.batch import Batch
from lexveil.release.engine.counts import RewrittenChunk, SpendHistogram, Tally, merge_chunks
from lexveil.release.engine.engine import Engine
from lexveil.release.engine.sentences import engine_of
from lexveil.release.ledger.amounts import costs
from lexveil.release.preconditions import Checked
from lexveil.release.settings import Settings

# Columns of the first pass about a batch, which an engine adds up by subject.
COUNTED = pa.schema([("subject", pa.string()), ("nano", pa.int64()), ("tokens", pa.int64())])
# marks of a worker's message in the engine's report
SAID = re.compile(r"\[lexveil ([12]): (.*?) :lexveil\]", re.DOTALL)
NOT_INSTALLED = re.compile(  # reports of engines about a Python that cannot be a worker
    r"No module named "
    r"'(lexveil|pyarrow|numba|pydantic|pandas)\b|PYTHON_VERSION_MISMATCH|PACKAGE_NOT_INSTALLED"
)

Hashes = npt.NDArray[np.uint64]


class WorkerError(Exception):
    """An error on a worker of a cluster, in a form that is safe in the engine's logs and that the
    driver recognizes.
    """


@contextmanager
def reported() -> Iterator[None]:
    """Convert any error in the block to a ``WorkerError`` whose message ``told`` can find in an
    engine's report. For an error that is not one of Lexveil, the message has only the error's type
    and place.

    Raises:
        WorkerError: in place of any exception.
    """
    try:
        yield
    except WorkerError:
        raise
    except LexveilError as error:
        said = error.message
        code = error.exit_code
    except Exception as error:
        said = f"{type(error).__name__} in {short_report(error)}, on {platform.node()}"
        code = 1
    else:
        return
    raise WorkerError(f"[lexveil {code}: {said} :lexveil]")


def told(error: BaseException) -> LexveilError | None:
    """Return the Lexveil error that caused an engine's error, or None if the cause is another. The
    absence of Lexveil on a worker also counts as such a cause.
    """
    if (said := SAID.search(str(error))) is not None:
        return (RequestError if said[1] == "2" else LexveilError)(said[2])
    if NOT_INSTALLED.search(str(error)):
        return RequestError(
            "a worker lacks Lexveil or a package of its extra, or has another Python; "
            "install the driver's versions on all workers"
        )
    return None


@cache
def build() -> str:
    """Return the versions of Lexveil's code, of Python and of NumPy, which must be equal in the
    driver and in every worker.
    """
    python = ".".join(platform.python_version_tuple()[:2])
    return f"Lexveil {version()} ({library_hash()[:12]}), Python {python}, NumPy {np.__version__}"


class RunTotals:
    """The totals of a rewriting job on a cluster, added up batch by batch. They hold no text.

    Attributes:
        check: checksum: the sum over all rows of nano-epsilon times the hash of the subject. It
            shows if the second pass reads other rows than the first pass counted.
        tokens: the number of tokens that will be perturbed, according to the first pass.
        rows, withheld: the number of rows that were read, and of rows that were withheld.
        bytes_written: the number of bytes of the rewritten texts, in UTF-8.
    """

    def __init__(self) -> None:
        self.spent, self.tally = SpendHistogram(0.0), Tally()
        self.check = self.tokens = self.rows = self.withheld = self.bytes_written = 0

    def merge(self, other: RunTotals) -> RunTotals:
        """Add the totals of another part of the job to these totals."""
        self.spent.merge(other.spent)
        self.tally.merge(other.tally)
        self.check += other.check
        self.rows += other.rows
        self.withheld += other.withheld
        self.bytes_written += other.bytes_written
        return self


@dataclass(frozen=True, repr=False)
class Rewriter:
    """The functions that count and rewrite the Arrow batches of one release, in any process of a
    cluster.

    The object is pickled without vectors, texts and random generator. Noise is drawn from the
    worker's own operating system, with a new key in every call of ``rewrite``, so that no two
    attempts of a task share a key.

    Attributes:
        settings: the settings of a release.
        columns: the text columns.
        subject_column: the column that names the subject of a row; None if each text is its own
            subject.
        model: the name and the hash of the model, with its purposes (scales such as sentiment that
            its metric preserves).
        model_folder: the folder where each worker has the model; None if the model is installed.
        mechanisms: the parameters of mechanisms.
        made_with: the SHA-256 of the artifacts that determine the output.
        key: a key of this release alone, for hashes of subjects; it draws no noise.
        withheld: sorted hashes of the subjects whose rows are withheld.
        tokens: the number of tokens that will be perturbed; workers precompute neighbour lists only
            if this number is large.
        others: the columns that are published unchanged.
    """

    settings: Settings
    budget: DocumentBudget
    columns: tuple[str, ...]
    subject_column: str | None
    model: ModelReference
    model_folder: str | None
    mechanisms: MechanismParams
    made_with: Mapping[str, str]
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    withheld: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    tokens: int = 0
    others: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        checked: Checked,
        schema: pa.Schema,
        columns: Sequence[str],
        subject_column: str | None,
        model_folder: str | None = None,
    ) -> Rewriter:
        """Create the rewriter for tables of a schema.

        Raises:
            RequestError: if a column is missing or has a wrong type, or if workers could not
                release with these settings.
        """
        settings = checked.engine.settings
        model = checked.engine.model
        if settings.mode != "release" or not settings.has_public_budget:
            raise RequestError(
                f"{option('mode')}, {option('seed')} and {option('average_words')} cannot "
                "be used on a cluster, which releases texts with noise of its workers and a "
                "budget that is known in advance; for experiments call lexveil.privatize"
            )
        if model.packaged is None:
            raise RequestError(
                f"model {model.name}: workers load a model by its name; package the model "
                "by `lexveil model export own -o FILE`, add it on every worker by `lexveil "
                "model add FILE --name NAME`, and give NAME"
            )
        _check_columns(schema, columns, subject_column)
        of_model = (checked.model, model_folder, model.params.mechanisms, checked.made_with)
        others = tuple(name for name in schema.names if name not in columns)
        budget = checked.budget
        if settings.sentences is not None:
            budget = budget.times(len(columns))
        settings = _for_workers(settings)
        return cls(settings, budget, tuple(columns), subject_column, *of_model, others=others)

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickle in two steps, so that a worker with other code reports this, and not that it
        # cannot read the rest.
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return _opened, (build(), pickle.dumps(values))

    def without(self, subjects: Iterator[Sequence[str]], tokens: int) -> Rewriter:
        """Return the rewriter for the second pass, which withholds the rows of the given
        subjects.
        """
        hashes = [self.hashes(keys) for keys in subjects]
        return replace(
            self, withheld=np.unique(np.concatenate([self.withheld, *hashes])), tokens=tokens
        )

    def hashes(self, subjects: Sequence[str]) -> Hashes:
        """Return 64-bit hashes of the subjects, (n,), under the key of this release."""
        keyed = (
            hashlib.blake2b(key.encode(), digest_size=8, key=self.key).digest() for key in subjects
        )
        return np.frombuffer(b"".join(keyed), np.uint64)

    def check(self, subjects: Sequence[str], nano: Int64) -> int:
        """Return the checksum of these rows or subjects, the number that they add to
        ``RunTotals.check``.
        """
        return sum(map(mul, self.hashes(subjects).tolist(), nano.tolist()))

    @reported()
    def count(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the epsilon and the number of tokens of each subject in a batch, in the columns
        ``COUNTED``. No noise is drawn.

        Raises:
            WorkerError: if a text or a subject is not valid, or this process has another model.
        """
        texts, subjects = self._read(batch)
        columns = [pa.array(subjects, pa.string()), *map(pa.array, self._count(texts))]
        by_subject = pa.table(columns, schema=COUNTED).group_by("subject", use_threads=False)
        added = by_subject.aggregate([(column, "sum") for column in COUNTED.names[1:]])
        return pa.RecordBatch.from_arrays(
            [chunks.combine_chunks() for chunks in added.columns], schema=COUNTED
        )

    @reported()
    def rewrite(self, batch: pa.RecordBatch, totals: RunTotals) -> pa.RecordBatch:
        """Return the rows that are not withheld, with rewritten texts and all other columns
        unchanged.

        Args:
            totals: the totals of this attempt of a task alone, to which the results are added.

        Raises:
            WorkerError: as in ``count``.
        """
        texts, subjects = self._read(batch)
        keep = ~np.isin(self.hashes(subjects), self.withheld)
        outcome = self._rewritten(texts.only(keep) if not keep.all() else texts)
        nano = costs(outcome.spent, self.budget.total or 1.0)
        if not keep.all():
            nano = np.where(keep, nano, self._count(texts.only(~keep))[0])
        totals.spent.budget = self.budget.total
        totals.spent.add(outcome.spent[keep], outcome.per_token[keep])
        totals.tally.merge(outcome.tally)
        totals.check += self.check(subjects, nano)
        totals.rows, totals.withheld = totals.rows + len(keep), totals.withheld + int((~keep).sum())
        totals.bytes_written += sum(
            pc.sum(pc.binary_length(texts), min_count=0).as_py() for texts in outcome.texts.columns
        )
        for column, rewritten in zip(self.columns, outcome.texts.columns, strict=True):
            number = batch.schema.get_field_index(column)
            own = batch.schema.field(number)
            kind = rewritten_type(own.type)
            batch = batch.set_column(number, own.with_type(kind), rewritten.cast(kind))
        return batch if keep.all() else batch.filter(pa.array(keep))

    def _rewritten(self, texts: ArrowRows) -> RewrittenChunk:
        worker = replace(self._engine().worker(self.columns), log=())
        parts = _batch(texts).parts(CHARACTERS_OF_A_CHUNK)
        marks = [*[None] * (len(parts) - 1), True]
        rewritten = (worker.rewrite(part, self.budget) for part in parts)
        return next(merge_chunks(zip(marks, rewritten, strict=True)))[1]

    def _count(self, texts: ArrowRows) -> tuple[Int64, Int64]:
        """Return the cost of each row in nano-epsilon, and the number of its tokens that spend
        epsilon.
        """
        engine = self._engine()
        worker = engine.worker(self.columns)
        counted = [worker.count(part) for part in _batch(texts).parts(CHARACTERS_OF_A_CHUNK)]
        for part in counted:
            if part.without_spaces is not None:
                _, column, script = part.without_spaces
                raise RequestError(
                    f"{name(self.columns[column])} has a text in {script} script, which has "
                    "no spaces between words, so that a clause would be one unknown word; "
                    "remove such rows, put spaces between the words, or set "
                    f"{option('on_unsupported')} to withhold"
                )
        spent = np.concatenate([engine.spends(part, self.budget) for part in counted])
        tokens = np.concatenate([part.counts[2] for part in counted]) // (
            1 if engine.shares is None else WHOLE
        )
        return costs(spent, self.budget.total or 1.0), tokens

    def _read(self, batch: pa.RecordBatch) -> tuple[ArrowRows, list[str]]:
        """Return the texts of each row, and the key of the row's subject."""
        columns = [_checked_texts(batch.column(column), column) for column in self.columns]
        if self.settings.empties_scripts:
            columns = [
                pa.array(emptied(column.to_pylist())[0], pa.large_string()) for column in columns
            ]
        texts = ArrowRows(columns)
        if self.subject_column is None:
            return texts, _batch(texts).text_keys
        return texts, _subjects(batch.column(self.subject_column), self.subject_column)

    def _engine(self) -> Engine:
        """Return the rewriting engine that this process has loaded, with precomputed neighbour
        lists if there are enough tokens to make them worthwhile.
        """
        engine, has_lists = _LOADED.get(self.key, (None, False))
        if engine is None:
            _LOADED.clear()
            engine = self._load()
        if self.tokens and not has_lists:
            engine.prepared.keep_lists(min(self.budget.cap, self.budget.total), self.tokens)
        _LOADED[self.key] = engine, bool(self.tokens)
        return engine

    def _load(self) -> Engine:
        base, *purposes = self.model.name.split("+")
        packaged = (
            find(base) if self.model_folder is None else PackagedModel(Path(self.model_folder))
        )
        home = Project.of_user()
        params = home.params.model_copy(update={"mechanisms": self.mechanisms})
        model = Model(
            replace(home, params=params),
            PackagedSource(packaged),
            cache_only=True,
            suppress_language_warning=True,
            purposes=tuple(map(find_purpose, purposes)),
        )
        with suppress(OSError):  # the folder may not exist
            engine = engine_of(self.settings, model)
            if (model.sha256, engine.made_with()) == (self.model.sha256, self.made_with):
                return engine
        raise RequestError(
            f"model {self.model.name} on {platform.node()} ({packaged.folder}) differs from "
            "the driver's model; install the same model on every worker (`lexveil model "
            "show` prints its hash), or give a folder of the model that all workers can "
            "read"
        )


_LOADED: dict[bytes, tuple[Engine, bool]] = {}  # engines of this process, by the key of the release


@reported()
def _opened(of_driver: str, values: bytes) -> Rewriter:
    if of_driver != build():
        raise RequestError(
            f"a worker on {platform.node()} has {build()}, but the driver has {of_driver}; "
            "install the same versions on all machines"
        )
    return Rewriter(**pickle.loads(values))


def _for_workers(settings: Settings) -> Settings:
    """Return the settings for cluster workers, with the absolute path of the sentence bank, which
    every worker must be able to read. The packaged sentence bank needs no path.

    Raises:
        RequestError: if no sentence bank is named, because workers have no project.
    """
    if settings.sentences is None or settings.sentences.bank == SHIPPED:
        return settings
    if settings.sentences.bank is None:
        raise RequestError(
            f"{option('bank')}: name the folder of the bank, on storage that every worker "
            f"can read, or {SHIPPED} for the packaged bank"
        )
    bank = str(Path(settings.sentences.bank).absolute())
    return replace(settings, sentences=replace(settings.sentences, bank=bank))


def _batch(texts: ArrowRows) -> Batch:
    return Batch(texts, [()] * len(texts))


def _check_columns(schema: pa.Schema, columns: Sequence[str], subject_column: str | None) -> None:
    there = schema.names
    for column, role in [*((column, "column") for column in columns), (subject_column, "subjects")]:
        if column is not None and there.count(column) != 1:
            raise RequestError(f"{role}: {name(column)} is not one of the columns {names(there)}")
    if not columns or len({*columns}) < len(columns) or subject_column in columns:
        raise RequestError(
            "column: a column is repeated, or is also the column of "
            "subjects; name each text column once"
        )
    for column in columns:
        if not is_text(schema.field(column).type):
            raise RequestError(
                f"column: {name(column)} does not contain texts; choose a column of strings"
            )
    kind = pa.string() if subject_column is None else schema.field(subject_column).type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise RequestError(
            f"subjects: {name(str(subject_column))} does not contain names; choose a column "
            "of strings or numbers"
        )


def _checked_texts(column: pa.Array, called: str) -> pa.LargeStringArray:
    """Check that every text of a column can be stored, and return the column."""
    texts = column.cast(pa.large_string())
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise RequestError(
            f"a text of {name(called)} is not valid UTF-8; correct the column"
        ) from None
    if pc.any(pc.match_substring(texts, "\0"), min_count=0).as_py():
        raise RequestError(f"a text of {name(called)} has a NUL character; remove it")
    if (pc.max(pc.utf8_length(texts)).as_py() or 0) > TEXT_LIMIT:
        raise RequestError(
            f"a text of {name(called)} has more than {TEXT_LIMIT // 2**20} Mi characters; divide it"
        )
    return texts


def _subjects(column: pa.Array, called: str) -> list[str]:
    values = exact_values(column)
    keys = [subject_key(plain_value(value, called, "a row") or "") for value in values]
    if "" in keys:
        raise RequestError(
            f"a row has no subject, because {name(called)} is null or blank; every row must "
            "name its subject, whose budget the ledger charges"
        )
    return keys
