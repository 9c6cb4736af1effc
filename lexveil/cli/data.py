"""`lexveil data`: choose the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from lexveil.cli.options import Count, Json, Wait, actions, exclusive, option, positive, reads
from lexveil.cli.output import in_project, show
from lexveil.errors import RequestError
from lexveil.runtime.project import build_lock

data = actions(
    "data",
    """Choose the data: the embedded default, or your own.

    Fills data/ (corpus/: public text to learn from; documents/: texts to privatize), tracked by data.dvc.

      lexveil data default
      lexveil data use --corpus crawl/ --documents letters.csv --text-column body
      lexveil data use --documents letters.csv --model en           (no corpus: a model takes its place)
      lexveil data use --corpus web=crawl/ tickets=tickets.jsonl    (sample.weights in params.yaml mixes them)
      lexveil data use --corpus hf://allenai/c4/en --shards 0-99    (after `uv sync --extra hf`)
      lexveil data status --json
    """,
)
AMOUNT = exclusive("amount")


@data.command
def default(*, json: Json = False, wait: Wait = False) -> int:
    """The embedded default data."""
    root = in_project()
    from lexveil.data import data_store

    with build_lock(wait):
        show(data_store.use_default(root), json)
    return 0


def _part(text: str) -> float:
    value = positive(text)
    if value > 1:
        raise ValueError(f"{text} is more than all, which is 1")
    return value


def _range(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not all(part.isascii() and part.isdigit() for part in (first, last if dash else "0")):
        raise ValueError(f"{text!r} is not a range of numbers, such as 0-9")
    return int(first), int(last if dash else first)


@data.command
def use(
    *,
    corpus: Annotated[
        tuple[str, ...],
        option(
            "file or folder to learn from, or an address that is read through without being fetched "
            "(hf://allenai/c4/en, s3://…), or several, each with a name; left as it is if not given",
            "[NAME=]PATH …",
            consume_multiple=(1, None),
        ),
    ] = (),
    max_documents: Annotated[
        Count | None,
        option(
            "of an address: keep about so many documents, a little more (default: sample.max_documents)", group=AMOUNT
        ),
    ] = None,
    share: Annotated[
        float | None,
        option(
            "of an address: keep this share of the documents, above 0 up to 1",
            "S",
            converter=reads(_part),
            group=AMOUNT,
        ),
    ] = None,
    shards: Annotated[
        tuple[int, int] | None,
        option(
            "of an address: read only these shards, by number from 0",
            "A-B",
            converter=reads(_range),
            n_tokens=1,
            allow_leading_hyphen=True,
        ),
    ] = None,
    documents: Annotated[
        tuple[Path, ...],
        option("files or folders to privatize, each file one set", "PATH …", consume_multiple=(1, None)),
    ] = (),
    model: Annotated[
        str | None,
        option("in place of a corpus: a packaged model, whose words and collocations the run then has", "NAME"),
    ] = None,
    text_column: Annotated[str, option("the column that holds the text", "NAME")] = "text",
    json: Json = False,
    wait: Wait = False,
) -> int:
    """Your own files or folders: {formats}."""
    sources = sources_of(corpus)
    document_files = [path.absolute() for path in documents]
    root = in_project()
    from lexveil.data import data_store
    from lexveil.data.corpus_sampling import SampleRequest

    with build_lock(wait):
        request = SampleRequest(max_documents, share, shards)
        show(asdict(data_store.use(sources, document_files, text_column, root, request, model=model)), json)
    return 0


@data.command
def status(*, json: Json = False) -> int:
    """What is in data/ and whether DVC has it."""
    root = in_project()
    from lexveil.data import data_store

    show(asdict(data_store.status(root)), json)
    return 0


def _source(text: str) -> Path | str:
    """A path, made absolute because the command works in the project's folder; or an address, as it is."""
    from lexveil.data.remote import is_address

    return text if is_address(text) else Path(text).absolute()


def sources_of(corpus: Sequence[str]) -> Path | str | dict[str, Path | str] | None:
    """One file, folder or address, or several by name, as --corpus [NAME=]PATH gives them.

    Raises:
        RequestError: if one of several has no name, or two have the same.
    """
    if not corpus:
        return None
    if len(corpus) == 1 and ("=" not in corpus[0] or isinstance(_source(corpus[0]), str) or Path(corpus[0]).exists()):
        return _source(corpus[0])
    sources: dict[str, Path | str] = {}
    for given in corpus:
        name, equals, path = given.partition("=")
        if not equals or not name or not path:
            raise RequestError(f"--corpus {given}: several need a name each: --corpus web=PATH tickets=PATH")
        if name in sources:
            raise RequestError(
                f"--corpus {given}: the name {name} is there twice; give files of one source as a folder"
            )
        sources[name] = _source(path)
    return sources
