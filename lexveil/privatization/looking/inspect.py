"""Preview what rewriting a file would do, for `lexveil inspect`. Nothing is written or charged."""

from __future__ import annotations

import math
import resource
import time
from collections import Counter as Frequencies
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from lexveil.accounting.budgets import Action, DocumentBudget, epsilon_per_part
from lexveil.accounting.expected_recovery import Meaning
from lexveil.accounting.guarantee import Guarantee
from lexveil.accounting.language_finding import LanguageFinding
from lexveil.accounting.measurements import Measurement
from lexveil.accounting.operator_report import SECRECY, ClassCounts, DocumentShares
from lexveil.accounting.record import Protection
from lexveil.accounting.results import Number, Result
from lexveil.accounting.shares import WHOLE, ShareClasses
from lexveil.accounting.statement import MUCH_UNCHANGED, PRIVATE
from lexveil.artifacts.model import Model
from lexveil.errors import RequestError
from lexveil.formats.chunks import Chunk
from lexveil.formats.messages import NoColumn, names
from lexveil.formats.readers import Reader
from lexveil.ledger.caps import TIMES
from lexveil.privatization.adapters.inputs import find_readers, workers_for
from lexveil.privatization.adapters.memory import Texts, whole_chunks
from lexveil.privatization.engine.batch import batch_of
from lexveil.privatization.engine.counts import Tally, class_counts, coverage, found_counts, unprotected_share
from lexveil.privatization.engine.engine import Engine
from lexveil.privatization.engine.worker import BatchCounts, InputTotals
from lexveil.privatization.release.language_check import LanguageCheck
from lexveil.privatization.release.run import progress_on_stderr
from lexveil.privatization.settings import Settings, resolve_settings
from lexveil.recovery.calibrate import CalibratedRun, Calibration, TextsAt
from lexveil.request import FileRequest
from lexveil.runtime.checkpoints import size
from lexveil.runtime.pool import Workers
from lexveil.text.encode import TokenClass
from lexveil.types import Int64

TRIED = 50_000  # tokens that are rewritten, and forgotten, to say what would come out
OTHER_LENGTH = 2.0  # texts that are so many times longer or shorter than is assumed get a caution
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
    protection: Protection | None
    """Null where epsilon, a budget or a share of words is asked for."""
    document_budget: Number
    cap: Number | Literal["unlimited"] | None
    """Lifetime epsilon of a subject, as params.yaml has it; null: the ledger's own."""
    max_token_epsilon: Number | None
    """The largest that a token may get; null: no limit."""
    capped_documents: int
    """Whose tokens get no more than that, and which leave some of their budget."""
    capped_tokens: int
    """Tokens of these, each with the largest epsilon."""
    median_words: int | None
    """Words of the middle document; null of none."""
    average_words: float | None
    """Words that a document is taken to have, by which its budget follows from epsilon; null if it was given itself."""
    epsilon_per_token: EpsilonSpread


class Trial(Result):
    """What came of the first rows when they were rewritten and discarded."""

    tokens: int
    perturbed: int
    share_changed: float | None
    documents: DocumentShares | None
    """How much of each of them came out as it went in."""
    words_out_per_word_in: float | None
    tokens_per_second: float


class CostEstimate(Result):
    """What rewriting the whole input would take."""

    workers: int
    seconds: float
    memory_bytes: int


class TextsInspection(Result):
    """What rewriting texts would do. A row with any text is a document; of texts in memory each is a row."""

    secrecy: str = SECRECY
    rows: int
    texts: int
    tokens: int
    coverage: float | None
    """Share of the words that the vocabulary knows."""
    unprotected_share: float | None
    """Share of the tokens that would stay unprotected."""
    by_class: ClassCounts
    """How many tokens of each class would meet which action."""
    budget: BudgetPreview
    guarantee: Guarantee
    """What the record would state."""


