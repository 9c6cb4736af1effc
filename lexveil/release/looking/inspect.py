"""Prediction of the effects that rewriting a file would have, for `lexveil inspect`. Nothing is
written or charged.
"""

from __future__ import annotations

import math
from collections import Counter as Frequencies
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from lexveil.base.errors import RequestError
from lexveil.core.accounting.budgets import Action, DocumentBudget, divisors, epsilon_per_part
from lexveil.core.accounting.expected_recovery import Meaning
from lexveil.core.accounting.linkage import LinkageFigures
from lexveil.core.accounting.operator_report import (
    SECRECY,
    ClassCounts,
    DocumentShares,
    LanguageFinding,
)
from lexveil.core.accounting.record import Guarantee, Protection
from lexveil.core.accounting.results import Number, Result
from lexveil.core.accounting.shares import WHOLE, ShareClasses
from lexveil.core.accounting.statement import lines_of
from lexveil.core.accounting.subject_keys import subject_key
from lexveil.core.text.encode import TokenClass
from lexveil.io.artifacts.model import Model
from lexveil.io.execution.checkpoints import size
from lexveil.io.formats.chunks import Chunk
from lexveil.io.formats.messages import NoColumnError, names
from lexveil.io.formats.readers import Reader
from lexveil.io.request import FileRequest
from lexveil.readers.linkage import n_unique
from lexveil.release.adapters.inputs import find_readers, tell_columns, workers_for
from lexveil.release.adapters.memory import Texts, whole_chunks
from lexveil.release.charge import cap_now, ledger_of
from lexveil.release.engine.batch import batch_of, selected_texts
from lexveil.release.engine.counts import (
    BatchCounts,
    Tally,
    class_counts,
    coverage,
    found_counts,
    unprotected_share,
)
from lexveil.release.engine.engine import Engine, WordEngine
from lexveil.release.engine.sentences import engine_of
from lexveil.release.engine.worker import Processes
from lexveil.release.ledger.caps import TIMES, Cap
from lexveil.release.linkage import linkage_of
from lexveil.release.looking.spending import MOST_SUBJECTS, Costs, SubjectSpending, spending_of
from lexveil.release.preconditions import settings_for, tell_unmatched
from lexveil.release.run import RowSource, Run
from lexveil.release.screen_check import cautions
from lexveil.release.settings import beyond_light, document_budget

# number of tokens that are rewritten and then discarded, to estimate how much would change
TRIED = 50_000
# factor between the actual and the assumed length of texts from which a caution is printed
OTHER_LENGTH = 2.0
EXAMPLES = 15  # number of example words of each class


class EpsilonSpread(Result):
    """Distribution of the epsilon of the tokens that spend any epsilon; null if there is no such
    token.
    """

    least: float | None
    mean: float | None
    most: float | None


class BudgetPreview(Result):
    """Preview of the privacy budget: how much epsilon would be spent, and on which unit.

    Attributes:
        protection: The protection level; null if the request sets epsilon in another way.
        cap: Largest epsilon of a subject over all releases, from lexveil.toml or else from the
            ledger; null if neither has a cap.
        default_cap: The cap that the first release would set; null if there is a cap already.
        usual_text: Description of the text of ordinary length; the default cap is enough for ten
            releases of it.
        beyond_light: A caution if a token gets more epsilon than at the weakest protection level,
            light.
        max_token_epsilon: The largest epsilon that a token may get; null for no limit.
        capped_documents: The number of documents whose tokens reach the limit of a token, so that a
            part of their budget stays unspent.
        capped_tokens: The number of tokens of these documents; each has the largest epsilon.
        median_words: Median number of words of the documents; null without documents.
        average_words: The number of words by which a base epsilon is multiplied to give the budget
            of a document; null if the request gives the budget itself.
    """

    mechanism: str
    strategy: str
    mode: str
    metric: str
    no_guarantee: str | None
    protection: Protection | None
    document_budget: Number
    cap: Number | Literal["unlimited"] | None
    default_cap: Number | None
    usual_text: str
    beyond_light: str | None
    max_token_epsilon: Number | None
    capped_documents: int
    capped_tokens: int
    median_words: int | None
    average_words: float | None
    epsilon_per_token: EpsilonSpread


