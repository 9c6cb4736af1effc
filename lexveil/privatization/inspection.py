"""Preview what rewriting a file would do, for `lexveil inspect`. Nothing is written or charged."""

from __future__ import annotations

import resource
import time
from collections import Counter as Frequencies
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from lexveil.accounting.budgets import Action
from lexveil.accounting.record import ClassCounts
from lexveil.accounting.results import Number, Result
from lexveil.accounting.statement import MUCH_UNCHANGED
from lexveil.formats.readers import Reader
from lexveil.privatization.batches import FlatTexts
from lexveil.privatization.count import plan_tokens
from lexveil.privatization.engine import ChunkCounts, Engine, InputTotals
from lexveil.privatization.file_adapter import FileOptions
from lexveil.privatization.model import Model
from lexveil.privatization.outputs import find_readers
from lexveil.privatization.selected_chunk import SelectedChunk, batches_of
from lexveil.privatization.settings import make_settings
from lexveil.privatization.tally import Tally, class_counts
from lexveil.privatization.two_passes import progress_on_stderr
from lexveil.runtime.checkpoints import size
from lexveil.text.encode import TokenClass, encode
from lexveil.types import Int64

TRIED = 50_000  # tokens that are rewritten, and forgotten, to say what would come out
EXAMPLES = 15  # words of each class, if they are asked for


class EpsilonSpread(Result):
    """Epsilon of the tokens that pay; null if none does."""

    least: float | None
    mean: float | None
    most: float | None


class BudgetPreview(Result):
    """What would be spent, and in which unit."""

    mechanism: str
    strategy: str
    mode: str
    metric: str
    no_guarantee: str | None
    document_budget: Number
    cap: Number | None
    """Lifetime epsilon of a subject."""
    epsilon_per_token: EpsilonSpread


class Trial(Result):
    """What came of the first rows when they were rewritten and discarded."""

    tokens: int
    perturbed: int
    share_changed: float | None
    words_out_per_word_in: float | None
    tokens_per_second: float


class Estimate(Result):
    """What rewriting the whole input would take."""

    workers: int
    seconds: float
    memory_bytes: int


class Inspection(Result):
    """What `lexveil privatize` would do with an input. A row with any text is a document."""

    files: int
    bytes: int
    rows: int
    documents: int
    texts: int
    tokens: int
    coverage: float | None
    """Share of the words that the vocabulary knows."""
    in_clear_share: float | None
    """Share of the tokens that would stay unprotected."""
    by_class: ClassCounts
    """How many tokens of each class would meet which action."""
    budget: BudgetPreview
    tried: Trial
    estimate: Estimate
    examples: dict[str, list[tuple[str, int]]] | None
    """Frequent words that would stay unprotected or are unknown; they are source text."""


def inspect(
    source: Path | str, *, show_examples: bool = False, project: Path | Model | None = None, **options: Any
) -> Inspection:
    """Read a file or folder and say what `lexveil privatize` would do with it.

    Args:
        source, project, options: as of ``privatize_file``.
        show_examples: name the most frequent words that would stay unprotected or are unknown. They are source text.

    Raises:
        RequestError: as ``privatize_file``.
    """
    chosen, model = FileOptions(**options), Model.load(project)
    settings, params = make_settings(chosen, model.params), model.params
    spool = model.path(params.machine.temp_directory)
    with find_readers(source, chosen.columns, chosen.subject_column, chosen.form, spool) as readers:
        n_bytes = sum(reader.size for reader in readers)
        workers = chosen.workers_for(n_bytes, model)
        model.require_checks(settings.strategy)
        engine = Engine(settings, model)
        survey = _survey(engine, readers, workers)
        totals, budget = survey.totals, engine.budget(survey.totals)
        tried = _try(engine, survey.first, budget)
        examples = _examples(engine, [selected for selected, _ in survey.first]) if show_examples else None
    words = int(totals.by_class[[TokenClass.WORD, TokenClass.STOPWORD, TokenClass.OOV]].sum())
    unknown, tokens = int(totals.by_class[TokenClass.OOV].sum()), int(totals.by_class.sum())
    return Inspection(
        files=len(readers),
        bytes=n_bytes,
        rows=totals.rows,
        documents=totals.documents,
        texts=totals.texts,
        tokens=tokens,
        coverage=1 - unknown / words if words else None,
        in_clear_share=int(totals.by_class[:, Action.KEPT].sum()) / tokens if tokens else None,
        by_class=class_counts(totals.by_class),
        budget=BudgetPreview(
            mechanism=settings.mechanism,
            strategy=settings.strategy,
            mode=settings.mode,
            metric=engine.prepared.mechanism.metric,
            no_guarantee=engine.prepared.mechanism.no_guarantee,
            document_budget=budget,
            cap=params.release.cap,
            epsilon_per_token=survey.epsilon_per_token(budget),
        ),
        tried=tried,
        estimate=_estimate(tokens, workers, survey.seconds, tried),
        examples=examples,
    )