class Inspection(TextsInspection):
    """What `lexveil privatize` would do with an input."""

    files: int
    bytes: int
    documents: int
    language: LanguageFinding | None
    """Null where nothing speaks against the model's language."""
    found: dict[str, dict[str, int]] | None = None
    """Tokens that detectors find, by type and action; they are in no class. Null without a detector."""
    meaning: Meaning | None
    """What its epsilons would mean."""
    tried: Trial
    estimate: CostEstimate
    examples: dict[str, list[tuple[str, int]]] | None
    """Frequent words that would stay unprotected or are unknown; they are source text."""

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        from lexveil.accounting.notebook import framed

        return framed("Inspection", [], as_text(self), holds=self.guarantee.holds)


def inspect(
    source: Path | str,
    request: FileRequest,
    *,
    show_examples: bool = False,
    project: Path | Model | None = None,
    model: str | None = None,
) -> Inspection:
    """Read a file or folder and say what `lexveil privatize` would do with it.

    Args:
        source, request, project, model: as of ``privatize_file``.
        show_examples: name the most frequent words that would stay unprotected or are unknown. They are source text.

    Raises:
        RequestError: as ``privatize_file``.
    """
    using = Model.load(project, model)
    settings, params = resolve_settings(request, using), using.params
    if settings.mechanism == "none":
        raise RequestError("mechanism none leaves texts as they are; there is nothing to inspect")
    spool = using.path(params.machine.temp_directory)
    try:
        with find_readers(source, request, spool) as readers:
            n_bytes, columns = sum(reader.size for reader in readers), readers[0].text_columns
            workers = workers_for(request, n_bytes, using)
            using.require_checks(settings.strategy)
            engine = Engine(settings, using)
            language = LanguageCheck(using, engine.lexicon, columns)
            survey = _survey(engine, _chunks(readers), workers, language)
    except NoColumn as error:
        raise (RequestError(f"{error.message}: {names(error.columns)}") if show_examples else error) from None
    examples = _examples(engine, [chunk for chunk, _ in survey.first]) if show_examples else None
    preview = _preview(engine, survey, len(columns))
    tried = _try(engine, survey.first, engine.budget(survey.totals))
    spread = preview.budget.epsilon_per_token
    return Inspection(
        **dict(preview),  # what is not set is not in the JSON form
        files=len(readers),
        bytes=n_bytes,
        documents=survey.totals.documents,
        language=language.finding(),
        **({} if settings.detection is None else {"found": found_counts(survey.totals.found)}),
        meaning=engine.meaning(spread.least or 0.0, spread.most or 0.0),
        tried=tried,
        estimate=_estimate(preview.tokens, workers, survey.seconds, tried),
        examples=examples,
    )


def inspect_texts(texts: Sequence[str | None], *, settings: Settings, model: Model) -> TextsInspection:
    """Say what rewriting texts in memory would do: no noise is drawn, and nothing is written or charged.

    Raises:
        RequestError: as ``privatize_texts``.
    """
    model.require_checks(settings.strategy)
    engine = Engine(settings, model)
    language = LanguageCheck(model, engine.lexicon, ("text",))
    survey = _survey(engine, whole_chunks(Texts(texts)), 1, language)
    language.tell()
    return _preview(engine, survey, 1)


def with_texts(calibration: Calibration, source: Path | str, text_column: tuple[str, ...], model: Model) -> Calibration:
    """Say also what would become of the texts of a file at the epsilons that were found; it changes none of them."""

    def at(run: CalibratedRun) -> CalibratedRun:
        if run.epsilon is None:
            return run
        request = FileRequest.of(
            {
                "mechanism": run.mechanism,
                "strategy": run.strategy,
                "epsilon": run.epsilon,
                "max_token_epsilon": run.epsilon,
                "text_column": text_column,
            }
        )
        found = inspect(source, request, project=model)
        texts = TextsAt(
            secrecy=SECRECY,
            rows=found.rows,
            document_budget=found.budget.document_budget,
            capped_documents=found.budget.capped_documents,
            mean_epsilon=found.budget.epsilon_per_token.mean,
        )
        return run.model_copy(update={"texts": texts})

    return calibration.model_copy(update={"runs": [at(run) for run in calibration.runs]})


