"""The presets of the replication: which data sets, parameters and back ends each paper asks for."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from examples.replication.bring import command_for
from lexveil import paths
from lexveil.errors import RequestError

FOLDER = Path(__file__).with_name("presets")
PAPERS = tuple(sorted(file.stem for file in FOLDER.glob("*.yaml")))
SENTENCES = Path(__file__).with_name("sentences.csv")  # inputs of the papers' examples
REQUEST = Path("replication.json")  # in the project: what was asked for
ASIDE = Path(".lexveil/replication")  # in the project: runs of further grids
RUN_FOLDERS = ("evaluation", "private")  # of the artifacts: what the page reads of each run
SEED = 42  # by which texts are drawn: the papers' own
TRAIN_SHARE = 0.75  # of the texts drawn; the others are scored
HELD_OUT = ("validation", "dev", "test")  # the first that a set has is scored


@dataclass(frozen=True, slots=True)
class Preset:
    """One paper's experiments.

    Attributes:
        paper: its name in published.csv.
        sets: data sets that there must be.
        optional: those of single tables.
        corpus: whether a corpus is needed.
        pairs: which texts of a pair are rewritten, as `lexveil data use --pairs` takes it.
        authors: of some sets, how many of the most frequent attributes are kept.
        texts: of each set, where a run is not full.
        settings: (setting, the paper's, ours), in words.
        params: sections of params.yaml.
        full: what a run of all texts and all ε changes in them.
        further: sections grid that are run too, unless a run is full or has ε or mechanisms of its
            own: what only some of the mechanisms are run at.
    """

    paper: str
    sets: Sequence[str]
    optional: Sequence[str]
    corpus: bool
    pairs: str
    authors: Mapping[str, int]
    texts: int
    settings: Sequence[tuple[str, str, str]]
    params: Mapping[str, Mapping[str, Any]]
    full: Mapping[str, Mapping[str, Any]]
    further: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class ReplicationRequest:
    """What a run of a preset was asked for, as the page states it.

    Attributes:
        paper: name of the preset.
        sets: data sets that were there.
        corpus: names of the files of the corpus.
        texts: of each set; None for all.
        epsilons: in place of the preset's; empty for those.
        mechanisms: in place of the preset's; empty for those.
        neural: folder with minilm, gpt2 and classifier; None for the small back ends.
        vectors: file of word vectors of S1; None for those of the corpus.
        full: whether all texts and all ε of the paper are run.
    """

    paper: str
    sets: Sequence[str]
    corpus: Sequence[str]
    texts: int | None
    epsilons: Sequence[float]
    mechanisms: Sequence[str]
    neural: str | None
    vectors: str | None
    full: bool


def load_preset(name: str) -> Preset:
    """Read one preset by the name of its file."""
    raw = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return Preset(**raw)


def files_of_sets(preset: Preset, folder: Path) -> list[Path]:
    """The files of a preset's data sets.

    Raises:
        RequestError: if one that the preset needs is missing; it names the command that brings it.
    """
    missing = [name for name in preset.sets if not (folder / f"{name}.parquet").is_file()]
    if missing:
        commands = "\n".join(f"  {command_for(name, folder)}" for name in missing)
        raise RequestError(
            f"{folder} lacks {', '.join(missing)}, which {preset.paper} is about; bring it:\n"
            f"{commands}"
        )
    files = [folder / f"{name}.parquet" for name in (*preset.sets, *preset.optional)]
    return [file.resolve() for file in files if file.is_file()]


def files_of_corpus(corpus: Path | None, preset: Preset) -> list[Path]:
    """The files of a corpus, or the one file that it is.

    Raises:
        RequestError: if the preset needs one and it is not there.
    """
    if corpus is None or not corpus.exists():
        where = "no corpus was named" if corpus is None else f"{corpus} is not there"
        raise RequestError(
            f"{where}; {preset.paper} needs one to learn words, vectors and a language model "
            "from: --corpus FOLDER, a folder or a file of texts (JSONL, CSV, text, Parquet)"
        )
    if corpus.is_file():
        return [corpus.resolve()]
    files = sorted(file for file in corpus.iterdir() if file.is_file())
    if not files:
        raise RequestError(f"{corpus} holds no file; name a folder of texts after --corpus")
    return [file.resolve() for file in files]


def draw_texts(documents: pa.Table, n_texts: int | None, n_authors: int | None) -> pa.Table:
    """Some documents of a set, drawn at random from its train split and the split that is scored.

    Args:
        documents: with a column split, and attribute if authors are chosen.
        n_texts: how many, a quarter of them to be scored; None keeps all of both splits.
        n_authors: keep the documents of so many of the most frequent attributes; None keeps all.

    Returns:
        All documents of a set of which nothing is scored, such as a list of words.
    """
    splits = documents.column("split").to_pylist()
    wanted = np.ones(len(splits), dtype=np.bool_)
    if n_authors is not None:
        authors = documents.column("attribute").to_pylist()
        frequent = {name for name, _ in Counter(authors).most_common(n_authors)}
        wanted = np.array([name in frequent for name in authors], dtype=np.bool_)
    scored = next((name for name in HELD_OUT if name in splits), None)
    if scored is None:
        return documents.filter(pa.array(wanted))
    rng = np.random.default_rng(SEED)
    rows = list[int]()
    for split, share in (("train", TRAIN_SHARE), (scored, 1 - TRAIN_SHARE)):
        own = [row for row, name in enumerate(splits) if name == split and wanted[row]]
        n_drawn = len(own) if n_texts is None else min(len(own), round(n_texts * share))
        rows += sorted(rng.choice(own, size=n_drawn, replace=False).tolist())
    return documents.take(rows)


def merged(params: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with some changed, section by section."""
    together = dict(params)
    for name, value in changes.items():
        before = together.get(name)
        is_section = isinstance(value, Mapping) and isinstance(before, Mapping)
        together[name] = merged(before, value) if is_section else value  # type: ignore[arg-type]
    return together


def parameters(preset: Preset, request: ReplicationRequest) -> dict[str, Any]:
    """The sections of params.yaml that a run of a preset changes."""
    params = merged({}, preset.params)
    if request.full:
        params = merged(params, preset.full)
    if request.neural is not None:
        params = merged(params, {"evaluation": _neural(Path(request.neural))})
    grid = dict[str, Any]()
    if request.epsilons:
        grid["epsilons"] = list(request.epsilons)
    if request.mechanisms:
        grid["mechanisms"] = list(request.mechanisms)
    return merged(params, {"grid": grid})


def _neural(folder: Path) -> dict[str, str]:
    """The neural back ends, of the models in a folder."""
    return {
        "encoder": "minilm",
        "classifier": "transformer",
        "transformer_model": str(folder / "classifier"),
        "language_model": "gpt2",
        "gpt2_model": str(folder / "gpt2"),
    }


def check_neural(folder: Path) -> None:
    """See that the folder of neural models has what a preset reads.

    Raises:
        RequestError: naming what is missing.
    """
    missing = [name for name in ("classifier", "gpt2") if not (folder / name).is_dir()]
    if missing:
        raise RequestError(
            f"{folder} lacks {' and '.join(missing)}; put a model in the form of transformers into "
            "each: classifier (DeBERTa-v3-base in CLMLDP, BERT in 1-Diffractor) and gpt2"
        )


def make_project(
    project: Path,
    preset: Preset,
    request: ReplicationRequest,
    sets: Sequence[Path],
    corpus: Sequence[Path],
) -> None:
    """Make a project with a preset's data and parameters; run it afterwards with ``run``."""
    _lexveil("init", project)
    with tempfile.TemporaryDirectory() as scratch:
        drawn = [_drawn(file, preset, request, Path(scratch)) for file in sets]
        sources = [f"part{number}={file}" for number, file in enumerate(corpus)]
        _lexveil(
            "data",
            "use",
            "--corpus",
            *(sources if len(sources) > 1 else corpus),
            "--pairs",
            preset.pairs,
            "--documents",
            *drawn,
            SENTENCES,
            cwd=project,
        )
    changes = parameters(preset, request)
    if request.vectors is not None:
        _lexveil("embeddings", "add", "words", request.vectors, cwd=project)
        name = _imported(project)
        changes = merged(changes, {"embeddings": {"word_model": name}})
        changes = merged(changes, {"word_orders": {"models": ["own", name]}})
    _write_params(project, changes)
    (project / REQUEST).write_text(json.dumps(asdict(request), indent=2), encoding="utf-8")


def grids_of(preset: Preset, request: ReplicationRequest) -> list[dict[str, Any]]:
    """The sections grid that a run of a preset makes runs of, the main one last."""
    main = parameters(preset, request)["grid"]
    is_whole = request.full or request.epsilons or request.mechanisms
    return [*([] if is_whole else [main | dict(grid) for grid in preset.further]), main]


def run(project: Path, preset: Preset, request: ReplicationRequest) -> None:
    """Bring a project up to date, one grid after another, and keep the runs of each.

    `lexveil run` removes the runs that its grid does not name, so those of further grids are set
    aside, and put back at the end.
    """
    artifacts = project / paths.ARTIFACTS
    aside = project / ASIDE
    *further, main = grids_of(preset, request)
    for grid in further:
        _write_params(project, {"grid": grid})
        _lexveil("run", cwd=project)
        copy_runs(artifacts, aside)
    _write_params(project, {"grid": main})
    _lexveil("run", cwd=project)
    copy_runs(aside, artifacts)


def copy_runs(source: Path, target: Path) -> None:
    """Copy texts and evaluations of runs from one folder to another; what is there stays."""
    for name in RUN_FOLDERS:
        for file in sorted((source / name).rglob("*")):
            copy = target / file.relative_to(source)
            if file.is_file() and not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)


