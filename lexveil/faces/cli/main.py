"""The `lexveil` command: find the verb, parse the options by the signature of the verb's function,
call the function, and return its exit code.

Neither this module nor the modules of the verbs import anything heavy at the top, because `lexveil
--help` must answer at once.
"""

from __future__ import annotations

import contextlib
import inspect
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from typing import Any, NoReturn

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from lexveil.base.absent import take_process
from lexveil.base.errors import LexveilError, advised
from lexveil.base.logs import logger, messages_on_stderr
from lexveil.base.runtime.crash import hide_messages
from lexveil.base.runtime.graph_libraries import lacking
from lexveil.base.runtime.telemetry import turn_telemetry_off
from lexveil.faces.cli.options import option_name
from lexveil.faces.cli.streams import drop, end_messages, end_streams, prepare_streams

LOG = logger("lexveil.faces.cli")

ABOUT = """\
Rewrites text under metric differential privacy, word by word or collocation by collocation, with a
record of what is guaranteed and a ledger of what each person has spent. A model of general English
ships with it.

First steps, anywhere:

    lexveil inspect tickets.csv                 says what would happen, and writes nothing
    lexveil privatize tickets.csv -o out.csv    rewrites the texts; there is no number to choose

With your own corpus:

    lexveil init DIR && cd DIR && lexveil run && lexveil report --open

Exit codes: 0 done, 1 it ran and failed, 2 the request was wrong, 130 interrupted."""

# Verbs in the order of the help. The module of a verb, next to this one, has a function or an App
# with the name of the verb.
VERBS = {
    "texts": "privatize inspect explore calibrate audit",
    "ledger": "ledger",
    "service": "service",
    "model": "model purpose",
    "sentences": "sentences",
    "project": "init run report collocations recommend lineage release schedule ui",
    "data": "data",
}

APP = App(
    name="lexveil",
    help=ABOUT,
    help_format="markdown",
    version=lambda: f"lexveil {version('lexveil')}",
    # If an option is repeated, the last value counts. Help shows only defaults that carry
    # information.
    default_parameter=Parameter(
        negative="", allow_repeating=True, show_default=lambda value: value or None
    ),
)
for _module, _names in VERBS.items():
    for _name in _names.split():
        APP.command(f"lexveil.faces.cli.{_module}:{_name}", name=_name, sort_key=len(list(APP)))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 ran and failed, 2 the request was wrong,
    130 interrupted.
    """
    prepare_streams()
    take_process()
    turn_telemetry_off()
    hide_messages()
    argv = list(sys.argv[1:] if argv is None else argv)
    verb = " ".join(("lexveil", *argv[:1]))
    with _ended_in_order(), messages_on_stderr():
        try:
            code = _answer(argv)
            if why := end_streams():
                LOG.error(
                    f"{verb}: the command is done, but its result cannot be written to "
                    f"standard output ({why})"
                )
            return code or int(bool(why))
        except LexveilError as error:
            return fail(verb, error)
        except ModuleNotFoundError as error:
            if missing := lacking(error.name):
                return fail(verb, missing)
            raise
        except KeyboardInterrupt:
            LOG.error(f"{verb}: interrupted")
            return 130
        except BrokenPipeError:  # `lexveil ... | head`
            drop(sys.stdout)
            return 141
        except OSError as error:
            message = str(error)
            # the error is not about a disk, so it is a bug; let the traceback through
            if advised(message) == message:
                raise
            LOG.error(f"{verb}: {advised(message)}")
            return 1
        finally:
            end_messages()


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """Make SIGTERM end a command in the same way as Ctrl-C, so that half-written files are removed.
    Commands that run a server handle SIGTERM themselves.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _answer(argv: list[str]) -> int:
    command, bound = parse(argv)
    return int(command(*bound.args, **bound.kwargs) or 0)


def parse(argv: Sequence[str]) -> tuple[Callable[..., Any], inspect.BoundArguments]:
    """Parse a command line, and return the function of its verb and the function's arguments.

    Raises:
        SystemExit: with code 2, if the request is wrong; one line on stderr states the reason.
    """
    if argv and argv[0] in ("--help", "-h"):
        for name in " ".join(VERBS.values()).split():
            APP[name]  # import the module now, so that the help can describe it
    chain, apps, rest = APP.parse_commands(argv)
    if apps[-1].default_command is None and not rest:
        _refuse(chain, f"the following arguments are required: {'ACTION' if chain else 'COMMAND'}")
    try:
        command, bound, _ = APP.parse_args(argv, exit_on_error=False, print_error=False)
    except UnusedCliTokensError as error:
        unused = " ".join(error.unused_tokens or ())
        _refuse(
            chain,
            f"no option takes {unused}; write a value after the name of its option, such as -o OUT",
        )
    except CycloptsError as error:
        _refuse(chain, str(error))
    return command, bound


def _refuse(chain: Sequence[str], message: str) -> NoReturn:
    program = " ".join(("lexveil", *chain))
    LOG.error(f"{program}: {' '.join(message.split())}; see `{program} --help`")
    raise SystemExit(2)


def fail(verb: str, error: LexveilError) -> int:
    """Print an error as one line on standard error, and return its exit code."""
    LOG.error(f"{verb}: {' '.join(error.told(option_name).split())}")
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