def _preview(engine: Engine, survey: _Survey, n_columns: int) -> TextsInspection:
    """What follows from the counts alone."""
    totals, budget = survey.totals, engine.budget(survey.totals)
    withholds = engine.settings.mode == "release" and engine.model.params.ledger.cap != "unlimited"
    measurement = engine.measurement(budget, n_columns, withholds=withholds)
    return TextsInspection(
        secrecy=SECRECY,
        rows=totals.rows,
        texts=totals.texts,
        tokens=int(totals.by_class.sum()),
        coverage=coverage(totals.by_class),
        unprotected_share=unprotected_share(totals.by_class),
        by_class=class_counts(totals.by_class),
        budget=_budget_preview(engine, survey, budget, measurement),
        guarantee=engine.guarantee(measurement, n_columns),
    )


def _budget_preview(engine: Engine, survey: _Survey, budget: DocumentBudget, measurement: Measurement) -> BudgetPreview:
    settings = engine.settings
    spread, n_capped, capped_tokens = survey.epsilon_per_token(budget, engine.shares)
    return BudgetPreview(
        mechanism=settings.mechanism,
        strategy=settings.strategy,
        mode=settings.mode,
        metric=engine.prepared.mechanism.metric,
        no_guarantee="; ".join(measurement.refusals) or None,
        protection=settings.protection,
        document_budget=budget.total,
        cap=engine.model.params.ledger.cap,
        max_token_epsilon=budget.cap if math.isfinite(budget.cap) else None,
        # At a level of protection every token has the largest epsilon.
        capped_documents=n_capped if settings.protection is None else 0,
        capped_tokens=capped_tokens if settings.protection is None else 0,
        median_words=survey.median_words(),
        average_words=budget.average_words if settings.average_words is None else None,
        epsilon_per_token=spread,
    )


def _estimate(tokens: int, workers: int, seconds_to_count: float, tried: Trial) -> CostEstimate:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    seconds = 2 * seconds_to_count + tokens / tried.tokens_per_second / workers if tried.tokens else seconds_to_count
    # Each worker is a process like this one.
    return CostEstimate(workers=workers, seconds=seconds, memory_bytes=memory * (1 if workers == 1 else 1 + workers))


@dataclass(slots=True)
class _Survey:
    """What the input holds.

    Attributes:
        first: its first chunks, counted.
        parts: how many documents divide their budget into how many parts.
        words: how many documents have how many words.
        seconds: how long counting took.
    """

    totals: InputTotals = field(default_factory=InputTotals.empty)
    first: list[tuple[Chunk, BatchCounts]] = field(default_factory=list)
    parts: Frequencies[int] = field(default_factory=Frequencies)
    words: Frequencies[int] = field(default_factory=Frequencies)
    seconds: float = 0.0

    def add(self, counted: BatchCounts, parts: Int64) -> None:
        """Add a batch, and the parts of each document's budget; of one that spends nothing, 0."""
        self.totals.add(counted)
        self.parts.update(parts[parts > 0].tolist())
        words = counted.counts[0]
        self.words.update(words[words > 0].tolist())

    def median_words(self) -> int | None:
        """Words of the middle document of those that have any."""
        lengths = sorted(self.words)
        reached = np.cumsum([self.words[length] for length in lengths])
        return lengths[int(np.searchsorted(reached, reached[-1] / 2))] if lengths else None

    def epsilon_per_token(self, budget: DocumentBudget, shares: ShareClasses | None) -> tuple[EpsilonSpread, int, int]:
        """What a token of no class gets of a document budget; how many documents, and tokens, meet a token's limit."""
        if not self.parts:
            return EpsilonSpread(least=None, mean=None, most=None), 0, 0
        parts, documents = (np.array(list(values), dtype=np.int64) for values in (self.parts, self.parts.values()))
        whole, most = (1, 1) if shares is None else (WHOLE, shares.most)
        epsilon = epsilon_per_part("S1", budget, parts, parts, most) * whole
        mean = float((epsilon * parts * documents).sum() / (parts * documents).sum())
        spread = EpsilonSpread(least=float(epsilon.min()), mean=mean, most=float(epsilon.max()))
        is_capped = budget.cap * parts < budget.total * most
        return spread, int(documents[is_capped].sum()), int((documents * parts)[is_capped].sum()) // whole