def _estimate(tokens: int, workers: int, seconds_to_count: float, tried: Trial) -> Estimate:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    seconds = 2 * seconds_to_count + tokens / tried.tokens_per_second / workers if tried.tokens else seconds_to_count
    # Each worker is a process like this one.
    return Estimate(workers=workers, seconds=seconds, memory_bytes=memory * (1 if workers == 1 else 1 + workers))


@dataclass(slots=True)
class _Survey:
    """What the input holds.

    Attributes:
        first: its first chunks, counted.
        least, most: of the parts that a document's budget is divided into for each token that pays, as shares.
        n_documents, n_parts: documents that spend, and the parts of all their budgets.
        seconds: how long counting took.
    """

    totals: InputTotals = field(default_factory=InputTotals.empty)
    first: list[tuple[SelectedChunk, ChunkCounts]] = field(default_factory=list)
    least: float = np.inf
    most: float = 0.0
    n_documents: int = 0
    n_parts: int = 0
    seconds: float = 0.0

    def add_parts(self, parts: Int64) -> None:
        """Add the parts of each document's budget; of one that spends nothing, 0."""
        parts = parts[parts > 0]
        if len(parts):
            self.least, self.most = min(self.least, 1 / float(parts.max())), max(self.most, 1 / float(parts.min()))
            self.n_documents, self.n_parts = self.n_documents + len(parts), self.n_parts + int(parts.sum())

    def epsilon_per_token(self, budget: float) -> EpsilonSpread:
        """What a token gets of a document budget."""
        if not self.n_parts:
            return EpsilonSpread(least=None, mean=None, most=None)
        mean = self.n_documents / self.n_parts
        return EpsilonSpread(least=budget * self.least, mean=budget * mean, most=budget * self.most)


def _survey(engine: Engine, readers: Sequence[Reader], workers: int) -> _Survey:
    survey, n_first = _Survey(), 0

    def chunks() -> Iterator[SelectedChunk]:
        for reader in readers:
            for chunk in reader.chunks(for_writing=False):
                yield SelectedChunk.whole(chunk)

    progress = progress_on_stderr("inspect", 0, "rows")
    start = time.monotonic()
    for selected, counted in engine.count(batches_of(chunks()), workers, progress):
        survey.totals.add(counted)
        if n_first < TRIED:
            survey.first.append((selected, counted))
            n_first += int(counted.counts[1].sum())
        survey.add_parts(counted.counts[3 if engine.settings.strategy == "S2" else 2])
    survey.seconds = time.monotonic() - start
    return survey


def _try(engine: Engine, chunks: Sequence[tuple[SelectedChunk, ChunkCounts]], budget: float) -> Trial:
    """Rewrite some rows and discard them: how much would change, and how fast it goes."""
    tally, n_before = Tally(), 0
    some = []
    for selected, counted in chunks:
        n_tokens = counted.counts[1]
        some.append(replace(selected, keep=n_before + np.cumsum(n_tokens) - n_tokens < TRIED))
        n_before += int(n_tokens.sum())
    columns = [str(number) for number in range(len(some[0].chunk.texts[0]))]
    progress = progress_on_stderr("try", sum(int(selected.keep.sum()) for selected in some), "rows")
    start = time.monotonic()
    for _, rewritten in engine.rewrite(batches_of(some), columns, budget, 1, progress):
        tally.merge(rewritten.tally)
    seconds = time.monotonic() - start
    counts = tally.counts()
    return Trial(
        tokens=counts.n_tokens_in,
        perturbed=counts.n_perturbed,
        share_changed=None if counts.share_unchanged is None else 1 - counts.share_unchanged,
        words_out_per_word_in=counts.n_words_out / counts.n_words_in if counts.n_words_in else None,
        tokens_per_second=counts.n_tokens_in / seconds if counts.n_tokens_in else 0.0,
    )


