"""The functions of ``import lexveil``: the same engine as the command line, on values in memory, from any folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lexveil.auditing import audit as auditing
from lexveil.auditing.audit import AuditResult
from lexveil.privatization import in_memory, inspection
from lexveil.privatization.in_memory import Privatized
from lexveil.privatization.model import Model

Project = Path | str | Model | None
Mode = Literal["release", "experiment"]


@dataclass(frozen=True, slots=True)
class Inspection:
    """What rewriting an input would do; see ``inspect``.

    Attributes:
        files, bytes, rows, documents, texts, tokens: how much there is. A row with any text is a document.
        coverage: the share of its words that the vocabulary knows, 0 to 1; None without words.
        in_clear_share: the share of its tokens that would stay unprotected, 0 to 1; None without tokens.
        by_class: for each class of token (word, stopword, punctuation, oov), how many would get which action.
        budget: mechanism, strategy, mode, metric and document budget; ``epsilon_per_token`` of a short, a middling and
            a long document, in 1 / units of the metric; ``no_guarantee`` says why there is none, or is None.
        tried: what became of the first texts, rewritten once with seeded noise that is not released.
        estimate: workers, seconds, and memory_bytes of all of them.
        examples: frequent words that would stay unprotected or are unknown; None unless they were asked for.
    """

    files: int
    bytes: int
    rows: int
    documents: int
    texts: int
    tokens: int
    coverage: float | None
    in_clear_share: float | None
    by_class: Mapping[str, Mapping[str, int]]
    budget: Mapping[str, Any]
    tried: Mapping[str, Any]
    estimate: Mapping[str, Any]
    examples: Mapping[str, Sequence[tuple[str, int]]] | None


def privatize(
    texts: Any,
    *,
    mechanism: str,
    strategy: str,
    epsilon: float | None = None,
    document_budget: float | None = None,
    subjects: Any = None,
    column: str | None = None,
    mode: Mode | None = None,
    seed: int | None = None,
    keep_layout: bool = False,
    consistent: bool = False,
    stopwords: str | None = None,
    punctuation: str | None = None,
    oov: str | None = None,
    on_exhausted: Literal["withhold", "refuse"] | None = None,
    workers: int | None = None,
    project: Project = None,
) -> Privatized:
    """Rewrite texts under metric differential privacy, with the artifacts that `lexveil run` made in a project.

    Args:
        texts: n of them: a list or tuple of strings, an Array or ChunkedArray of pyarrow, a Series of pandas or polars;
            or a relation of DuckDB. None is no text.
        mechanism: a name of ``lexveil.MECHANISMS``.
        strategy: S1 (words), S2 to S4 (collocations), as `lexveil privatize --help` says.
        epsilon: base epsilon per word, in 1 / units of the mechanism's metric: a text's budget is that times the mean
            number of words of a text. Give this or ``document_budget``.
        document_budget: the budget of each text.
        subjects: n of them: whom each text is about, whose budget the ledger keeps over all releases. None: each text
            is a subject of its own. Of a relation: the name of a column.
        column: of a relation: its text column.
        mode: release: the noise is the operating system's and the ledger is charged. experiment: it is seeded, so
            that it can be repeated and protects nothing. None: experiment if there is a seed, else release.
        seed: of an experiment; None is that of params.yaml.
        keep_layout: copy the writer's spacing and capitals, which the record then says are unprotected.
        consistent: replace equal words of a text alike, on one payment.
        stopwords, punctuation, oov: what happens to tokens of the class: perturb, keep, drop or sample; None as in
            params.yaml.
        on_exhausted: whether texts of subjects without budget are withheld, or nothing is released; None as in
            params.yaml.
        workers: processes; None is one if there is little to do, else as in params.yaml. Changes no result.
        project: the folder of the project; None is the current one. A ``Model`` of it saves loading it again.

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
        on_exhausted=on_exhausted,
        workers=workers,
        project=_model(project),
        mechanism=mechanism,
        strategy=strategy,
        epsilon=epsilon,
        document_budget=document_budget,
        mode=mode or ("release" if seed is None else "experiment"),
        seed=seed,
        keep_layout=keep_layout,
        consistent=consistent,
        stopwords=stopwords,
        punctuation=punctuation,
        oov=oov,
    )


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
    **options: Any,
) -> Inspection:
    """Say what rewriting a file or a folder would do, without doing it: nothing is written or spent.

    Args:
        source: JSON lines, CSV, TSV, text (each also compressed by gz or zst) or Parquet; a folder of such.
        mechanism, strategy, epsilon, document_budget, project: as of ``privatize``.
        text_column: the columns that hold text. A row is a document.
        show_examples: name the most frequent words that would stay unprotected or are unknown: they are source text.
        options: further ones of ``lexveil.privatization.file_adapter.FileOptions``.

    Raises:
        RequestError: if the request contradicts itself, or the file cannot be read.
        MissingArtifact: if the project has not run yet.
    """
    result = inspection.inspect(
        Path(source),
        mechanism=mechanism,
        strategy=strategy,
        epsilon=epsilon,
        document_budget=document_budget,
        text_column=text_column,
        show_examples=show_examples,
        project=_model(project),
        **options,
    )
    return Inspection(**result)


def audit(
    mechanism: str,
    epsilon: float,
    *,
    strategy: str = "S1",
    words: int = 300,
    samples: int = 20_000,
    mode: Mode = "experiment",
    confidence: float = auditing.CONFIDENCE,
    project: Project = None,
) -> AuditResult:
    """Test the privacy that a mechanism claims, on toy vocabularies, on words of a project, and on whole texts.

    Exact where the mechanism's distribution has a closed form; for the rest lower confidence bounds from samples.

    Args:
        mechanism: a name of ``lexveil.MECHANISMS``.
        epsilon: the claim: per token, in 1 / units of the metric; in texts, base epsilon.
        strategy: S1 to S4; decides which embedding the words are of.
        words: seeded words to test, all of the embedding's if it has fewer.
        samples: draws per word or text, half of them to find what to test, half to test it.
        mode: where the noise comes from: the project's seed, or the operating system.
        confidence: of the whole audit: the chance that no bound is too high.
        project: the folder of the project, or a model of it; None is the current one.

    Raises:
        RequestError: if the request is out of range.
        MissingArtifact: if the project has not run yet.
    """
    return auditing.audit(
        mechanism,
        epsilon,
        words=words,
        samples=samples,
        strategy=strategy,
        mode=mode,
        confidence=confidence,
        project=_model(project),
    )


def _model(project: Project) -> Path | Model | None:
    return Path(project) if isinstance(project, str) else project
