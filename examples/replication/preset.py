"""Presets of the replication: the data sets, parameters and back ends of each paper."""

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
from lexveil.base import paths
from lexveil.base.errors import RequestError

FOLDER = Path(__file__).with_name("presets")
PAPERS = tuple(sorted(file.stem for file in FOLDER.glob("*.yaml")))
SENTENCES = Path(__file__).with_name("sentences.csv")  # inputs of the papers' examples
REQUEST = Path("replication.json")  # file in the project with the request
ASIDE = Path(".lexveil/replication")  # folder in the project with the runs of further grids
RUN_FOLDERS = ("evaluation", "private")  # folders of artifacts that the page reads for each run
SEED = 42  # seed of the drawn texts, as in the papers
TRAIN_SHARE = 0.75  # share of the drawn texts for training; the others are scored
HELD_OUT = ("validation", "dev", "test")  # the first of these splits in a set is scored


@dataclass(frozen=True, slots=True)
class Preset:
    """Experiments of one paper.

    Attributes:
        paper: name in published.csv.
        sets: data sets that the experiments need.
        optional: data sets of single tables.
        corpus: whether a corpus is needed.
        pairs: texts of a pair that are rewritten, in the syntax of `lexveil data use --pairs`.
        authors: number of most frequent attributes that are kept, by data set.
        texts: number of texts of each set, if a run is not full.
        settings: (setting, the paper's value, our value), in words.
        params: sections of params.yaml.
        full: changes to these sections for a run with all texts and all ε.
        further: further sections `grid`, for ε at which only some of the mechanisms are run. They
            are skipped if a run is full or names ε or mechanisms.
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
    """Request for a run of a preset, which the page states.

    Attributes:
        paper: name of the preset.
        sets: data sets that are available.
        corpus: names of the files of the corpus.
        texts: number of texts of each set; None for all.
        epsilons: epsilons in place of the preset's; empty for the preset's.
        mechanisms: mechanisms in place of the preset's; empty for the preset's.
        neural: folder with minilm, gpt2 and classifier; None for the small back ends.
        vectors: file of word vectors of S1; None for vectors trained on the corpus.
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
    """Return the files of a preset's data sets.

    Raises:
        RequestError: if a required data set is missing; the message names the command that brings
            it.
    """
    missing = [name for name in preset.sets if not (folder / f"{name}.parquet").is_file()]
    if missing:
        commands = "\n".join(f"  {command_for(name, folder)}" for name in missing)
        raise RequestError(
            f"{folder} lacks {', '.join(missing)}, which {preset.paper} needs; convert "
            f"them:\n{commands}"
        )
    files = [folder / f"{name}.parquet" for name in (*preset.sets, *preset.optional)]
    return [file.resolve() for file in files if file.is_file()]


def files_of_corpus(corpus: Path | None, preset: Preset) -> list[Path]:
    """Return the files of a corpus folder, or the single file of a corpus.

    Raises:
        RequestError: if the corpus is missing, or its folder has no file.
    """
    if corpus is None or not corpus.exists():
        where = "no corpus was named" if corpus is None else f"{corpus} does not exist"
        raise RequestError(
            f"{where}; {preset.paper} needs a corpus to learn words, vectors and a language "
            "model: --corpus FOLDER, a folder or a file of texts (JSONL, CSV, text, Parquet)"
        )
    if corpus.is_file():
        return [corpus.resolve()]
    files = sorted(file for file in corpus.iterdir() if file.is_file())
    if not files:
        raise RequestError(f"{corpus} holds no file; name a folder of texts after --corpus")
    return [file.resolve() for file in files]


def draw_texts(documents: pa.Table, n_texts: int | None, n_authors: int | None) -> pa.Table:
    """Draw documents of a data set at random from its train split and the split that is scored.

    Args:
        documents: a table with a column split, and attribute if authors are chosen.
        n_texts: number of documents, a quarter of them to be scored; None keeps all of both splits.
        n_authors: number of most frequent attributes whose documents are kept; None keeps all.

    Returns:
        The drawn documents; all documents if the set has no split to score, such as a list of
        words.
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
    """Merge changes into parameters, section by section."""
    together = dict(params)
    for name, value in changes.items():
        before = together.get(name)
        is_section = isinstance(value, Mapping) and isinstance(before, Mapping)
        together[name] = merged(before, value) if is_section else value  # type: ignore[arg-type]
    return together


def parameters(preset: Preset, request: ReplicationRequest) -> dict[str, Any]:
    """Return the sections of params.yaml that a run of a preset changes."""
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
    """Return the parameters of the neural back ends, with the models in a folder."""
    return {
        "encoder": "minilm",
        "classifier": "transformer",
        "transformer_model": str(folder / "classifier"),
        "language_model": "gpt2",
        "gpt2_model": str(folder / "gpt2"),
    }


def check_neural(folder: Path) -> None:
    """Check that the folder of neural models has the models that a preset reads.

    Raises:
        RequestError: with the names of the missing models.
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
    """Make a project with a preset's data and parameters; ``run`` runs it afterwards."""
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
        name = _imported(request.vectors)
        changes = merged(changes, {"embeddings": {"word_model": name}})
        changes = merged(changes, {"word_orders": {"models": ["own", name]}})
    _write_params(project, changes)
    (project / REQUEST).write_text(json.dumps(asdict(request), indent=2), encoding="utf-8")


def grids_of(preset: Preset, request: ReplicationRequest) -> list[dict[str, Any]]:
    """Return the sections `grid` of a preset's runs, the main grid last."""
    main = parameters(preset, request)["grid"]
    is_whole = request.full or request.epsilons or request.mechanisms
    return [*([] if is_whole else [main | dict(grid) for grid in preset.further]), main]


def run(project: Path, preset: Preset, request: ReplicationRequest) -> None:
    """Bring a project up to date, one grid after another, and keep the runs of each grid.

    `lexveil run` removes the runs that its grid does not name. Runs of further grids are therefore
    copied to another folder and copied back at the end.
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
    """Copy texts and evaluations of runs from one folder to another; existing files stay."""
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
    """Read the request of the run in a project.

    Raises:
        RequestError: if no preset made the project.
    """
    file = project / REQUEST
    if not file.is_file():
        raise RequestError(
            f"{project} was not made by a preset; name one: --paper {' | '.join(PAPERS)}, with "
            "--sets FOLDER and --corpus FOLDER"
        )
    return ReplicationRequest(**json.loads(file.read_text(encoding="utf-8")))


def _drawn(file: Path, preset: Preset, request: ReplicationRequest, folder: Path) -> Path:
    """Write the texts of one data set that the run uses, and return the file."""
    documents = pq.read_table(file)
    drawn = documents
    if "split" in documents.column_names:
        drawn = draw_texts(documents, request.texts, preset.authors.get(file.stem))
    out = folder / file.name
    pq.write_table(drawn, out)
    return out


def _imported(vectors: str) -> str:
    """Import word vectors as a model into the user's data folder, and return its NAME@HASH."""
    words = ["--name", "replication", "--license", "unknown", "--language", "en"]
    argv = [sys.executable, "-m", "lexveil.faces.cli", "model", "add", vectors, *words]
    argv += ["--collocations", "none", "--force", "--json"]
    added = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True)
    return str(json.loads(added.stdout)["model"])


def _lexveil(*arguments: object, cwd: Path | None = None) -> None:
    command = [sys.executable, "-m", "lexveil.faces.cli", *map(str, arguments)]
    subprocess.run(command, cwd=cwd, check=True)
