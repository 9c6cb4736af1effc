"""The `lexveil` command: calls what was asked for and prints what comes back; no logic of its own.

Nothing heavy is imported up here: `lexveil --help` must answer at once.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from lexveil import paths
from lexveil.cli.options import make_parser
from lexveil.errors import LexveilError, RequestError, advised
from lexveil.runtime.project import build_lock, find_root, prepare


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 ran and failed, 2 the request was wrong, 130 interrupted."""
    arguments = make_parser().parse_args(argv)
    try:
        return int(CALLS[arguments.command](arguments))
    except LexveilError as error:
        return _fail(arguments, error)
    except KeyboardInterrupt:
        print(f"lexveil {arguments.command}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `lexveil ... | head`
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        message = str(error)
        if advised(message) == message:  # not of a disk: a mistake of ours, which is to be seen whole
            raise
        print(f"lexveil {arguments.command}: {advised(message)}", file=sys.stderr)
        return 1


def _fail(arguments: argparse.Namespace, error: LexveilError) -> int:
    print(f"lexveil {arguments.command}: {' '.join(str(error).split())}", file=sys.stderr, flush=True)
    return error.exit_code


def _in_project() -> Path:
    root = find_root(Path.cwd())
    prepare(root)
    return root


def _run(arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    params = arguments.params and arguments.params.resolve()
    _in_project()
    from lexveil.config import load_params

    load_params(params or paths.PARAMS)  # before anything else: a mistyped key must not cost a run
    from flows.prefect_server import ServerLost

    try:
        with build_lock(arguments.wait):
            if params:
                _replace(paths.PARAMS, params.read_bytes())
            return _build(arguments, started)
    except ServerLost as error:
        code = _fail(arguments, error)
        os._exit(code)  # else Prefect's threads would try for minutes to reach it


def _build(arguments: argparse.Namespace, started: float) -> int:
    from flows.data_bootstrap import ensure_data
    from flows.display import watcher
    from flows.prefect_server import api

    # Prefect's own log goes to its server; the console belongs to the display.
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    logging.raiseExceptions = False  # a line that the server did not take is no line for the console either
    view = watcher(arguments.verbose)
    try:
        ensure_data(view)
        with api(meanwhile=lambda: import_module("flows.build")) as url:
            return int(import_module("flows.build").run(url, view, arguments.keep_going, started))
    finally:
        view.close()


def _replace(path: Path, content: bytes) -> None:
    if not path.exists() or path.read_bytes() != content:
        partial = path.with_name(f".{path.name}.partial")
        partial.write_bytes(content)
        os.replace(partial, path)


def _place(given: str) -> Path | str:
    """A path, made absolute because the command works in the project's folder; or an address, as it is."""
    from lexveil.data.remote import is_address

    return given if is_address(given) else Path(given).absolute()


def _corpus(given: Sequence[str]) -> Path | str | dict[str, Path | str] | None:
    """One file, folder or address, or several by name, as --corpus [NAME=]PATH gives them."""
    if not given:
        return None
    if len(given) == 1 and ("=" not in given[0] or isinstance(_place(given[0]), str) or Path(given[0]).exists()):
        return _place(given[0])
    sources: dict[str, Path | str] = {}
    for one in given:
        name, equals, path = one.partition("=")
        if not equals or not name or not path:
            raise RequestError(f"--corpus {one}: several need a name each: --corpus web=PATH tickets=PATH")
        if name in sources:
            raise RequestError(f"--corpus {one}: the name {name} is there twice; give files of one source as a folder")
        sources[name] = _place(path)
    return sources


def _data(arguments: argparse.Namespace) -> int:
    corpus = _corpus(arguments.corpus or ()) if arguments.action == "use" else None
    documents = [path.absolute() for path in arguments.documents or ()] if arguments.action == "use" else []
    root = _in_project()
    from lexveil.data import data_store
    from lexveil.data.corpus_sampling import SampleRequest

    if arguments.action == "status":
        report = data_store.status(root)
    else:
        with build_lock(arguments.wait):
            report = (
                data_store.use_default(root)
                if arguments.action == "default"
                else data_store.use(
                    corpus,
                    documents,
                    arguments.text_column,
                    root,
                    SampleRequest(arguments.max_documents, arguments.share, arguments.shards),
                )
            )
    _print(report, arguments.json)
    return 0


def _privatize(arguments: argparse.Namespace) -> int:
    streams = ("-",)
    source, target = (
        Path(path).absolute() if path not in streams else path for path in (arguments.input, arguments.output)
    )
    _in_project()
    from lexveil.accounting.record import statement
    from lexveil.privatization.file_adapter import privatize_file
    from lexveil.privatization.two_passes import said_of

    record = privatize_file(
        source, target, formulas=arguments.formulas, on_exhausted=arguments.on_exhausted, **_rewriting(arguments)
    )
    stream = sys.stderr if target in streams else sys.stdout  # standard output may be the text itself
    if arguments.json:
        _print(record, True, stream=stream)
        return 0
    print("\n".join([*statement(record), *said_of(record)]), file=stream)
    if target not in streams:
        print(f"record: {arguments.output}.record.json", file=stream)
    return 0


def _rewriting(arguments: argparse.Namespace) -> dict[str, Any]:
    """How texts are to be rewritten, as options say it."""
    return {
        "mechanism": arguments.mechanism,
        "strategy": arguments.strategy,
        "epsilon": arguments.epsilon,
        "document_budget": arguments.document_budget,
        "text_column": tuple(dict.fromkeys(arguments.text_column or ("text",))),
        "subject_column": arguments.subject_column,
        "form": arguments.format,
        "consistent": arguments.consistent == "document",
        "mode": arguments.mode or ("release" if arguments.seed is None else "experiment"),
        "seed": arguments.seed,
        "keep_layout": arguments.keep_layout,
        "stopwords": arguments.stopwords,
        "punctuation": arguments.punctuation,
        "oov": arguments.oov,
        "workers": arguments.workers,
    }


def _inspect(arguments: argparse.Namespace) -> int:
    source = arguments.input if arguments.input == "-" else Path(arguments.input).absolute()
    _in_project()
    from lexveil.config import load_params
    from lexveil.privatization.inspection import as_text, inspect

    how, grid = _rewriting(arguments), load_params().grid
    how["mechanism"] = how["mechanism"] or grid.mechanisms[0]
    how["strategy"] = how["strategy"] or ("S3" if "S3" in grid.strategies else grid.strategies[0])
    if how["epsilon"] is None and how["document_budget"] is None:
        how["epsilon"] = sorted(grid.epsilons)[len(grid.epsilons) // 2]
    if "none" in (how["mechanism"], how["strategy"]):
        raise RequestError("inspect: none leaves texts as they are; name a mechanism and a strategy, or neither")
    _print(inspect(source, show_examples=arguments.show_examples, **how), arguments.json, as_text)
    return 0


def _embeddings(arguments: argparse.Namespace) -> int:
    file = arguments.file.absolute() if arguments.action == "add" else None
    root = _in_project()
    from lexveil.data import external_embeddings

    if file is None:
        _print(external_embeddings.listed(root), arguments.json)
        return 0
    with build_lock(arguments.wait):
        _print(external_embeddings.add(arguments.name, file, root, arguments.max_words), arguments.json)
    return 0


def _audit(arguments: argparse.Namespace) -> int:
    out = arguments.out and arguments.out.absolute()
    _in_project()
    from lexveil.auditing import command as task

    with contextlib.redirect_stdout(sys.stderr):  # progress; standard output is the result
        result = task.audit(
            arguments.mechanism,
            arguments.epsilon,
            words=arguments.words,
            samples=arguments.samples,
            strategy=arguments.strategy,
            mode=arguments.mode,
            confidence=arguments.confidence,
            out=out,
        )
    _print(task.as_json(result) if arguments.json else result, arguments.json, task.as_table)
    return 1 if result["violation"] else 0


def _tune(arguments: argparse.Namespace) -> int:
    words, out = (path and path.absolute() for path in (arguments.words, arguments.output))
    _in_project()
    from lexveil.tuning import tune as task

    with contextlib.redirect_stdout(sys.stderr):  # progress; standard output is the result
        result = task.tune(
            arguments.mechanism,
            max_loss=arguments.max_loss,
            compare=arguments.compare,
            words=words,
            space=arguments.space,
            space_of=arguments.space_of,
            epsilons=arguments.epsilons,
            t=arguments.t,
            n_runs=arguments.runs,
            n_draws=arguments.draws,
            seed=arguments.seed,
            out=out,
        )
    _print(result, arguments.json, task.as_table)
    if out and not arguments.json:
        print(f"written: {out}")
    return 1 if any(one["none"] for one in result["chosen"].values()) else 0


def _recommend(arguments: argparse.Namespace) -> int:
    _in_project()
    from lexveil.tuning import recommend as task

    result = task.recommend(
        min_utility=arguments.min_utility,
        max_attack=arguments.max_attack,
        dataset=arguments.dataset,
        setting=arguments.setting,
    )
    _print(result, arguments.json, task.as_text)
    return 0 if any(one["fitting"] for one in result["datasets"].values()) else 1


def _collocations(arguments: argparse.Namespace) -> int:
    _in_project()
    from lexveil.collocations import lookup as task

    result = task.look_up(
        arguments.text,
        arguments.top,
        arguments.word,
        by=arguments.by,
        length=arguments.length,
        min_count=arguments.min_count,
        limit=arguments.limit,
    )
    _print(result, arguments.json, task.as_text)
    return 0


def _report(arguments: argparse.Namespace) -> int:
    root = _in_project()
    file = paths.REPORT / ("metrics.json" if arguments.json else "index.html")
    if not file.exists():
        raise RequestError(f"{file} is not there yet; `lexveil run` makes it")
    # A check that fails takes its record away and stops what comes after, so what is there is of an earlier run.
    missing = [
        name
        for name in ("corpus", "collocations", "coverage", "outputs")
        if not (paths.CHECKS / f"{name}.json").exists()
    ]
    if missing:
        print(
            f"lexveil report: of an earlier run; since then {', '.join(missing)} did not pass its check",
            file=sys.stderr,
        )
    if arguments.json:
        sys.stdout.write(file.read_text(encoding="utf-8"))
        return 0
    print(root / file)
    if arguments.open:
        import webbrowser

        if not webbrowser.open((root / file).as_uri()):
            raise LexveilError(f"no browser could be opened; open {root / file} yourself")
    return 0


def _ui(arguments: argparse.Namespace) -> int:
    _in_project()
    from flows.prefect_server import serve

    try:
        return serve(arguments.port)
    except KeyboardInterrupt:
        return 0  # that is how one ends it


def _serve(arguments: argparse.Namespace) -> int:
    _in_project()
    from flows.deployments import read_deployments, serve
    from flows.prefect_server import lasting_api

    deployments = read_deployments()  # before anything is started
    with lasting_api(arguments.port) as (url, server):
        return serve(url, server, deployments)


def _lineage(arguments: argparse.Namespace) -> int:
    # Not resolve(): a link into DVC's cache is not followed.
    asked = Path(os.path.abspath(arguments.artifact))  # noqa: PTH100
    root = _in_project()
    form = "json" if arguments.json else arguments.format
    from lexveil.lineage import release_lineage, trace, verify

    record = release_lineage.record_beside(asked)
    if record is None and not asked.is_relative_to(root):
        raise RequestError(
            f"{arguments.artifact} is outside the project {root}, and no record of `lexveil privatize` is beside it"
        )
    artifact = asked.relative_to(root) if record is None else asked
    if arguments.verify:
        if form == "mermaid":
            raise RequestError("--verify has no --format mermaid; give text or json")
        checked = (
            verify.verify(artifact, arguments.at)
            if record is None
            else verify.verify_released(artifact, record, arguments.at)
        )
        print("\n".join(verify.as_text(checked) if form == "text" else trace.as_json(checked)))
        return 0 if checked["holds"] else 1
    found = (
        trace.lineage(artifact, arguments.at)
        if record is None
        else release_lineage.released(artifact, record, arguments.at)
    )
    print("\n".join(trace.FORMS[form](found)))
    return 0


def _gc(arguments: argparse.Namespace) -> int:
    root = _in_project()
    from lexveil.lineage.gc import as_text, collect

    with build_lock(arguments.wait):
        report = collect(root, arguments.remove)
    _print(report, arguments.json, as_text)
    return 0


def _release(arguments: argparse.Namespace) -> int:
    _in_project()
    with build_lock(arguments.wait):
        report = import_module("flows.archive_release").release(arguments.dry_run)
    _print(report.as_dict() if arguments.json else report, arguments.json, type(report).as_text)
    return 0


def _ledger(arguments: argparse.Namespace) -> int:
    records = [path.absolute() for path in arguments.record] if arguments.action == "verify" else []
    target = arguments.output if arguments.action == "export" else None
    target = Path(target).absolute() if target not in (None, "-") else target
    _in_project()
    from lexveil.config import load_params

    params = load_params().release
    if arguments.action == "verify":
        from lexveil.ledger import verification

        checked = verification.verify(params.ledger, records)
        _print(checked, arguments.json, verification.as_text)
        return 0 if checked["holds"] else 1
    from lexveil.ledger import statement
    from lexveil.ledger.ledger import Ledger

    with Ledger.open(params.ledger, None, make=False) as ledger:
        for line in statement.recovered_as_text(ledger.recovered):
            print(line, file=sys.stderr)
        if target is not None:
            n_subjects = statement.export(ledger, target)
            print(f"{n_subjects:,} subjects written", file=sys.stderr)
            return 0
        if arguments.subject is not None:
            one = statement.subject(ledger, arguments.subject, params.cap)
            _print(one, arguments.json, statement.subject_as_text)
        else:
            found = statement.summary(ledger, params.cap, arguments.top or 0)
            _print(found, arguments.json, lambda summary: statement.as_text(summary, arguments.top or 0))
    return 0


def _print(
    value: Any, as_json: bool, as_text: Callable[[Any], Iterable[str]] | None = None, *, stream: Any = None
) -> None:
    """Write a result as JSON, or as the lines that ``as_text`` makes of it; without it, as `key: value`."""
    stream = stream or sys.stdout
    if as_json:
        print(json.dumps(value, indent=2, ensure_ascii=False), file=stream)
    else:
        for line in (as_text or _lines)(value):
            print(line, file=stream)


def _lines(value: Any, indent: str = "") -> list[str]:
    """Write nested values as indented `key: value` lines."""
    lines = []
    items = value.items() if isinstance(value, dict) else (("-", item) for item in value)
    for key, inner in items:
        if inner is None or inner in ({}, []):
            continue
        if isinstance(inner, dict | list):
            lines += [f"{indent}{key}:", *_lines(inner, indent + "  ")]
        else:
            if isinstance(inner, bool):
                shown = "yes" if inner else "no"
            else:
                shown = f"{inner:,}" if isinstance(inner, int) else str(inner)
            lines.append(f"{indent}{key}{'' if key == '-' else ':'} {shown}")
    return lines


CALLS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "data": _data,
    "privatize": _privatize,
    "inspect": _inspect,
    "report": _report,
    "ui": _ui,
    "serve": _serve,
    "lineage": _lineage,
    "gc": _gc,
    "release": _release,
    "ledger": _ledger,
    "embeddings": _embeddings,
    "audit": _audit,
    "tune": _tune,
    "recommend": _recommend,
    "collocations": _collocations,
}


if __name__ == "__main__":
    sys.exit(main())
