"""The `lexveil` command: finds the verb, reads its options by its signature, calls it, and ends with its exit code.

Nothing heavy is imported up here or by the modules of the verbs: `lexveil --help` must answer at once.
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from cyclopts import App, CycloptsError, Parameter
from cyclopts.exceptions import (
    CoercionError,
    MissingArgumentError,
    UnknownCommandError,
    UnusedCliTokensError,
    ValidationError,
)

from lexveil.cli import help as help_text
from lexveil.cli.rewriting import option_name
from lexveil.errors import LexveilError, advised
from lexveil.runtime.crash import hide_messages
from lexveil.runtime.graph_libraries import lacking

# Each is a module beside this one, with a function or an App of its name; in the order of the help.
VERBS = (
    "init",
    "run",
    "data",
    "privatize",
    "inspect",
    "explore",
    "report",
    "ui",
    "schedule",
    "service",
    "lineage",
    "gc",
    "release",
    "ledger",
    "embeddings",
    "audit",
    "calibrate",
    "recommend",
    "collocations",
    "model",
    "purpose",
)

APP = App(
    name="lexveil",
    help_flags=[],  # both are answered here
    version_flags=[],
    default_parameter=Parameter(negative="", allow_repeating=True),  # of what is given twice, the last counts
)
for _name in VERBS:
    APP.command(f"lexveil.cli.{_name}:{_name}", name=_name)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 ran and failed, 2 the request was wrong, 130 interrupted."""
    hide_messages()
    argv = list(sys.argv[1:] if argv is None else argv)
    with _ended_in_order():
        return _coded(argv)


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, so that what is half-written goes; those that serve have their own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _coded(argv: list[str]) -> int:
    verb = " ".join(("lexveil", *argv[:1]))
    try:
        return _answer(argv)
    except LexveilError as error:
        return fail(verb, error)
    except ModuleNotFoundError as error:
        if missing := lacking(error.name):
            return fail(verb, missing)
        raise
    except KeyboardInterrupt:
        print(f"{verb}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `lexveil ... | head`
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        message = str(error)
        if advised(message) == message:  # not about a disk: a bug, so let the traceback through
            raise
        print(f"{verb}: {advised(message)}", file=sys.stderr)
        return 1


def _answer(argv: list[str]) -> int:
    if argv[:1] == ["--version"]:
        print(f"lexveil {_version()}")
        if argv[1:] in (["-v"], ["--verbose"]):
            from lexveil.embeddings.exact_search import search_way

            print(f"search of noisy vectors: {search_way()}")
        return 0
    options = argv[: argv.index("--")] if "--" in argv else argv
    if "--help" in options or "-h" in options:
        chain, apps, _ = APP.parse_commands([word for word in argv if word not in ("--help", "-h")])
        print(help_text.text_of(apps[-1], chain, APP.default_parameter))
        return 0
    command, bound = parse(argv)
    return int(command(*bound.args, **bound.kwargs))


def parse(argv: Sequence[str]) -> tuple[Callable[..., Any], inspect.BoundArguments]:
    """Return the function that a command line asks for and its arguments.

    Raises:
        SystemExit: with code 2, if the request is wrong; one line on stderr says why.
    """
    chain, apps, _ = APP.parse_commands(argv)
    program = " ".join(("lexveil", *chain))
    try:
        if apps[-1].default_command is None and not argv[len(chain) :]:
            _refuse(program, f"the following arguments are required: {'ACTION' if chain else 'COMMAND'}")
        command, bound, _ = APP.parse_args(argv, exit_on_error=False, print_error=False, verbose=False)
    except CycloptsError as error:
        _refuse(program, _message(error))
    return command, bound


def _message(error: CycloptsError) -> str:
    if isinstance(error, ValidationError) and error.group is not None:
        return error.exception_message
    if isinstance(error, MissingArgumentError) and error.argument is not None and not error.argument.tokens:
        return f"the following arguments are required: {error.argument.name}"
    if isinstance(error, CoercionError) and error.token is not None and error.msg is not None:
        name = error.token.keyword or (error.argument.name if error.argument else "")
        return f"argument {name}: {error.msg}"
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        word = error.unused_tokens[0]
        near = difflib.get_close_matches(word, VERBS, n=1)
        return f"there is no command {word!r}" + (f"; did you mean {near[0]}?" if near else "")
    if isinstance(error, UnusedCliTokensError):
        return f"unrecognized arguments: {' '.join(error.unused_tokens or ())}"
    return str(error).strip().rstrip(".")


def _refuse(program: str, message: str) -> NoReturn:
    print(f"{program}: {' '.join(message.split())}; see `{program} --help`", file=sys.stderr)
    raise SystemExit(2)


def fail(verb: str, error: LexveilError) -> int:
    """Print an error as one line and return its exit code."""
    print(f"{verb}: {' '.join(error.told(option_name).split())}", file=sys.stderr, flush=True)
    return error.exit_code


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("lexveil")
    except PackageNotFoundError:  # run from a folder, not installed
        return "unknown"


if __name__ == "__main__":
    sys.exit(main())
