"""The processes of a service: a parent process that holds the socket and replaces workers, and the
worker processes that answer requests.
"""

from __future__ import annotations

import logging
import logging.config
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from uvicorn import Config
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from lexveil.base.errors import LexveilError, RequestError
from lexveil.base.runtime.crash import crash_report, hide_messages
from lexveil.base.runtime.project import ONE_THREAD
from lexveil.faces.service.app import create_app
from lexveil.faces.service.cautions import caution_of_meaning
from lexveil.faces.service.first_worker import FirstWorker, forked
from lexveil.faces.service.gate import METRICS_FOLDER
from lexveil.faces.service.rewriting import TextRewriter
from lexveil.faces.service.terms import VARIABLE, Terms
from lexveil.faces.service.warm_model import WarmModel
from lexveil.io.request import SENTENCES, Request
from lexveil.release.engine.engine import WordEngine
from lexveil.release.settings import document_budget, resolve_settings

LOG = logging.getLogger("lexveil.faces.service")
CONNECTIONS = 512  # largest number of connections of a worker; further connections are refused
# environment variable of a worker that replaces another worker
REPLACES = "LEXVEIL_SERVICE_REPLACES"
# octaves below the largest epsilon of a token, which cover texts of up to about 2^4 times the
# average length
OCTAVES = 5
STEPS_OF_AN_OCTAVE = 4  # number of points of the curve per octave
IDLE = 19  # niceness, so that every other process takes precedence
WRONG = RequestError.exit_code  # exit code of a worker that cannot serve with its settings
# seconds within which a new worker must be ready before it replaces the old one (SIGHUP)
START = 120


def serve(terms: Terms) -> int:
    """Run the service until SIGTERM or Ctrl-C, after which running requests are finished. SIGHUP
    replaces the workers one by one.

    Returns:
        The exit code: 1 if workers could not start, 2 if the settings were the reason.
    """
    if terms.is_open:
        LOG.warning(
            f"--host {terms.host}: other machines can reach this service, and it speaks "
            "HTTP without TLS, so anyone on the network path can read texts and API keys; "
            "put a reverse proxy with TLS before it, or use it only in a closed network"
        )
    with tempfile.TemporaryDirectory(prefix="lexveil-service-") as folder:
        Path(folder, "metrics").mkdir()
        # set this before workers import the client library
        os.environ[METRICS_FOLDER] = str(Path(folder, "metrics"))
        # requests and computations that run at the same time share the cores
        os.environ |= ONE_THREAD
        os.environ[VARIABLE] = terms.model_dump_json()
        config = Config(
            "lexveil.faces.service.server:worker",
            factory=True,
            host=terms.host,
            port=terms.port,
            workers=terms.workers,
            log_config=log_config(),
            access_log=False,  # its log lines contain whole addresses
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=terms.stop_seconds,
            timeout_worker_healthcheck=START,
            ws="none",
            lifespan="off",
        )
        listening = bound(config, f"--host {terms.host} --port {terms.port}")
        # Expected recoveries are computed in a separate process, because they take too long for an
        # answer. For sentences nothing is computed.
        computing = forked(compute_meanings, terms)
        computing.daemon = True
        is_computed = terms.is_complete and terms.fixed["strategy"] != SENTENCES
        if is_computed:
            computing.start()
        parent = Supervisor(config, [listening])
        try:
            parent.run()
        finally:
            listening.close()
            os.environ.pop(REPLACES, None)
            if is_computed:
                computing.kill()
        ends = {process.exitcode for process in parent.processes}
        return WRONG if WRONG in ends else int(STARTUP_FAILURE in ends)


def bound(config: Config, asked: str) -> socket.socket:
    """Open and return the socket to listen at.

    Args:
        asked: the command-line options that set the address, for error messages.

    Raises:
        RequestError: if the socket cannot be opened.
    """
    try:
        return config.bind_socket()
    except SystemExit:  # uvicorn has logged the reason
        raise RequestError(f"{asked}: the port cannot be opened; choose another port") from None