def _write_params(project: Path, changes: Mapping[str, Any]) -> None:
    file = project / "params.yaml"
    params = merged(yaml.safe_load(file.read_text(encoding="utf-8")), changes)
    file.write_text(yaml.safe_dump(params, allow_unicode=True, sort_keys=False), encoding="utf-8")


def read_request(project: Path) -> ReplicationRequest:
    """What the run in a project was asked for.

    Raises:
        RequestError: if no preset made the project.
    """
    file = project / REQUEST
    if not file.is_file():
        raise RequestError(
            f"{project} was made by no preset; name one: --paper {' | '.join(PAPERS)}, with --sets "
            "FOLDER and --corpus FOLDER"
        )
    return ReplicationRequest(**json.loads(file.read_text(encoding="utf-8")))


def _drawn(file: Path, preset: Preset, request: ReplicationRequest, folder: Path) -> Path:
    """A file of the texts of one set that are run."""
    documents = pq.read_table(file)
    drawn = documents
    if "split" in documents.column_names:
        drawn = draw_texts(documents, request.texts, preset.authors.get(file.stem))
    out = folder / file.name
    pq.write_table(drawn, out)
    return out


def _imported(project: Path) -> str:
    """NAME@HASH of the vectors that were imported."""
    listed = subprocess.run(
        [sys.executable, "-m", "lexveil.cli", "embeddings", "list", "--json"],
        cwd=project,
        check=True,
        capture_output=True,
        text=True,
    )
    (name,) = json.loads(listed.stdout)
    return str(name)


def _lexveil(*arguments: object, cwd: Path | None = None) -> None:
    command = [sys.executable, "-m", "lexveil.cli", *map(str, arguments)]
    subprocess.run(command, cwd=cwd, check=True)