def _chunks(readers: Sequence[Reader]) -> Iterator[Chunk]:
    for reader in readers:
        yield from reader.chunks(for_writing=False)


def _survey(engine: Engine, chunks: Iterable[Chunk], workers: int, language: LanguageCheck) -> _Survey:
    survey, n_first = _Survey(), 0
    progress = progress_on_stderr("inspect", 0, "rows")
    start = time.monotonic()
    with Workers(engine.worker(), workers) if workers > 1 else nullcontext() as processes:
        for chunk, counted in engine.count(((chunk, batch_of(chunk)) for chunk in chunks), processes, progress):
            language.add(chunk, counted)
            if n_first < TRIED:
                survey.first.append((chunk, counted))
                n_first += int(counted.counts[1].sum())
            survey.add(counted, counted.counts[3 if engine.settings.strategy == "S2" else 2])
    survey.seconds = time.monotonic() - start
    return survey


def _try(engine: Engine, chunks: Sequence[tuple[Chunk, BatchCounts]], budget: DocumentBudget) -> Trial:
    """Rewrite some rows and discard them: how much would change, and how fast it goes."""
    tally, n_before = Tally(), 0
    some: list[Chunk] = []
    for chunk, counted in chunks:
        n_tokens = counted.counts[1]
        some.append(replace(chunk, selection=n_before + np.cumsum(n_tokens) - n_tokens < TRIED))
        n_before += int(n_tokens.sum())
    columns = [str(number) for number in range(len(some[0].texts[0]))]
    progress = progress_on_stderr("try", sum(int(chunk.is_selected.sum()) for chunk in some), "rows")
    start = time.monotonic()
    for _, rewritten in engine.rewrite(((chunk, batch_of(chunk)) for chunk in some), columns, budget, None, progress):
        tally.merge(rewritten.tally)
    seconds = time.monotonic() - start
    counts = tally.counts()
    return Trial(
        tokens=counts.n_tokens_in,
        perturbed=counts.n_perturbed,
        share_changed=None if counts.share_unchanged is None else 1 - counts.share_unchanged,
        documents=tally.of_documents.shares(),
        words_out_per_word_in=counts.n_words_out / counts.n_words_in if counts.n_words_in else None,
        tokens_per_second=counts.n_tokens_in / seconds if counts.n_tokens_in else 0.0,
    )


def _examples(engine: Engine, chunks: Sequence[Chunk]) -> dict[str, list[tuple[str, int]]]:
    """The most frequent words that would stay unprotected, and those that are unknown, of the first rows."""
    examples: dict[str, Frequencies[str]] = {"unprotected": Frequencies(), "unknown": Frequencies()}
    for chunk in chunks:
        encoded, plan = engine.worker().plan(batch_of(chunk))
        is_kept = plan.action == Action.KEPT.value
        is_unknown = (plan.known < 0) & (encoded.kind == TokenClass.OOV.value)
        for name, chosen in (("unprotected", is_kept), ("unknown", is_unknown)):
            examples[name].update(encoded.words[word] for word in encoded.first_word[np.flatnonzero(chosen)].tolist())
    return {name: words.most_common(EXAMPLES) for name, words in examples.items()}


