"""Python API of the package (``import lexveil``): the same engine as the command line, for values
in memory, in any folder.
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
    """Return a decorator that adds the options of a request to a function's signature and help, and
    the option ``quiet``, which turns logging off.
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
    """Rewrite texts under metric differential privacy, with an installed model or with the model
    that a project's run made.

    Args:
        texts: n texts: a list or tuple of strings, an Array or ChunkedArray of pyarrow, a Series of
            pandas or polars. A missing text (None) stays missing. Or a table: a DataFrame of pandas
            or polars, a Table of pyarrow, a relation of DuckDB, a Dataset of Hugging Face; a
            streaming Dataset is read batch by batch.
        column: the text column of a table; other columns keep their types and values.
        subjects: n subjects: the person whom each text is about. The ledger keeps a budget for each
            subject over all releases. A Series of pandas is matched to texts of pandas by the
            labels of its index; everything else is matched by position. For a table also the name
            of a column. If None, each text is a subject of its own.
        spans: n lists of the matches that a detector found in each text, such as ``{"start": 8,
            "end": 18, "type": "PERSON"}``, in characters, as JSON or not; None means no match. For
            a table also the name of a column, which is empty in the result.
        project: folder of the project with the parameters and the ledger (record of spent privacy
            budgets) to use. If None, the project around the current folder is used; outside of any
            project, the defaults and the ledger in your data folder. A ``Model`` that is loaded
            already may be given instead.
        model: the model: ``own``, which the project's run made, or the name of another model. If
            None, ``own`` is used if the project has run, else ``en``, which is logged.
        purpose: preserves more utility for a purpose, such as ``"sentiment"`` or ``"sentiment=2"``,
            or for several; a purpose is a name of `lexveil purpose list`, or a file.
        progress: function that is called with the number of finished texts and the number of all
            texts. While texts are counted, the number of all texts is None; after that, texts are
            rewritten. True shows a progress bar on standard error. An exception that the function
            raises ends the call; texts that were charged before stay charged.
        options: settings of the rewriting, as keyword arguments: ``protection``, or a
            ``mechanism``, a ``strategy`` and one of ``epsilon``, ``document_budget`` and
            ``recovery``, and those that `help(lexveil.privatize)` lists below. Messages go to the
            logger ``lexveil`` of ``logging``; ``quiet=True`` logs nothing of this call.

    Returns:
        The n rewritten texts, in the same type as the input and in the same order; the token log,
            which says what happened to each token; and the privacy record.

    Raises:
        RequestError: if the request contradicts itself, or a value is not a text. Nothing is spent
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
    """Describe how a file or a folder would be rewritten, without rewriting: nothing is written or
    spent.

    Args:
        source: JSON lines, CSV, TSV, text (each also compressed by gz or zst) or Parquet; a folder
            of such files; also in object storage, by an address (s3://, gs://, abfs://).
        show_examples: name the most frequent words that would stay unprotected or are unknown;
            these words are source text.
        project, model, purpose: as in ``privatize``.
        options: as in ``privatize`` (``quiet``, too), and the options of files, such as
            ``text_column``. A row is a document.

    Raises:
        RequestError: if the request contradicts itself, or the file cannot be read.
        MissingArtifactError: if the project has not run yet.
    """
    request = FileRequest.of(plain_options(options))
    if not isinstance(source, Path | str):
        kind = type(source).__name__
        raise RequestError(
            f"source: is a {kind}; give the path of a file or folder, or try lexveil.privatize "
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
    """Test statistically whether a mechanism has the privacy that it claims, on toy vocabularies,
    on words of a model, and in whole releases.

    The audit computes distances, distributions, budgets and sums of charges by code of its own. Its
    releases rewrite a toy project in a temporary folder with a ledger of its own. The verdict is
    violated, no violation found with power to see ``factor``, or inconclusive.

    Args:
        mechanism: a name of ``lexveil.MECHANISMS``.
        epsilon: the claimed epsilon of a token, in 1 / units of the metric; in releases, the base
            epsilon. The audit also tests a second epsilon, at which its tests have most power.
        project, model, purpose: as in ``privatize``.
        options: settings of the audit, as keyword arguments, which `help(lexveil.audit)` lists
            below.

    Raises:
        RequestError: if the request is out of range.
        MissingArtifactError: if the project has not run yet.
    """
    from lexveil.auditing import audit as auditing  # the import takes SciPy and compiled kernels

    request = AuditRequest.of(
        {"mechanism": mechanism, "epsilon": epsilon, "workers": 1, **plain_options(options)}
    )
    named = with_purposes(model, purpose)
    return auditing.audit(request, project=_model(project), model=named)


@contextmanager
def _watching(progress: Watch | bool) -> Iterator[Watch | None]:
    """Context manager that yields the function that receives the progress. True shows a progress
    bar, False shows nothing.
    """
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
    """Return options as plain JSON-like values; paths become strings."""
    return {
        name: str(value) if isinstance(value, Path) else value for name, value in options.items()
    }


@contextmanager
def renamed_fields(names: dict[str, str]) -> Iterator[None]:
    """Context manager in which error messages name the arguments of the called function, instead of
    the fields of the request.
    """
    try:
        yield
    except LexveilError as error:
        error.args = (error.told(lambda name: names.get(name, name)), *error.args[1:])
        raise