class Trial(Result):
    """The result of rewriting the first texts on trial. The rewritten texts were discarded.

    Attributes:
        documents: The distribution of the share of unchanged content words of a document.
        texts: The number of texts; null for repeated draws of one text.
        unique_structures: The number of these texts with a disclosed structure (such as the number
            of tokens) that no other text has; null if ``texts`` is null.
        screened: The share of the replaced words that belong to each part of the public list of
            unwanted words; null if ``texts`` is null, and for sentences.
    """

    tokens: int
    perturbed: int
    share_changed: float | None
    documents: DocumentShares | None
    texts: int | None = None
    unique_structures: int | None = None
    screened: dict[str, float] | None = None


class TextsInspection(Result):
    """The effects that rewriting texts would have. A row with any text counts as a document. If
    texts are given in memory, each text is a row.

    Attributes:
        coverage: Share of the words that are in the vocabulary.
        unprotected_share: Share of the tokens that would stay unprotected.
        by_class: The number of tokens of each class, by action.
        guarantee: The privacy guarantee that the record of a release would state.
        linkage: How often an adversary who holds candidates for a source identifies the source,
            measured on public texts.
        tried: The result of rewriting a sample of the texts on trial.
    """

    secrecy: str = SECRECY
    rows: int
    texts: int
    tokens: int
    coverage: float | None
    unprotected_share: float | None
    by_class: ClassCounts
    budget: BudgetPreview
    guarantee: Guarantee
    linkage: LinkageFigures
    tried: Trial


class Inspection(TextsInspection):
    """The effects that `lexveil privatize` would have on a file or folder.

    Attributes:
        subjects: The number of subjects of the rows, counted up to a million; null without a column
            that names subjects.
        spending: The cost of a release for the subjects, and the rest of their cap; null for an
            experiment, without texts, and with more than a million subjects.
        language: The warning that the texts may have another language than the model; null if there
            is none.
        emptied: The number of texts that would become empty, because they are in a script without
            spaces between words; null if such an input is refused.
        found: The number of tokens that detectors find, by type and action; these tokens are in no
            class. Null without a detector.
        meaning: What the epsilons of tokens mean: the share of words that an adversary is expected
            to guess.
        examples: Frequent words that would stay unprotected or are unknown; they are source text.
    """

    files: int
    bytes: int
    documents: int
    subjects: int | None = None
    spending: SubjectSpending | None = None
    language: LanguageFinding | None
    emptied: int | None = None
    found: dict[str, dict[str, int]] | None = None
    meaning: Meaning | None
    examples: dict[str, list[tuple[str, int]]] | None

    def __str__(self) -> str:
        """Return the inspection as the text that `lexveil inspect` prints."""
        return "\n".join(as_text(self))


