"""Functions of the command `lexveil data`, which replaces a project's folder data/ as a whole,
tracks it with DVC, and describes its contents.

New data is built and checked beside data/, and replaces data/ by a rename at the end. A failure or
a kill before the rename leaves data/ unchanged. Files in data/ may be links into DVC's cache and
are never written to.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.base import paths
from lexveil.base.errors import RequestError, option
from lexveil.base.runtime import dvc_graph
from lexveil.base.runtime.tables import atomic_file
from lexveil.io.artifacts.base_model import find_base
from lexveil.io.artifacts.model_store import find
from lexveil.io.config import load_params
from lexveil.io.formats.compression import open_bytes
from lexveil.io.formats.input_files import find_sources
from lexveil.io.formats.messages import names, shown
from lexveil.lab.data.corpus import CorpusReport, write_corpus, write_no_corpus
from lexveil.lab.data.corpus_sampling import (
    ORIGIN,
    SampleRequest,
    forget,
    link_or_copy,
    plan_samples,
    stream_corpus,
)
from lexveil.lab.data.default import write_default_corpus, write_default_documents
from lexveil.lab.data.documents import DocumentSetReport, write_documents

# Both folders lie in a folder that .gitignore names, on the same disk as data/.
PARTIAL = Path(".lexveil/data.partial")
PREVIOUS = Path(".lexveil/data.previous")
# name of a corpus source or a model; the name becomes a folder's name, and stands in params.yaml
NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
# the line of embeddings.base in params.yaml
BASE = re.compile(r"(?m)^(embeddings:[^\n]*\n(?:(?:[ \t#][^\n]*)?\n)*?  base:[ \t]*)([^\s#]+)")
DAMAGED = "damaged; fetch it again by `dvc checkout data.dvc`"


@dataclass(frozen=True, slots=True)
class DataReport:
    """Report of `lexveil data use` about the new corpus (or each of its sources by name) and the
    new document sets by name.

    Attributes:
        corpus, documents: None if the request had no corpus, or no documents.
        notes: lines to print for the user.
    """

    corpus: CorpusReport | dict[str, CorpusReport] | None
    documents: dict[str, DocumentSetReport] | None
    notes: list[str]


@dataclass(frozen=True, slots=True)
class SetStatus:
    """Description of the corpus or of one document set in data/; ``parts`` counts documents by
    source of the corpus, or by split of the document set.
    """

    documents: int
    bytes: int
    parts: dict[str, int]


@dataclass(frozen=True, slots=True)
class DataStatus:
    """Description of the contents of a project's folder data/.

    Attributes:
        tracked: "yes" (data.dvc describes data/ and DVC's cache holds it), "changed" (data/ differs
            from data.dvc), "unsaved" (data/ equals data.dvc, but the cache does not hold it) or
            "no" (there is no data.dvc).
        corpus: description of the corpus; None if there is no corpus.
        addresses: remote addresses from which the corpus was read.
    """

    tracked: str
    corpus: SetStatus | None
    addresses: list[str]
    documents: dict[str, SetStatus]


def materialize_default(root: Path) -> None:
    """Replace ROOT/data by the embedded default data, without tracking it in DVC.

    Raises:
        RequestError: if gensim's test data is missing or altered, or ROOT/data cannot be written.
    """
    with _replacement(root) as partial:
        _write_default(partial)
    shutil.rmtree(root / PREVIOUS, ignore_errors=True)


def use_default(root: Path) -> dict[str, bool]:
    """Replace a project's data by the embedded default and track it with DVC, for the command
    `lexveil data default`.

    Returns:
        unchanged: whether data.dvc existed before and still has the same bytes.

    Raises:
        RequestError: see ``materialize_default``; also if ``root`` is not a project, or data/ holds
            data that DVC has not saved.
    """
    check_project(root)
    before = _pointer(root)
    with tracked_replacement(root) as partial:
        _write_default(partial)
        complete(root, partial)
    return {"unchanged": _pointer(root) == before}


def _write_default(folder: Path) -> None:
    write_default_corpus(folder / "corpus")
    write_default_documents(folder / "documents")


@dataclass(frozen=True, slots=True)
class DataRequest:
    """Request to replace the corpus, the documents, or both, of a project by the user's files.

    Attributes:
        corpus: a file or folder, an address (a string) that is streamed, a mapping with one of
            these for each named source of the corpus, or None.
        documents: files or folders; each file becomes a document set with the name of the file. May
            be empty.
        text_column: name of the column with the text, in all of these files (a .txt file has no
            columns).
        wanted: the part of remote corpora to read.
        model: name of a packaged model that replaces the corpus; the corpus then has no documents,
            and params.yaml names the model as embeddings.base.
        pairs: which texts of a pair (columns text and text_b) are rewritten: both, or the first.
        named: files by the name of the document set that each becomes, in addition to
            ``documents``.
    """

    corpus: Path | str | Mapping[str, Path | str] | None
    documents: Sequence[Path] = ()
    text_column: str = "text"
    wanted: SampleRequest = field(default_factory=SampleRequest)
    model: str | None = None
    pairs: str = "both"
    named: Mapping[str, Path] = field(default_factory=dict)

    @property
    def sources(self) -> dict[str, Path | str]:
        """Sources of the corpus by name; a single source without a name has the name ""."""
        if isinstance(self.corpus, Mapping):
            return dict(self.corpus)
        return {"": self.corpus} if self.corpus else {}

    def check(self) -> None:
        """Raise an error if the parts of the request contradict each other.

        Raises:
            RequestError: if the parts contradict each other, or nothing is requested.
        """
        sources = self.sources
        if not (sources or self.documents or self.named or self.model is not None):
            raise RequestError(
                f"nothing to use; give {option('corpus')} PATH, {option('documents')} PATH or both"
            )
        if sources and self.model is not None:
            raise RequestError(
                f"{option('model')} {self.model} replaces {option('corpus')}; give one of the two"
            )
        if not self.text_column:
            raise RequestError(
                f"{option('text_column')}: the name is empty; give the name of the column of texts"
            )
        for name in filter(None, sources):
            if not re.fullmatch(NAME, name):
                raise RequestError(
                    f"{option('corpus')} {shown(name)}=…: the name of a source consists of a-z, "
                    "0-9, _ and -"
                )
        has_address = any(isinstance(source, str) for source in sources.values())
        if self.wanted != SampleRequest() and not has_address:
            raise RequestError(
                f"{option('max_documents')}, {option('share')} and {option('shards')} need an "
                "address"
            )


def use(request: DataRequest, root: Path) -> DataReport:
    """Replace the project's corpus, its documents, or both by the user's data, for the command
    `lexveil data use`.

    If the request lacks the corpus or the documents, that part of data/ stays unchanged; if data/
    does not have the part yet, the embedded default is used.

    Args:
        root: folder of the project; its params.yaml gives seed and sample.max_documents for
            addresses.

    Raises:
        RequestError: with file and row of the first fault; data/ is then unchanged.
        LexveilError: if an address cannot be read; data/ is then unchanged, and the same call
            resumes the reading.
    """
    request.check()
    check_project(root)
    sources = request.sources
    files = {name: find_sources([path]) for name, path in sources.items() if isinstance(path, Path)}
    document_files = find_sources(request.documents)
    addresses = {name: address for name, address in sources.items() if isinstance(address, str)}
    plans = plan_samples(addresses, request.wanted, request.text_column, root)
    notes = list[str]()
    written = dict[str, CorpusReport]()
    sets = None
    if request.model is not None and set_base(root, base := _base(request.model)):
        notes.append(f"params.yaml: embeddings.base is now {base}")
    with tracked_replacement(root) as partial:
        # Documents are converted first: they are few, and a fault in them should not wait for a
        # large corpus.
        if request.documents or request.named:
            folder = partial / "documents"
            sets = write_documents(
                document_files, folder, request.text_column, request.pairs, request.named
            )
        for name in sources:
            folder = partial / "corpus" / name
            if name in plans:
                written[name] = stream_corpus(plans[name], folder, root)
            else:
                written[name] = write_corpus(files[name], folder, request.text_column)
        if request.model is not None:
            write_no_corpus(partial / "corpus")
        notes += complete(root, partial)
    if plans:
        forget(root)
    notes += [*_notes(sets or {}, written), *_note_on_samples(root, bool(sets))]
    return DataReport(written.get("", written) if sources else None, sets, notes)


def _base(model: str) -> str:
    """Return the value of parameter embeddings.base that names a model: the name alone for a model
    that ships with Lexveil, name and hash for a model of the user.
    """
    package = find(model)
    return model if package.folder.parent == paths.MODELS else package.pinned


def set_base(root: Path, base: str) -> bool:
    """Set parameter embeddings.base in params.yaml to ``base`` by changing one line. Return False
    if the file already has this value.

    Raises:
        RequestError: if section embeddings has no line `base:`, or the model contradicts other
            parameters.
    """
    file = root / paths.PARAMS
    settings = load_params(file).embeddings
    find_base(settings.model_copy(update={"base": base}))
    if settings.base == base:
        return False
    with atomic_file(file) as partial:
        text = file.read_text(encoding="utf-8")
        partial.write_text(
            BASE.sub(lambda match: match[1] + base, text, count=1), encoding="utf-8", newline="\n"
        )
        if load_params(partial).embeddings.base != base:
            raise RequestError(
                f"{file}: section embeddings has no line `base:`; write `base: {base}` there"
            )
    return True


def _notes(
    documents: Mapping[str, DocumentSetReport], corpus: Mapping[str, CorpusReport]
) -> Iterator[str]:
    for source, report in corpus.items():
        where = f"corpus/{source}".rstrip("/")
        if report.skipped_blank:
            yield f"{where}: {report.skipped_blank:,} rows without text were skipped"
        if report.skipped_unusable:
            yield (
                f"{where}: {report.skipped_unusable:,} texts with NUL or an unpaired "
                "surrogate were skipped"
            )
        if report.dropped_columns:
            yield f"{where}: columns dropped: {names(report.dropped_columns)}"
    for dataset, written in documents.items():
        if written.made_ids:
            yield f"documents/{dataset}: no column doc_id, so ids were made from row numbers"
        if written.contexts:
            yield (
                f"documents/{dataset}: {written.contexts:,} second texts of pairs are not "
                "rewritten; no average counts them, and only classifiers read them"
            )
        if written.unsplit:
            yield (
                f"documents/{dataset}: utility and attack are not evaluated, because the column "
                "split is missing"
            )
        if written.dropped_columns:
            yield f"documents/{dataset}: columns dropped: {names(written.dropped_columns)}"


def _note_on_samples(root: Path, has_new_texts: bool) -> Iterator[str]:
    """Yield a warning if the report will show texts of new documents, because the number of sample
    texts may have been chosen for other documents.
    """
    params = root / paths.PARAMS
    if has_new_texts and params.exists() and (n_samples := load_params(params).report.samples):
        yield (
            f"report.samples of params.yaml is {n_samples}: the report will show {n_samples} of "
            "the texts; null shows none"
        )


def complete(root: Path, partial: Path) -> list[str]:
    """Copy into ``partial`` the parts of data/ (corpus, documents) that it lacks, or the embedded
    default for parts that data/ lacks, too. Return notes for the user.
    """
    notes = []
    defaults = {
        "documents": write_default_documents,
        "corpus": write_default_corpus,
    }
    for name, write_default in defaults.items():
        old = root / "data" / name
        new = partial / name
        if new.exists():
            continue
        if old.is_dir() and any(old.iterdir()):
            shutil.copytree(old, new, symlinks=True, copy_function=link_or_copy)
        else:
            write_default(new)
            notes.append(
                f"{name}: the request and data/ have none, so the embedded default is used"
            )
    return notes


def status(root: Path) -> DataStatus:
    """Return a description of the contents of data/, and whether DVC has saved them, for the
    command `lexveil data status`.

    Raises:
        RequestError: if a file in data/ is damaged.
    """
    tracked = _tracked(root)
    folder = root / "data/corpus"
    parts: Counter[str] = Counter()
    shards = sorted(folder.rglob("*.json.gz"))
    for shard in shards:
        parts["" if shard.parent == folder else shard.parent.name] += _count_lines(shard)
    sources = {name: parts[name] for name in sorted(parts) if name}
    corpus = SetStatus(parts.total(), sum(shard.stat().st_size for shard in shards), sources)
    origins = [
        json.loads(origin.read_text(encoding="utf-8")) for origin in sorted(folder.rglob(ORIGIN))
    ]
    sets = {
        path.stem: _describe(path) for path in sorted((root / "data/documents").glob("*.parquet"))
    }
    return DataStatus(
        tracked, corpus if shards else None, [origin["address"] for origin in origins], sets
    )


def _count_lines(shard: Path) -> int:
    try:
        with open_bytes(shard, "gz") as lines:
            return sum(1 for _ in lines)
    except OSError:
        raise RequestError(f"{shown(shard)}: {DAMAGED}") from None


def _describe(path: Path) -> SetStatus:
    try:
        file = pq.ParquetFile(path)
        columns = file.read(columns=["split"]).columns  # a document set may lack this column
    except (pa.ArrowException, OSError):
        raise RequestError(f"{shown(path)}: {DAMAGED}") from None
    counts = columns[0].value_counts().to_pylist() if columns else []
    splits = {str(entry["values"]): entry["counts"] for entry in counts}
    return SetStatus(file.metadata.num_rows, path.stat().st_size, dict(sorted(splits.items())))


def check_project(root: Path) -> None:
    """Raise an error if a folder is not a Lexveil project."""
    if not (root / ".dvc").is_dir() or not (root / "dvc.yaml").is_file():
        raise RequestError(
            f"{shown(root.absolute())}: no Lexveil project (.dvc, dvc.yaml) here; change to "
            "its folder"
        )


def _tracked(root: Path) -> str:
    if _pointer(root) is None:
        return "no"
    states = dvc_graph.changes_of(root, root / "data.dvc")
    if not states:
        return "yes"
    return "unsaved" if states == {"not in cache"} and (root / "data").exists() else "changed"


@contextmanager
def tracked_replacement(root: Path) -> Iterator[Path]:
    """Context manager that replaces data/ as ``_replacement`` does, and then runs `dvc add`. Raise
    an error if data/ holds data that DVC has not saved.
    """
    data = root / "data"
    _finish_swap(root)
    if (root / PREVIOUS).exists():  # an earlier run was killed before `dvc add`: track its data now
        dvc_graph.track(root, [root / "data"])
        shutil.rmtree(root / PREVIOUS)
    if data.exists() and any(data.rglob("*")) and (tracked := _tracked(root)) != "yes":
        why = "there is no data.dvc" if tracked == "no" else "DVC has not saved its present content"
        raise RequestError(
            f"{shown(data)}: would be replaced, but {why}; save it by `dvc add data`, or remove it"
        )
    before = _pointer(root)
    with _replacement(root) as partial:
        yield partial
    try:
        dvc_graph.track(root, [root / "data"])
    except BaseException:
        _swap_back(root, before)
        raise
    shutil.rmtree(root / PREVIOUS, ignore_errors=True)


@contextmanager
def _replacement(root: Path) -> Iterator[Path]:
    """Context manager that yields an empty folder to fill; the folder becomes ROOT/data if the
    block succeeds, and the old ROOT/data becomes PREVIOUS.
    """
    data = root / "data"
    partial = root / PARTIAL
    previous = root / PREVIOUS
    if data.is_symlink() or (data.exists() and not data.is_dir()):
        raise RequestError(
            f"{shown(data)}: is a link or a file, but must be a folder; move it away"
        )
    _finish_swap(root)
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        yield partial
        shutil.rmtree(previous, ignore_errors=True)
        if data.exists():
            data.replace(previous)
        partial.replace(data)
    except OSError as error:
        raise RequestError(
            f"{shown(Path(error.filename or root))}: {error.strerror}; data/ is unchanged"
        ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _finish_swap(root: Path) -> None:
    """Repair a replacement of data/ that was killed between its two renames, by renaming the old
    folder back.
    """
    if (root / PREVIOUS).exists() and not (root / "data").exists():
        (root / PREVIOUS).replace(root / "data")


def _pointer(root: Path) -> bytes | None:
    """Return the bytes of the file data.dvc; None if the file does not exist."""
    pointer = root / "data.dvc"
    return pointer.read_bytes() if pointer.exists() else None


def _swap_back(root: Path, pointer: bytes | None) -> None:
    data = root / "data"
    previous = root / PREVIOUS
    shutil.rmtree(data, ignore_errors=True)
    if previous.exists():
        previous.replace(data)
    if pointer is None:
        (root / "data.dvc").unlink(missing_ok=True)
    else:
        (root / "data.dvc").write_bytes(pointer)
