"""The functions of ``import lexveil``: the same engine as the command line, on values in memory,
from any folder.
"""

from __future__ import annotations

import inspect as signatures
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lexveil.auditing.request import AuditRequest
from lexveil.base.errors import LexveilError, ParameterError, RequestError
from lexveil.base.logs import quiet as silence
from lexveil.base.parameters import nearest, with_purposes
from lexveil.base.runtime.objects import as_path
from lexveil.io.artifacts.model import Model
from lexveil.io.execution.stage import Watch
from lexveil.io.request import FileRequest, Options, Request
from lexveil.release.adapters import memory as in_memory
from lexveil.release.adapters.memory import Label, Privatized
from lexveil.release.looking import inspect as inspection
from lexveil.release.looking.inspect import Inspection

if TYPE_CHECKING:
    from lexveil.auditing.audit import AuditResult

F = TypeVar("F", bound=Callable[..., Any])
Project = Path | str | Model | None

# Names of columns as ``privatize`` has them.
OF_TEXTS = {"text_column": "column", "subject_column": "subjects", "spans_column": "spans"}
# Names that a caller may expect, of options with other names.
OTHER_NAMES = {"level": "protection", "eps": "epsilon", **OF_TEXTS}


def takes_options(model: type[Options], leave_out: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Give a function the options of a request, in its signature and its help, and the option
    ``quiet``, which turns logging off.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def called(*arguments: Any, quiet: bool = False, **options: Any) -> Any:
            known = signatures.signature(called).parameters
            for key in options.keys() - known:
                meant = OTHER_NAMES.get(key) or nearest(key, known)
                raise ParameterError(f"unknown option {key}; did you mean {meant}?")
            if not quiet:
                return function(*arguments, **options)
            with silence():
                return function(*arguments, **options)

        signature = signatures.signature(function)
        own = [
            parameter for parameter in signature.parameters.values() if parameter.name != "options"
        ]
        fields = {
            name: field for name, field in model.model_fields.items() if name not in leave_out
        }
        options = [
            signatures.Parameter(
                name,
                signatures.Parameter.KEYWORD_ONLY,
                annotation=field.annotation,
                default=signatures.Parameter.empty if field.is_required() else field.default,
            )
            for name, field in fields.items()
        ]
        quiet = signatures.Parameter(
            "quiet", signatures.Parameter.KEYWORD_ONLY, annotation="bool", default=False
        )
        whole = signature.replace(parameters=[*own, quiet, *options])
        called.__signature__ = whole  # type: ignore[attr-defined]
        about = "\n".join(f"        {name}: {field.description}." for name, field in fields.items())
        called.__doc__ = f"{function.__doc__}\n    Options:\n        quiet: log nothing.\n{about}\n"
        return cast(F, called)

    return decorate


@takes_options(Request, ("spans_column",))
def privatize(
    texts: Any,
    *,
    column: Label | None = None,
    subjects: Any = None,
    spans: Any = None,
    project: Project = None,
    model: str | None = None,
    purpose: str | Sequence[str] = (),
    progress: Callable[[int, int | None], object] | bool = False,
    **options: Any,
) -> Privatized:
    """Rewrite texts under metric differential privacy, with a model that is installed or that a
    project's run made.

    Args:
        texts: n of them: a list or tuple of strings, an Array or ChunkedArray of pyarrow, a Series
            of pandas or polars. None is no text. Or a table: a DataFrame of pandas or polars, a
            Table of pyarrow, a relation of DuckDB, a Dataset of Hugging Face; of one that streams,
            its batches, one after the other.
        column: the text column of a table; other columns keep their types and values.
        subjects: n of them: whom each text is about, whose budget the ledger keeps over all
            releases; a Series of pandas belongs to texts of pandas by the labels of its index, all
            else by position. None: each text is a subject of its own. Of a table also the name of a
            column.
        spans: n of them: what was found in each text, a list of ``{"start": 8, "end": 18, "type":
            "PERSON"}``, in characters, as JSON or not; None is nothing. Of a table also the name of
            a column, which comes out empty.
        project: the folder of the project whose parameters and ledger are used; None is the one
            around the current folder, and outside of any the defaults and the ledger in your data
            folder. A ``Model`` saves loading again.
        model: what gives the words: ``own``, made by the project's run, or a model by its name;
            None is ``own`` where there has been a run, else ``en``, and the log says so.
        purpose: keeps more utility for a purpose, such as ``"sentiment"`` or ``"sentiment=2"``, or
            for several: names of `lexveil purpose list`, or files.
        progress: is called with the number of texts that are done, and of how many: first as they
            are counted, of None, then as they are rewritten. True shows a bar on standard error.
            What it raises ends the call; texts that were charged by then stay charged.
        options: how they are rewritten, as keyword arguments: ``protection``, or a ``mechanism``, a
            ``strategy`` and one of ``epsilon``, ``document_budget`` and ``recovery``, and those
            that `help(lexveil.privatize)` lists below. Messages go to the logger ``lexveil`` of
            ``logging``; ``quiet=True`` logs nothing of this call.

    Returns:
        The n rewritten texts, of the kind that was given, in the same order; what happened to each
            token; the record.

    Raises:
        RequestError: if the request contradicts itself, or a value is no text. Nothing is spent
            then.
        MissingArtifactError: if the project has not run yet.
        ParameterError: if an option, params.yaml or lexveil.toml is not valid.
    """
    with renamed_fields(OF_TEXTS), _watching(progress) as watch:
        request = Request.of(plain_options(options))
        using = _load(project, model, purpose)
        return in_memory.privatize(
            texts, request, using, column=column, subjects=subjects, spans=spans, watch=watch
        )


@takes_options(FileRequest)
def inspect(
    source: Path | str,
    *,
    show_examples: bool = False,
    project: Project = None,
    model: str | None = None,
    purpose: str | Sequence[str] = (),
    **options: Any,
) -> Inspection:
    """Describe the result of rewriting a file or a folder, without rewriting: nothing is written or
    spent.

    Args:
        source: JSON lines, CSV, TSV, text (each also compressed by gz or zst) or Parquet; a folder
            of such; also in object storage, by an address (s3://, gs://, abfs://).
        show_examples: name the most frequent words that would stay unprotected or are unknown: they
            are source text.
        project, model, purpose: as of ``privatize``.
        options: as of ``privatize`` (``quiet``, too), and those of files, such as ``text_column``.
            A row is a document.

    Raises:
        RequestError: if the request contradicts itself, or the file cannot be read.
        MissingArtifactError: if the project has not run yet.
    """
    request = FileRequest.of(plain_options(options))
    if not isinstance(source, Path | str):
        kind = type(source).__name__
        raise RequestError(
            f"source: a {kind}; give the path of a file or folder, or try lexveil.privatize "
            "with seed=1"
        )
    return inspection.inspect(
        as_path(source),
        request,
        show_examples=show_examples,
        project=_model(project),
        model=with_purposes(model, purpose),
    )


@takes_options(AuditRequest, ("mechanism", "epsilon"))
def audit(
    mechanism: str,
    epsilon: float,
    *,
    project: Project = None,
    model: str | None = None,
    purpose: str | Sequence[str] = (),
    **options: Any,
) -> AuditResult:
    """Test the privacy that a mechanism claims, on toy vocabularies, on words of a model, and in
    whole releases.

    Uses its own distances, distributions, budgets and sums of charges; releases are of a toy
    project in a temporary folder with a ledger of its own. The verdict is violated, no violation
    found with power to see ``factor``, or inconclusive.

    Args:
        mechanism: a name of ``lexveil.MECHANISMS``.
        epsilon: the claim: per token, in 1 / units of the metric; in releases, base epsilon. A
            second one, at which the claim has most power, is audited beside it.
        project, model, purpose: as of ``privatize``.
        options: how to audit, as keyword arguments: those that `help(lexveil.audit)` lists below.

    Raises:
        RequestError: if the request is out of range.
        MissingArtifactError: if the project has not run yet.
    """
    from lexveil.auditing import audit as auditing  # it takes SciPy and compiled kernels

    request = AuditRequest.of(
        {"mechanism": mechanism, "epsilon": epsilon, "workers": 1, **plain_options(options)}
    )
    named = with_purposes(model, purpose)
    return auditing.audit(request, project=_model(project), model=named)


@contextmanager
def _watching(progress: Watch | bool) -> Iterator[Watch | None]:
    """Yield the function that is told of the progress; True shows a progress bar, False nothing."""
    if not isinstance(progress, bool):
        yield progress
    elif not progress:
        yield None
    else:
        from rich.console import Console
        from rich.progress import Progress

        bar = Progress(console=Console(stderr=True), redirect_stdout=False, redirect_stderr=False)
        with bar:
            task = bar.add_task("counting", total=None)

            def show(done: int, total: int | None) -> None:
                bar.update(
                    task,
                    description="counting" if total is None else "rewriting",
                    completed=done,
                    total=total,
                )

            yield show


def _load(project: Project, model: str | None, purpose: str | Sequence[str]) -> Model:
    return Model.load(_model(project), with_purposes(model, purpose))


def _model(project: Project) -> Path | Model | None:
    return Path(project) if isinstance(project, str) else project


def plain_options(options: dict[str, object]) -> dict[str, object]:
    """Return options as plain values: paths become texts."""
    return {
        name: str(value) if isinstance(value, Path) else value for name, value in options.items()
    }


@contextmanager
def renamed_fields(names: dict[str, str]) -> Iterator[None]:
    """Name the arguments of the called function in error messages, instead of the fields of the
    request.
    """
    try:
        yield
    except LexveilError as error:
        error.args = (error.told(lambda name: names.get(name, name)), *error.args[1:])
        raise