def inspect(
    source: Path | str,
    request: FileRequest,
    *,
    show_examples: bool = False,
    project: Path | Model | None = None,
    model: str | None = None,
) -> Inspection:
    """Predict the effects that `lexveil privatize` would have on a file or folder.

    Args:
        source, request, project, model: the arguments of ``privatize_file``.
        show_examples: whether to name the most frequent words that would stay unprotected or are
            unknown. They are source text.

    Raises:
        RequestError: if ``privatize_file`` would refuse the request.
    """
    using = Model.load(project, model)
    if request.mechanism == "none":
        raise RequestError("mechanism 'none' keeps texts unchanged; there is nothing to inspect")
    spool = using.path(using.configuration.machine.temp_directory)
    try:
        with find_readers(source, request, spool) as readers:
            for reader in readers:
                reader.check()
            # figures may have to be computed, so check the columns first
            engine = engine_of(settings_for(request, using), using)
            tell_columns(readers, request)
            n_bytes = sum(reader.size for reader in readers)
            rows = RowSource(partial(_chunks_of, readers), tuple(readers[0].text_columns))
            with Processes(workers_for(request, n_bytes, using)) as processes:
                run = Run(engine, document_budget(engine.settings, using), rows, processes)
                survey = _survey(run, Costs() if run.settings.mode == "release" else None)
                tell_unmatched(request, run.survey.found)
                preview = _preview(run, survey)
    except NoColumnError as error:
        raise (
            RequestError(f"{error.message}: {names(error.columns)}") if show_examples else error
        ) from None
    language = run.language
    per_token = preview.budget.epsilon_per_token
    has_subjects = request.subject_column is not None
    n_subjects = {"subjects": min(len(survey.subjects), MOST_SUBJECTS)} if has_subjects else {}
    has_detector = engine.settings.detection is not None
    spending = None
    if survey.costs is not None:
        cap = preview.budget.cap or preview.budget.default_cap
        spending = spending_of(survey.costs, run.budget, cap, ledger_of(using.project))
    return Inspection(
        **dict(preview),  # omit unset fields from the JSON form
        files=len(readers),
        bytes=n_bytes,
        documents=run.survey.documents,
        **n_subjects,
        **({} if spending is None else {"spending": spending}),
        language=language.finding(),
        **({} if language.n_emptied is None else {"emptied": language.n_emptied}),
        **({"found": found_counts(run.survey.found)} if has_detector else {}),
        meaning=engine.meaning(per_token.least or 0.0, per_token.most or 0.0),
        examples=_examples(run, survey) if show_examples else None,
    )


def _chunks_of(readers: Sequence[Reader], for_writing: bool) -> Iterator[Chunk]:
    for reader in readers:
        yield from reader.chunks(for_writing)


def inspect_texts(texts: Sequence[str | None], engine: Engine) -> TextsInspection:
    """Predict the effects of rewriting texts in memory. Draws are discarded, and nothing is written
    or charged.

    Raises:
        RequestError: if ``privatize_texts`` would refuse the texts.
    """
    rows = RowSource(lambda **_: whole_chunks(Texts(texts)), ("text",))
    run = Run(engine, document_budget(engine.settings, engine.model), rows, Processes(1))
    survey = _survey(run)
    run.language.tell()
    return _preview(run, survey)


def draws_in_words(
    engine: Engine, counted: BatchCounts, drawn: Tally, *, one_epsilon: bool
) -> list[str]:
    """Describe in sentences how a text would be rewritten, for one text that was rewritten several
    times.

    Args:
        counted: the counts of the text.
        drawn: the results of the draws; each draw counts as a document.
        one_epsilon: whether every token has the same epsilon, whatever the length of the text.
    """
    survey = _Survey()
    survey.add(counted, engine.settings.strategy)
    budget = document_budget(engine.settings, engine.model)
    return texts_in_words(
        _budget(engine, survey, budget, None, one_epsilon=one_epsilon), _trial(drawn), "draw"
    )


def texts_in_words(budget: BudgetPreview, tried: Trial, unit: str = "text") -> list[str]:
    """Describe in lines of text how each text would be rewritten."""
    shown = {
        "budget": budget,
        "tried": tried,
        "unit": unit,
        "other_length": OTHER_LENGTH,
        "screened": cautions(tried.screened or {}),
    }
    return lines_of("release.looking", "texts.txt.j2", **shown)