def as_text(result: Inspection) -> list[str]:
    """The result as lines for people."""
    budget, tried, estimate, tokens = result.budget, result.tried, result.estimate, result.tokens
    files = f" in {result.files:,} files" if result.files > 1 else ""
    lines = [
        f"all of this is {PRIVATE}",
        f"{result.rows:,} rows{files} ({size(result.bytes)}), {result.texts:,} texts, {tokens:,} tokens",
        f"the vocabulary knows {_percent(result.coverage)} of the words",
        *([] if result.language is None else [f"CAUTION: the input {result.language.sentence}"]),
        "",
        f"{'class':<12}"
        + "".join(f"{action:>14}" for action in ("perturbed", "random word", "dropped", "UNPROTECTED")),
    ]
    for kind, actions in result.by_class:
        cells = (actions.perturbed, actions.sampled, actions.dropped, actions.kept)
        lines.append(f"{kind:<12}" + "".join(f"{count:>14,}" for count in cells))
    for kind, found in (result.found or {}).items():
        lines.append(f"found {kind}: " + ", ".join(f"{n:,} {action}" for action, n in found.items()))
    if result.found is not None and not result.found:
        lines.append("detectors find nothing")
    lines.append(f"{_percent(result.unprotected_share)} of all tokens would be unprotected")
    for name, words in (result.examples or {}).items():
        lines.append(f"most frequent {name}: " + ", ".join(f"{word} ({count:,})" for word, count in words))
    lines += ["", *_budget_lines(budget)]
    if result.guarantee.holds:
        lines += filter(None, (f"guarantee: {result.guarantee.statement}", result.guarantee.not_covered))
    if result.meaning is not None:
        lines += result.meaning.sentences
    if tried.share_changed is not None:
        changed = _percent(tried.share_changed)
        lines.append(f"about {changed} of the perturbed tokens would change (tried on {tried.tokens:,} tokens)")
        if 1 - tried.share_changed > MUCH_UNCHANGED:
            lines.append("CAUTION: hardly a word would change: this epsilon is so large that the bound means little")
    if tried.documents is not None:
        lines += [
            f"tried on {tried.tokens:,} tokens, {tried.documents.sentence}",
            *filter(None, [tried.documents.caution]),
        ]
    lines.append(
        f"takes about {_duration(estimate.seconds)} and at most {size(estimate.memory_bytes)} of memory with "
        f"{estimate.workers} process{'es' if estimate.workers > 1 else ''}"
    )
    return lines


def _budget_lines(budget: BudgetPreview) -> Iterator[str]:
    per = budget.epsilon_per_token
    if budget.protection is not None:
        yield budget.protection.sentence
    yield f"{budget.mechanism} {budget.strategy}, {budget.mode} mode; unit 1 / {budget.metric}"
    spread = "" if per.mean is None else f"; epsilon of a token {per.least:.4g} to {per.most:.4g}, mean {per.mean:.4g}"
    if budget.protection is None:
        yield f"budget of each document {budget.document_budget:.4g}{spread}"
    elif per.most is not None:
        yield f"each perturbed token gets epsilon {per.most:.4g}, whatever the length of its text"
    if budget.capped_documents:
        n = budget.capped_documents
        yield (
            f"{'1 document is' if n == 1 else f'{n:,} documents are'} so short that {'its' if n == 1 else 'their'} "
            f"tokens get the largest epsilon of a token, {budget.max_token_epsilon:.4g}, and leave some of the budget: "
            f"{budget.capped_tokens:,} tokens"
        )
    words, taken = budget.median_words, budget.average_words
    if words and taken and not 1 / OTHER_LENGTH < words / taken < OTHER_LENGTH:
        yield (
            f"CAUTION: the middle text has {words:,} words, and the budget is that of {taken:.4g}: its tokens get "
            f"{taken / words:.2g} times the base epsilon, or the largest of a token. With average_words {words}, which "
            "is published, they get the base epsilon"
        )
    own = (
        f"the ledger's own; if it has none yet, {TIMES} times what an ordinary document may "
        "spend (params.yaml: ledger.cap)"
    )
    yield f"lifetime cap of a subject: {own if budget.cap is None else budget.cap}"
    if budget.protection is None and isinstance(budget.cap, int | float) and budget.document_budget > budget.cap:
        yield "CAUTION: the budget of a document is above the cap: rows would be left out, perhaps all"
    if budget.no_guarantee:
        yield f"CAUTION: no guarantee: {budget.no_guarantee}; a release is refused unless without_guarantee is set"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _duration(seconds: float) -> str:
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"
