"""The verb `lexveil data`, which chooses the corpus to train on and the documents to privatize."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token
from cyclopts.validators import Number

from lexveil.base.errors import RequestError
from lexveil.base.runtime.project import build_lock
from lexveil.faces.cli.options import Count, Json, Wait, actions, exclusive
from lexveil.faces.cli.output import in_project, show
from lexveil.io.request import NUMBER

data = actions(
    "data",
    """Choose the data: the embedded default, or your own.

    Fills data/ (corpus/: public text to train on; documents/: texts to privatize), tracked by
    data.dvc.

        lexveil data default
        lexveil data use --corpus crawl/ --documents letters.csv --text-column body
        lexveil data use --documents letters.csv --model en     (a model replaces the corpus)
        lexveil data use --corpus web=crawl/ tickets=tickets.jsonl  (mixed by sample.weights)
        lexveil data use --corpus hf://allenai/c4/en --shards 0-99    (needs the extra hf)
        lexveil data status --json
    """,
)
AMOUNT = exclusive()


@data.command
def default(*, json: Json = False, wait: Wait = False) -> None:
    """Restore the embedded default data."""
    root = in_project()
    from lexveil.lab.data import data_store

    with build_lock(wait, say=print):
        show(data_store.use_default(root), json)


def _range(_: Any, tokens: Sequence[Token]) -> tuple[int, int]:
    text = tokens[-1].value
    first, dash, last = text.partition("-")
    if not all(part.isascii() and part.isdigit() for part in (first, last if dash else "0")):
        raise ValueError(f"{text!r} is not a range of numbers; write a range such as 0-9")
    return int(first), int(last if dash else first)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AddressPart:
    """The part of an address that is read.

    Attributes:
        max_documents: for an address: keep at least about N documents (default:
            sample.max_documents)
        share: for an address: keep this share of the documents, above 0 up to 1
        shards: for an address: read only these shards, numbered from 0
    """

    max_documents: Annotated[Count | None, Parameter(group=AMOUNT)] = None
    share: Annotated[
        float | None, Parameter(metavar=NUMBER, validator=Number(gt=0, lte=1), group=AMOUNT)
    ] = None
    shards: Annotated[
        tuple[int, int] | None,
        Parameter(metavar="A-B", converter=_range, n_tokens=1, allow_leading_hyphen=True),
    ] = None


@data.command
def use(
    *,
    corpus: Annotated[
        tuple[str, ...], Parameter(metavar="[NAME=]PATH …", consume_multiple=(1, None))
    ] = (),
    part: AddressPart = AddressPart(),  # frozen
    documents: Annotated[
        tuple[str, ...], Parameter(metavar="[NAME=]FILE …", consume_multiple=(1, None))
    ] = (),
    model: Annotated[str | None, Parameter(metavar="NAME")] = None,
    text_column: Annotated[str, Parameter(metavar="NAME")] = "text",
    pairs: Literal["both", "first"] = "both",
    json: Json = False,
    wait: Wait = False,
) -> None:
    """Use your own files or folders: JSONL, CSV, TSV, text (also as gz, zst, bz2 or xz), Parquet.

    Args:
        corpus: file or folder to train on, or an address that is streamed (hf://allenai/c4/en,
            s3://…), or several of these, each with a name (default: unchanged)
        documents: files or folders to privatize; each file is one data set, with the name of the
            file or with NAME
        model: a packaged model that replaces the corpus
        text_column: the column of texts
        pairs: which texts of a pair (columns text and text_b) are rewritten; with `first`, the
            second text stays unchanged, is read by classifiers only, and counts in no average
    """
    sources = sources_of(corpus)
    document_files, named = _documents(documents)
    root = in_project()
    from lexveil.lab.data import data_store
    from lexveil.lab.data.corpus_sampling import SampleRequest

    request = data_store.DataRequest(
        corpus=sources,
        documents=document_files,
        text_column=text_column,
        wanted=SampleRequest(**asdict(part)),
        model=model,
        pairs=pairs,
        named=named,
    )
    with build_lock(wait, say=print):
        show(asdict(data_store.use(request, root)), json)


@data.command
def status(*, json: Json = False) -> None:
    """Show the content of data/ and whether DVC tracks it."""
    root = in_project()
    from lexveil.lab.data import data_store

    show(asdict(data_store.status(root)), json)


def _source(text: str) -> Path | str:
    """Return a path as an absolute path, because the command later changes into the project's
    folder. An address, such as s3://…, is returned unchanged.
    """
    from lexveil.lab.data.remote import is_address

    return text if is_address(text) else Path(text).absolute()


def _documents(written: Sequence[str]) -> tuple[list[Path], dict[str, Path]]:
    """Split the values of --documents, [NAME=]PATH, into files and folders without a name, and
    files and folders by name.

    Raises:
        RequestError: if a name is repeated.
    """
    files = list[Path]()
    named = dict[str, Path]()
    for text in written:
        name, equals, path = text.partition("=")
        if not (equals and name and path) or Path(text).exists():
            files.append(Path(text).absolute())
        elif name in named:
            raise RequestError(
                f"--documents {text}: the name {name} is repeated; give each data set its own name"
            )
        else:
            named[name] = Path(path).absolute()
    return files, named


def sources_of(corpus: Sequence[str]) -> Path | str | dict[str, Path | str] | None:
    """Return the training sources that the values of --corpus, [NAME=]PATH, give: one file, folder
    or address, or several by name.

    Raises:
        RequestError: if there are several sources and one has no name, or if a name is repeated.
    """
    if not corpus:
        return None
    if len(corpus) == 1 and (
        "=" not in corpus[0] or isinstance(_source(corpus[0]), str) or Path(corpus[0]).exists()
    ):
        return _source(corpus[0])
    sources: dict[str, Path | str] = {}
    for written in corpus:
        name, _, path = written.partition("=")
        if not name or not path:
            raise RequestError(
                f"--corpus {written}: each of several sources needs a name: --corpus "
                "web=PATH tickets=PATH"
            )
        if name in sources:
            raise RequestError(
                f"--corpus {written}: the name {name} is repeated; put the files of one "
                "source into a folder"
            )
        sources[name] = _source(path)
    return sources