def _preview(run: Run, survey: _Survey) -> TextsInspection:
    """Return the inspection of an input, computed from the counts of its first pass and from a
    trial on its first texts.
    """
    engine = run.engine
    settings = engine.settings
    totals = run.survey
    n_columns = run.outcome.n_columns
    cap = cap_now(ledger_of(engine.model.project))
    withholds = settings.mode == "release" and cap != "unlimited"
    measurement = engine.measurement(run.budget, n_columns, withholds=withholds)
    refusals = "; ".join(measurement.refusals) or None
    return TextsInspection(
        secrecy=SECRECY,
        rows=totals.rows,
        texts=totals.texts,
        tokens=int(totals.by_class.sum()),
        coverage=coverage(totals.by_class),
        unprotected_share=unprotected_share(totals.by_class),
        by_class=class_counts(totals.by_class),
        budget=_budget(
            engine,
            survey,
            run.budget,
            refusals,
            one_epsilon=settings.protection is not None,
            cap=cap,
        ),
        guarantee=engine.guarantee(measurement, n_columns),
        linkage=linkage_of(settings, engine.model),
        tried=_try(run, survey.first),
    )


def _budget(
    engine: Engine,
    survey: _Survey,
    budget: DocumentBudget,
    refusals: str | None,
    *,
    one_epsilon: bool,
    cap: Cap = None,
) -> BudgetPreview:
    settings = engine.settings
    per_token, capped_documents, capped_tokens = survey.epsilon_per_token(budget, engine.shares)
    return BudgetPreview(
        mechanism=settings.mechanism,
        strategy=settings.strategy,
        mode=settings.mode,
        metric=engine.prepared.mechanism.metric,
        no_guarantee=refusals,
        protection=settings.protection,
        document_budget=budget.total,
        cap=cap,
        default_cap=TIMES * budget.usual if cap is None else None,
        usual_text=budget.usual_text,
        beyond_light=beyond_light(settings, engine.model, per_token.most or 0.0),
        max_token_epsilon=budget.cap if math.isfinite(budget.cap) else None,
        capped_documents=0 if one_epsilon else capped_documents,
        capped_tokens=0 if one_epsilon else capped_tokens,
        median_words=survey.median_words(),
        average_words=None if settings.names_average_words else budget.average_words,
        epsilon_per_token=per_token,
    )


@dataclass(slots=True)
class _Survey:
    """Counts of an input that only an inspection needs.

    Attributes:
        first: the first chunks of the input, with their counts.
        parts: the number of documents by two numbers: the parts of the budget that they spend, and
            the parts into which their budget is divided.
        words: the number of documents by their number of words.
        subjects: the keys of the subjects of the rows.
        costs: the cost of a release for each subject; None if nothing would be charged.
    """

    first: list[tuple[Chunk, BatchCounts]] = field(default_factory=list)
    parts: Frequencies[tuple[int, int]] = field(default_factory=Frequencies)
    words: Frequencies[int] = field(default_factory=Frequencies)
    subjects: set[str] = field(default_factory=set)
    costs: Costs | None = None

    def add(self, counted: BatchCounts, strategy: str) -> None:
        """Add the counts of a batch, with the budget parts of each document that spends any
        epsilon.
        """
        paid = counted.counts[2]
        divisor = divisors(strategy, counted.counts[2], counted.counts[3])
        self.parts.update(zip(paid[paid > 0].tolist(), divisor[paid > 0].tolist(), strict=True))
        words = counted.counts[0]
        self.words.update(words[words > 0].tolist())

    def median_words(self) -> int | None:
        """Return the median number of words of the documents that have words."""
        lengths = sorted(self.words)
        reached = np.cumsum([self.words[length] for length in lengths])
        return lengths[int(np.searchsorted(reached, reached[-1] / 2))] if lengths else None

    def epsilon_per_token(
        self, budget: DocumentBudget, shares: ShareClasses | None
    ) -> tuple[EpsilonSpread, int, int]:
        """Return the epsilon of a token without a class under a document budget, and the numbers of
        documents and of tokens that reach the largest allowed epsilon of a token.
        """
        if not self.parts:
            return EpsilonSpread(least=None, mean=None, most=None), 0, 0
        paid, divisor = np.array(list(self.parts), dtype=np.int64).T
        documents = np.array(list(self.parts.values()), dtype=np.int64)
        whole, most = (1, 1) if shares is None else (WHOLE, shares.most)
        # The counts are already divided, so the strategy does not matter.
        epsilon = epsilon_per_part("S1", budget, paid, divisor, most) * whole
        mean = float((epsilon * paid * documents).sum() / (paid * documents).sum())
        spread = EpsilonSpread(least=float(epsilon.min()), mean=mean, most=float(epsilon.max()))
        is_capped = budget.cap * divisor < budget.total * most
        return (
            spread,
            int(documents[is_capped].sum()),
            int((documents * paid)[is_capped].sum()) // whole,
        )