def compute_meanings(terms: Terms) -> None:
    """Compute, once per machine, the shares of words that an adversary is expected to guess at the
    epsilons of the service. The largest epsilon of a token comes first, because short texts have
    it.
    """
    hide_messages()
    logging.config.dictConfig(log_config())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C, and ends this process
    os.nice(IDLE)
    try:
        model = WarmModel.find(terms.model)
        engine = WordEngine(resolve_settings(Request.of(terms.fixed), model), model)
        budget = document_budget(engine.settings, model)
        most = min(budget.cap, budget.total)
        for step in range(OCTAVES * STEPS_OF_AN_OCTAVE + 1):
            meaning = engine.meaning(most * 2.0 ** (-step / STEPS_OF_AN_OCTAVE), most)
            is_said = engine.settings.protection is not None or step > 0
            if not is_said and (caution := caution_of_meaning(meaning)) is not None:
                LOG.warning(caution)
            if engine.settings.protection is not None:  # every token has the largest epsilon
                return
    except LexveilError as error:
        LOG.warning(f"the expected recovery of each epsilon is not computed: {error}")


class Supervisor(Multiprocess):
    """Parent process that replaces worker processes that have ended.

    The base class asks each worker in turn and waits for the answer. A worker that starts slowly,
    or is killed meanwhile, would keep the base class from replacing others and from handling
    SIGTERM.
    """

    def init_processes(self) -> None:
        """Start the first workers. They may warm up while they answer requests. Later workers
        replace other workers.
        """
        for _ in range(self.processes_num):
            self.processes.append(FirstWorker(self.config, self.sockets))
            self.processes[-1].start()
        os.environ[REPLACES] = "1"

    def terminate_all(self) -> None:
        """Ask the workers to end, and close the socket. While the workers finish their requests, a
        new connection is refused and does not wait.
        """
        super().terminate_all()
        for listening in self.sockets:
            listening.close()

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have ended. Stop the service if a worker could not start."""
        for place, process in enumerate(self.processes):
            if self.should_exit.is_set() or process.exitcode is None:
                continue
            process.kill()  # closes its pipes
            process.join()
            if process.exitcode in (STARTUP_FAILURE, WRONG):
                LOG.error("worker %s could not start", process.pid)
                self.should_exit.set()
                return
            LOG.warning("worker %s ended with %s and is replaced", process.pid, process.exitcode)
            self.processes[place] = Process(self.config, self.sockets)
            self.processes[place].start()


def worker() -> FastAPI:
    """Create the application of a worker process, with the service's terms from the environment."""
    hide_messages()
    _end_with_parent()
    terms = Terms.model_validate_json(os.environ[VARIABLE])
    try:
        rewriter = TextRewriter(terms, WarmModel.find(terms.model))
        is_warm = terms.wait_ready or REPLACES in os.environ
        if is_warm:
            rewriter.warm_up()
    except Exception as error:
        sys.exit(_failed(error))
    app = create_app(rewriter)
    if not is_warm:
        app.state.queue.begin(lambda: _warm_up(rewriter))
    return app


def _warm_up(rewriter: TextRewriter) -> None:
    """Load and compile everything that requests need, in the thread that will answer the
    requests.
    """
    try:
        rewriter.warm_up()
    except Exception as error:
        os._exit(_failed(error))  # ends the whole process from a thread


def _failed(error: Exception) -> int:
    """Log why a worker cannot start. Return the exit code, which tells the parent process whether
    another worker would fail for the same reason.
    """
    said = crash_report(error)
    if isinstance(error, LexveilError):
        said = error.told(lambda name: f"--{name.replace('_', '-')}")
    LOG.error(f"lexveil service: {said}")
    return WRONG if isinstance(error, RequestError) else STARTUP_FAILURE


def _end_with_parent() -> None:
    """End this worker process in the usual order when its parent process is killed. Otherwise the
    worker would keep the socket open for ever.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


class Quiet(logging.Formatter):
    """Log formatter that writes the type and the place of an exception, but never its message,
    which may quote a text.
    """

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name is defined by logging
        """Return the traceback of an exception without its message."""
        return crash_report(ei[1])


def log_config(level: str = "INFO") -> dict[str, object]:
    """Return the configuration for ``logging.config``: all messages go to standard error, with the
    time in UTC.

    The configuration has no objects of this module, because a forked worker would import the module
    for them before it has its environment.
    """
    logger = {"handlers": ["stderr"], "level": level, "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "quiet": {
                "()": f"{__name__}.Quiet",
                "format": "%(asctime)s %(process)d %(levelname)s %(message)s",
                "datefmt": "%FT%T%z",
            }
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "quiet",
                "stream": "ext://sys.stderr",
            }
        },
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {"uvicorn": logger, "lexveil": logger},
    }
