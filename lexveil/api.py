"""The functions of ``import lexveil``: the same engine as the command line, on values in memory, from any folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lexveil.artifacts.model import Model
from lexveil.auditing.request import CONFIDENCE, AuditRequest
from lexveil.keywords import speaks_in_keywords
from lexveil.privatization.adapters import memory as in_memory
from lexveil.privatization.adapters.memory import Privatized
from lexveil.privatization.looking import inspect as inspection
from lexveil.privatization.looking.inspect import Inspection

if TYPE_CHECKING:
    from lexveil.auditing.audit import AuditResult

Project = Path | str | Model | None
Mode = Literal["release", "experiment"]


def privatize(
    texts: Any,
    *,
    mechanism: str,
    strategy: str,
    epsilon: float | None = None,
    document_budget: float | None = None,
    recovery: float | None = None,
    band: str = "all",
    average_words: float | Literal["data"] | None = None,
    max_token_epsilon: float | Literal["none"] | None = None,
    subjects: Any = None,
    column: str | None = None,
    mode: Mode | None = None,
    seed: int | None = None,
    keep_layout: bool = False,
    consistent: bool = False,
    without_guarantee: bool = False,
    stopwords: str | None = None,
    punctuation: str | None = None,
    oov: str | None = None,
    spans: Any = None,
    detector: Literal["none", "presidio"] | None = None,
    protect: Path | str | None = None,
    allow: Path | str | None = None,
    types: Mapping[str, str] | None = None,
    pseudonyms: Path | str | None = None,
    on_exhausted: Literal["withhold", "refuse"] | None = None,
    workers: int | None = None,
    project: Project = None,
    model: str | None = None,
) -> Privatized:
    """Rewrite texts under metric differential privacy, with a model that is installed or that a project's run made.

    Args:
        texts: n of them: a list or tuple of strings, an Array or ChunkedArray of pyarrow, a Series of pandas or polars.
            None is no text. Or a table: a DataFrame of pandas or polars, a Table of pyarrow, a relation of DuckDB, a
            Dataset of Hugging Face; of one that streams, ``PrivatizeBatches``.
        mechanism: a name of ``lexveil.MECHANISMS``.
        strategy: S1 (words), S2 to S4 (collocations), as `lexveil privatize --help` says.
        epsilon: base epsilon per word, in 1 / units of the mechanism's metric: a text's budget is that times
            ``average_words``. Give this, ``document_budget`` or ``recovery``.
        document_budget: the budget of each text.
        recovery: the share of perturbed words that a best-informed reader is expected to name, by public word
            frequencies: it becomes the base epsilon, and the largest of a token.
        band: of which words that is: all, content (all but function words), function, frequent, middle or rare.
        average_words: a public number of words; None is that of params.yaml, by default the corpus's mean. ``data``,
            the mean of these texts, is private and only for experiments.
        max_token_epsilon: the largest epsilon of a token, for texts so short that they would come out as they are;
            None is that of params.yaml, by default twice the base epsilon. ``none`` is only for experiments.
        subjects: n of them: whom each text is about, whose budget the ledger keeps over all releases. None: each text
            is a subject of its own. Of a table also the name of a column.
        column: of a table: its text column.
        mode: release: the noise is the operating system's and the ledger is charged. experiment: it is seeded, so
            that it can be repeated and protects nothing. None: experiment if there is a seed, else release.
        seed: of an experiment; None is that of params.yaml.
        keep_layout: copy the writer's spacing and capitals, which the record then says are unprotected.
        consistent: replace equal words of a text alike, on one payment.
        without_guarantee: release also what no guarantee can be given of, which is refused otherwise.
        stopwords, punctuation, oov: what happens to tokens of the class: perturb, keep, drop or sample; None as in
            params.yaml.
        spans: n of them: what was found in each text, a list of ``{"start": 8, "end": 18, "type": "PERSON"}``, in
            characters, as JSON or not; None is nothing. Of a table also the name of a column, which comes out empty.
        detector: presidio finds names, numbers and the like; none: nothing does; None as in params.yaml.
        protect, allow: files of words and phrases that are found, and that nobody may claim; None as in params.yaml.
        types: what happens to what is found, by its type: perturb, sample, drop, placeholder, pseudonym or digits; of
            other types as in params.yaml, else placeholder.
        pseudonyms: a file of the public names that pseudonyms are drawn from; None as in params.yaml.
        on_exhausted: whether texts of subjects without budget are withheld, or nothing is released; None as in
            params.yaml.
        workers: processes; None is one if there is little to do, else as in params.yaml. Changes no result.
        project: the folder of the project whose parameters and ledger are used; None is the one around the current
            folder, and outside of any the defaults and the ledger in your data folder. A ``Model`` saves loading again.
        model: what gives the words: ``own``, made by the project's run, or a model by its name; None is ``own`` where
            there has been a run, else ``en``, and standard error says so.

    Returns:
        The n rewritten texts, of the kind that was given, in the same order; what happened to each token; the record.

    Raises:
        RequestError: if the request contradicts itself, or a value is no text. Nothing is spent then.
        MissingArtifact: if the project has not run yet.
        ParameterError: if params.yaml is not valid.
    """
    return in_memory.privatize(
        texts,
        column=column,
        subjects=subjects,
        spans=spans,
        on_exhausted=on_exhausted,
        workers=workers,
        project=_model(project),
        model=model,
        mechanism=mechanism,
        strategy=strategy,
        epsilon=epsilon,
        document_budget=document_budget,
        recovery=recovery,
        band=band,
        average_words=average_words,
        max_token_epsilon=max_token_epsilon,
        mode=mode or ("release" if seed is None else "experiment"),
        seed=seed,
        keep_layout=keep_layout,
        consistent=consistent,
        without_guarantee=without_guarantee,
        stopwords=stopwords,
        punctuation=punctuation,
        oov=oov,
        detector=detector,
        protect=None if protect is None else str(protect),
        allow=None if allow is None else str(allow),
        types=types,
        pseudonyms=None if pseudonyms is None else str(pseudonyms),
    )


@speaks_in_keywords(spans="spans_column")
def inspect(
    source: Path | str,
    *,
    mechanism: str,
    strategy: str,
    epsilon: float | None = None,
    document_budget: float | None = None,
    text_column: str | Sequence[str] = "text",
    show_examples: bool = False,
    project: Project = None,
    model: str | None = None,
    **options: Any,
) -> Inspection:
    """Say what rewriting a file or a folder would do, without doing it: nothing is written or spent.

    Args:
        source: JSON lines, CSV, TSV, text (each also compressed by gz or zst) or Parquet; a folder of such.
        mechanism, strategy, epsilon, document_budget, project, model: as of ``privatize``.
        text_column: the columns that hold text. A row is a document.
        show_examples: name the most frequent words that would stay unprotected or are unknown: they are source text.
        options: further ones of ``lexveil.privatization.adapters.inputs.FileOptions``.

    Raises:
        RequestError: if the request contradicts itself, or the file cannot be read.
        MissingArtifact: if the project has not run yet.
    """
    return inspection.inspect(
        Path(source),
        mechanism=mechanism,
        strategy=strategy,
        epsilon=epsilon,
        document_budget=document_budget,
        text_column=text_column,
        show_examples=show_examples,
        project=_model(project),
        model=model,
        **options,
    )


@speaks_in_keywords()
def audit(
    mechanism: str,
    epsilon: float,
    *,
    strategy: str = "S1",
    words: int = 300,
    samples: int = 20_000,
    mode: Mode = "release",
    confidence: float = CONFIDENCE,
    workers: int = 1,
    project: Project = None,
    model: str | None = None,
) -> AuditResult:
    """Test the privacy that a mechanism claims, on toy vocabularies, on words of a model, and in whole releases.

    By the audit's own distances, laws, budgets and sums of charges; the releases are of a toy project in a temporary
    folder with a ledger of its own. The verdict is violated, no violation found with power to see ``factor``, or
    inconclusive.

    Args:
        mechanism: a name of ``lexveil.MECHANISMS``.
        epsilon: the claim: per token, in 1 / units of the metric; in releases, base epsilon. A second one, at which
            the claim has most power, is audited beside it.
        strategy: S1 to S4; decides which embedding the words are of.
        words: seeded words to test, all of the embedding's if it has fewer.
        samples: draws per word of a toy; a release has a tenth as many of each document.
        mode: where the noise comes from: the operating system, or the project's seed.
        confidence: of the whole audit: the chance that no bound is too high.
        workers: with more than one, releases by so many processes are audited too, as the command does by 2; a script
            that asks for it must guard its main module.
        project, model: as of ``privatize``.

    Raises:
        RequestError: if the request is out of range.
        MissingArtifact: if the project has not run yet.
    """
    from lexveil.auditing import audit as auditing  # it takes SciPy and compiled kernels

    request = AuditRequest(
        mechanism,
        epsilon,
        words=words,
        samples=samples,
        strategy=strategy,
        mode=mode,
        confidence=confidence,
        workers=workers,
    )
    return auditing.audit(request, project=_model(project), model=model)


def _model(project: Project) -> Path | Model | None:
    return Path(project) if isinstance(project, str) else project