def _survey(run: Run, costs: Costs | None = None) -> _Survey:
    """Count the tokens of an input, and keep its first chunks of rows for a trial.

    Args:
        costs: totals to which the costs of the rows are added, if a release would be charged.
    """
    survey = _Survey(costs=costs)
    n_first = 0
    for chunk, counted in run.counting("inspect"):
        if len(survey.subjects) < MOST_SUBJECTS:
            survey.subjects.update(map(subject_key, chunk.subjects or ()))
        if costs is not None:
            costs.add(chunk, counted, run.engine, run.budget)
        if n_first < TRIED:
            survey.first.append((chunk, counted))
            n_first += int(counted.counts[1].sum())
        survey.add(counted, run.settings.strategy)
    return survey


def _try(run: Run, chunks: Sequence[tuple[Chunk, BatchCounts]]) -> Trial:
    """Rewrite the first rows on trial and discard the outputs, to estimate how much would
    change.
    """
    tally = Tally()
    n_before = 0
    some = list[Chunk]()
    for chunk, counted in chunks:
        n_tokens = counted.counts[1]
        some.append(replace(chunk, selection=n_before + np.cumsum(n_tokens) - n_tokens < TRIED))
        n_before += int(n_tokens.sum())
    # Rows after the first tokens are not rewritten, but they are returned with the others.
    for _, rewritten in run.drawing(some, "try", sum(map(len, some))):
        tally.merge(rewritten.tally)
    rows = (row for chunk in some for row in selected_texts(chunk))
    texts = [text for row in rows for text in row if text]
    n_unique_structures = n_unique(run.engine.disclosed(texts))
    shares = {"screened": run.screened.shares()} if isinstance(run.engine, WordEngine) else {}
    return _trial(tally).model_copy(
        update={"texts": len(texts), "unique_structures": n_unique_structures} | shares
    )


def _trial(tally: Tally) -> Trial:
    counts = tally.counts()
    return Trial(
        tokens=counts.n_tokens_in,
        perturbed=counts.n_perturbed,
        share_changed=None if counts.share_unchanged is None else 1 - counts.share_unchanged,
        documents=tally.document_shares(),
    )


def _examples(run: Run, survey: _Survey) -> dict[str, list[tuple[str, int]]]:
    """Return the most frequent words of the first rows that would stay unprotected, and the most
    frequent words that are not in the vocabulary.
    """
    examples: dict[str, Frequencies[str]] = {"unprotected": Frequencies(), "unknown": Frequencies()}
    for chunk, _ in survey.first:
        encoded, plan = run.worker.plan(batch_of(chunk))
        is_kept = plan.action == Action.KEPT.value
        is_unknown = (plan.known < 0) & (encoded.kind == TokenClass.OOV.value)
        for name, chosen in (("unprotected", is_kept), ("unknown", is_unknown)):
            examples[name].update(
                encoded.words[word] for word in encoded.first_word[np.flatnonzero(chosen)].tolist()
            )
    return {name: words.most_common(EXAMPLES) for name, words in examples.items()}


def as_text(result: Inspection) -> list[str]:
    """Return an inspection as lines of text."""
    more = {
        "size": size(result.bytes),
        "times": TIMES,
        "tried": result.tried,
        "other_length": OTHER_LENGTH,
        "screened": cautions(result.tried.screened or {}),
    }
    more |= {"most_subjects": MOST_SUBJECTS}
    return lines_of("release.looking", "inspection.txt.j2", result=result, unit="text", **more)
