"""`lexveil service`, which runs an HTTP server that rewrites texts for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from lexveil.base.errors import RequestError
from lexveil.base.logs import logger
from lexveil.core.protection import DEFAULT as DEFAULT_LEVEL
from lexveil.faces.cli.options import (
    CHOSEN,
    ChosenModel,
    Fixed,
    Json,
    actions,
    options_of,
    requested,
    written,
)
from lexveil.faces.cli.output import anywhere, show
from lexveil.faces.service.terms import Terms, fixed_settings
from lexveil.io.request import BUDGETS, OF_SENTENCES, SENTENCES, Request

LOG = logger(__name__)

if TYPE_CHECKING:

    class TermOptions: ...  # noqa: D101
else:
    TermOptions = options_of(Terms, ("model", "fixed"))

service = actions("service")
key = actions(
    "key",
    "Administer the API keys of a service, in a file of hashes. A key is shown once, when "
    "it is created.",
)
service.command(key)

KeysFile = Annotated[Path, Parameter(metavar="FILE", help="file of the API keys")]
KeyName = Annotated[str, Parameter(name="NAME", help="name of the key, for logs and the ledger")]
LIBRARIES = {
    "fastapi": "fastapi",
    "uvicorn": "uvicorn",
    "prometheus_client": "prometheus-client",
    "jinja2": "jinja2",
}


@service.default
def serve(
    *,
    project: Annotated[str | None, Parameter(metavar="DIR")] = None,
    how: Fixed = Fixed(),  # frozen  # noqa: B008
    words: ChosenModel = CHOSEN,
    limits: TermOptions = TermOptions(),  # noqa: B008
) -> int:
    """Rewrite texts for programs, over HTTP; each request is charged to the ledger before it is
    answered.

    Serves POST /v1/privatize, POST /v1/inspect, GET /v1/health, GET /v1/ready, GET /v1/openapi.json
    and GET /metrics until SIGTERM or Ctrl-C; running requests are answered first.

    Settings given here are fixed: requests leave them out, and a request for another value is
    refused. Requests choose the other settings, unless mechanism, strategy and a budget are given,
    or a level of protection, or strategy S5: then everything is fixed. Without any of these,
    protection balanced is fixed. Logs go to standard error and hold no texts. SIGHUP replaces the
    workers one by one; a worker that dies is replaced. TLS is the job of a reverse proxy.
    docs/how-to/service.md describes requests and limits.

        lexveil service
        lexveil service --protection strong
        lexveil service --mechanism tem --strategy S3 --protection strong
        lexveil service --strategy S5 --purpose sentiment=3
        lexveil service key add billing --keys keys.json
        lexveil service --keys keys.json --host 0.0.0.0 --allowed-host texts.example.org --workers 2

    Args:
        project: folder of the project whose parameters, ledger and model are used (default: the one
            around the current folder, else yours)
    """
    require_libraries()
    from lexveil.faces.service.first_worker import preload_workers

    preload_workers()
    keys = written(limits).get("keys")
    of_command = {
        "model": words.name,
        "fixed": _fixed(how),
        "keys": keys and str(Path(str(keys)).absolute()),
    }
    if project is not None:
        _change_into(project)
    terms = requested(limits, Terms, **of_command)
    anywhere()
    from lexveil.faces.service import server
    from lexveil.faces.service.cautions import caution_of_terms
    from lexveil.faces.service.rewriting import check_start
    from lexveil.io.artifacts.model import Model

    model = Model.load(name=words.name)
    # A worker that starts later answers with the same model, even if a new model was built
    # meanwhile.
    base, plus, purposes = (words.name or "").partition("+")
    if base:
        LOG.info(f"using the {model.described}")
    pinned = f"{base or model.base_name}{plus}{purposes}"
    check_start(terms, model)
    if (caution := caution_of_terms(terms, model)) is not None:
        LOG.info(caution)
    return server.serve(terms.model_copy(update={"model": pinned}))


def _fixed(how: Fixed) -> dict[str, object]:
    """Return the settings that the operator fixes for all requests: the given settings and, if no
    budget is given, the protection level balanced.
    """
    fixed = written(how)
    if fixed.get("strategy") == SENTENCES:
        return _fixed_sentences(fixed)
    # this refuses options of sentences without their strategy
    Request.of({name: fixed[name] for name in OF_SENTENCES if name in fixed}, written=True)
    if "none" in (fixed.get("mechanism"), fixed.get("strategy")):
        raise RequestError(
            "the mechanism or strategy `none` leaves texts unchanged; name a mechanism and "
            "a strategy, or neither"
        )
    if "max_token_epsilon" not in fixed and not set(BUDGETS) & set(fixed):
        fixed["protection"] = DEFAULT_LEVEL
    if "protection" in fixed:
        fixed = {
            name: Request.model_fields[name].default for name in ("mechanism", "strategy")
        } | fixed
    return fixed_settings(fixed)


def _fixed_sentences(fixed: dict[str, object]) -> dict[str, object]:
    """Return the settings that are fixed for all requests if texts are replaced by sentences: the
    given settings and the mechanism. Requests cannot change omitted settings either.
    """
    if "bank" in fixed:
        fixed["bank"] = str(Path(str(fixed["bank"])).absolute())
    request = Request.of(fixed, written=True)
    return {name: getattr(request, name) for name in (*fixed, "mechanism")}


@key.command
def add(
    name: KeyName, /, *, keys: KeysFile, role: Literal["privatize", "metrics"] = "privatize"
) -> None:
    """Create a key and print it once. The file stores only its hash. A running service accepts the
    key at once.

    Args:
        role: privatize, for texts; metrics, for GET /metrics
    """
    from lexveil.faces.service.keys import add_key

    secret = add_key(keys, name, role)
    LOG.info("store the key now, because it is not shown again")
    print(secret)


@key.command
def remove(name: KeyName, /, *, keys: KeysFile) -> None:
    """Remove a key. A running service refuses the key from the next request on."""
    from lexveil.faces.service.keys import remove_key

    remove_key(keys, name)


@key.command(name="list")
def list_keys(*, keys: KeysFile, json: Json = False) -> None:
    """List the names, roles and ages of the keys."""
    from lexveil.faces.service.keys import read_keys

    show([key.model_dump(exclude={"sha256"}) for key in read_keys(keys)], json)


def require_libraries() -> None:
    """Check that the libraries of the optional extra `service` are installed.

    Raises:
        RequestError: if one is missing.
    """
    import importlib.util

    for package, name in LIBRARIES.items():
        if importlib.util.find_spec(package) is None:
            raise RequestError(
                f"this command needs {name}, which is not installed; `pip install "
                "'lexveil[service]'` installs it"
            )


def _change_into(project: str) -> None:
    import os

    try:
        os.chdir(project)
    except OSError as error:
        raise RequestError(
            f"--project {project}: the command cannot work in this folder "
            f"({error.strerror}); name the folder of a project"
        ) from None