def _examples(engine: Engine, chunks: Sequence[SelectedChunk]) -> dict[str, list[tuple[str, int]]]:
    """The most frequent words that would stay unprotected, and those that are unknown, of the first rows."""
    examples: dict[str, Frequencies[str]] = {"in clear": Frequencies(), "unknown": Frequencies()}
    for selected in chunks:
        encoded = encode(FlatTexts.of(selected.texts).texts, engine.lexicon)
        plan = plan_tokens(encoded, engine.vocabulary.number, engine.settings.policy)
        is_kept = plan.action == Action.KEPT.value
        is_unknown = (plan.known < 0) & (encoded.kind == TokenClass.OOV.value)
        for name, chosen in (("in clear", is_kept), ("unknown", is_unknown)):
            examples[name].update(encoded.words[word] for word in encoded.first_word[np.flatnonzero(chosen)].tolist())
    return {name: words.most_common(EXAMPLES) for name, words in examples.items()}


def as_text(result: Inspection) -> list[str]:
    """The result as lines for people."""
    budget, tried, estimate, tokens = result.budget, result.tried, result.estimate, result.tokens
    files = f" in {result.files:,} files" if result.files > 1 else ""
    lines = [
        f"{result.rows:,} rows{files} ({size(result.bytes)}), {result.texts:,} texts, {tokens:,} tokens",
        f"the vocabulary knows {_percent(result.coverage)} of the words",
        "",
        f"{'class':<12}"
        + "".join(f"{action:>14}" for action in ("perturbed", "random word", "dropped", "UNPROTECTED")),
    ]
    for kind, actions in result.by_class:
        cells = (actions.perturbed, actions.sampled, actions.dropped, actions.kept)
        lines.append(f"{kind:<12}" + "".join(f"{count:>14,}" for count in cells))
    lines.append(f"{_percent(result.in_clear_share)} of all tokens would be unprotected")
    for name, words in (result.examples or {}).items():
        lines.append(f"most frequent {name}: " + ", ".join(f"{word} ({count:,})" for word, count in words))
    lines += ["", *_budget_lines(budget)]
    if tried.share_changed is not None:
        changed = _percent(tried.share_changed)
        lines.append(f"about {changed} of the perturbed tokens would change (tried on {tried.tokens:,} tokens)")
        if 1 - tried.share_changed > MUCH_UNCHANGED:
            lines.append("CAUTION: hardly a word would change: this epsilon is so large that the bound means little")
    lines.append(
        f"takes about {_duration(estimate.seconds)} and at most {size(estimate.memory_bytes)} of memory with "
        f"{estimate.workers} process{'es' if estimate.workers > 1 else ''}"
    )
    return lines


def _budget_lines(budget: BudgetPreview) -> Iterator[str]:
    per = budget.epsilon_per_token
    yield f"{budget.mechanism} {budget.strategy}, {budget.mode} mode; unit 1 / {budget.metric}"
    spread = "" if per.mean is None else f"; epsilon of a token {per.least:.4g} to {per.most:.4g}, mean {per.mean:.4g}"
    yield f"budget of each document {budget.document_budget:.4g}{spread}"
    yield f"lifetime cap of a subject: {'none (params.yaml: release.cap)' if budget.cap is None else budget.cap}"
    if budget.cap is not None and budget.document_budget > budget.cap:
        yield "CAUTION: the budget of a document is above the cap: rows would be left out, perhaps all"
    if budget.no_guarantee:
        yield f"CAUTION: no guarantee: {budget.no_guarantee}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _duration(seconds: float) -> str:
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"
