"""Choose ε and t of a mechanism on labelled words: what `lexveil tune` calls. No stage of the graph.

A list of words with labels, such as an opinion lexicon, is the mechanism's whole vocabulary: those of its words that an
embedding knows. What an adversary gets wrong (inference error) and how often the label changes (utility loss) are
measured at every ε of a row, and Vickrey's Algorithm 2 chooses by them. The words are public and the noise is drawn
from a seed: it is an experiment, and nothing is claimed of any text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lexveil import paths
from lexveil.artifacts.embeddings import read_space
from lexveil.artifacts.external_embeddings import content_hash
from lexveil.config import load_params
from lexveil.data.data_store import NAME
from lexveil.embeddings.word_space import WordSpace
from lexveil.errors import MissingArtifact, RequestError
from lexveil.evaluation.inference_error import GRID, Sampling
from lexveil.formats.messages import shown
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.registry import MECHANISMS, ClosedForm
from lexveil.report.epsilon_units import in_words
from lexveil.runtime.hashes import sha256
from lexveil.runtime.stage import Progress
from lexveil.runtime.tables import require
from lexveil.tuning.candidates import choose, families, measure_all, of_largest_error, row_of_epsilons, rows_of
from lexveil.tuning.output import as_row, write
from lexveil.tuning.word_list import known_words, read_words, words_of_project

RUNS, DRAWS = 5, 20
USUAL_LOSS = 0.05  # where a row of ε goes if no largest loss is asked for


@dataclass(frozen=True, slots=True)
class TuningRequest:
    """What to measure, on which words, and how often.

    Attributes:
        mechanism: what to tune.
        max_loss: C, the largest utility loss, in (0, 1).
        compare: mechanisms to measure instead of one; then ``max_loss`` may be left out.
        words: file of labelled words; None looks for a document set of such words.
        space: embedding: word, gst or mst.
        space_of: an external model, NAME or NAME@HASH, instead.
        epsilons: to measure; if there are none, a row is looked for.
        t: of vickrey, to try besides 0; none are those of Algorithm 2.
        n_runs: of n_draws of each word.
        n_draws: at least 2.
        seed: of the noise; None is that of params.yaml.
        out: folder for tuning.json, tuning.html, frontier.csv, frontier.svg and epsilon.svg.
    """

    mechanism: str = "vickrey"
    max_loss: float | None = None
    compare: Sequence[str] = ()
    words: Path | None = None
    space: str = "word"
    space_of: str | None = None
    epsilons: Sequence[float] = ()
    t: Sequence[float] = ()
    n_runs: int = RUNS
    n_draws: int = DRAWS
    seed: int | None = None
    out: Path | None = None

    @property
    def names(self) -> list[str]:
        """The mechanisms that are measured."""
        return list(dict.fromkeys(self.compare)) or [self.mechanism]


def tune(request: TuningRequest) -> dict[str, Any]:
    """Measure a mechanism, or compare several, and choose ε and t where a largest loss is given.

    Returns:
        What tuning.json holds: ``words``, ``space``, ``frontier`` (rows of COLUMNS); by mechanism ``chosen``, with the
        reason in ``none`` if nothing is, and ``of_largest_error``.

    Raises:
        RequestError: if the request is wrong, words or embedding are missing, or the words cannot be told apart.
    """
    params = load_params()
    _check(request)
    names, max_loss = request.names, request.max_loss
    seed = params.seed if request.seed is None else request.seed
    source, entries = words_of_project() if request.words is None else (request.words, read_words(request.words))
    embedding, about = _embedding(request.space, request.space_of)
    listed = known_words(entries, embedding.tokens)
    if len(listed.classes) < 2:
        raise RequestError(
            f"{shown(source)}: {about['folder']} knows {len(listed.rows):,} of its words, with {len(listed.classes)} "
            "labels; words of at least two labels are needed"
        )
    vectors = np.ascontiguousarray(embedding.vectors[listed.rows])
    made = families(names, request.t or GRID, vectors, params.mechanisms)
    row_of = {}
    for name, family in made.items():
        rng = stream(seed, "tune", name, "row")
        row_of[name] = list(request.epsilons) or row_of_epsilons(
            family[0].kernel, listed.labels, USUAL_LOSS if max_loss is None else max_loss, rng
        )
    n_steps = sum(
        len(row_of[name]) * request.n_runs
        for name, family in made.items()
        if not isinstance(family[0].kernel, ClosedForm)
    )
    progress = Progress("tune", n_steps, "runs")
    work = len(listed.rows) * request.n_draws
    found = measure_all(
        made,
        row_of,
        listed.labels,
        seed,
        Sampling(request.n_draws, request.n_runs),
        lambda done: progress.advance(done, done * work),
    )
    if n_steps:
        progress.finish()
    chosen = {name: choose(rows_of(name, found), max_loss) for name in names} if max_loss is not None else {}
    result = {
        "mechanisms": names,
        "words": {"file": source.name, "sha256": sha256(source), **listed.summary()},
        "space": about,
        "epsilon_in": in_words(list(made)),
        "max_loss": max_loss,
        "runs": request.n_runs,
        "draws": request.n_draws,
        "seed": seed,
        "parameters": {name: params.mechanisms.model_dump().get(name, {}) for name in made},
        "no_guarantee": {name: family[-1].kernel.no_guarantee for name, family in made.items()},
        "frontier": [as_row(*row) for rows in found.values() for row in rows],
        "chosen": {
            name: {"none": why} if candidate is None else {**as_row(*candidate), "none": None}
            for name, (candidate, why) in chosen.items()
        },
        "of_largest_error": {
            name: None if best is None else as_row(*best)
            for name in chosen
            for best in [of_largest_error(rows_of(name, found), max_loss or 0.0)]
        },
    }
    if request.out is not None:
        write(result, found, [candidate for candidate, _ in chosen.values() if candidate is not None], request.out)
    return result


def _check(request: TuningRequest) -> None:
    names, max_loss, comparing = request.names, request.max_loss, bool(request.compare)
    epsilons, t, out = request.epsilons, request.t, request.out
    option = "--compare" if comparing else "--mechanism"
    for name in names:
        if name not in MECHANISMS:
            raise RequestError(f"{option} {name}: there is no such mechanism; there are {', '.join(MECHANISMS)}")
    if max_loss is None and not comparing:
        raise RequestError("--max-loss: give the largest utility loss, a share of 1, or --compare mechanisms without")
    if max_loss is not None and not 0 < max_loss < 1:
        raise RequestError(f"--max-loss {max_loss:g}: must lie between 0 and 1")
    if any(not 0 < base < math.inf for base in epsilons):
        raise RequestError("--epsilons: each must be finite and greater than 0")
    if list(epsilons) != sorted(set(epsilons)):
        raise RequestError("--epsilons: must rise")
    if any(not 0 <= value <= 1 for value in t):
        raise RequestError("--t: each must lie between 0 and 1")
    if t and "vickrey" not in names:
        raise RequestError(f"--t: of {', '.join(names)} none has a t; vickrey has")
    if request.n_runs < 1:
        raise RequestError(f"--runs {request.n_runs}: must be at least 1")
    if request.n_draws < 2:
        raise RequestError(f"--draws {request.n_draws}: must be at least 2")
    if out is not None and (not out.parent.is_dir() or (out.exists() and not out.is_dir())):
        raise RequestError(f"-o {shown(out)}: there is no such folder, and none can be made there")


def _embedding(space: str, model: str | None) -> tuple[WordSpace, dict[str, Any]]:
    """The embedding, and what it is called: name, folder and hash of its content."""
    if model is None:
        folder = require(paths.embedding(space), f"train_embeddings@{space}")
        return read_space(folder), {"name": space, "folder": str(folder), "hash": content_hash(folder)}
    name, _, wanted = model.partition("@")
    folder = paths.model(name)
    if not re.fullmatch(NAME, name) or not folder.is_dir():
        raise MissingArtifact(
            f"--space-of {model}: there is no such model; `lexveil embeddings list` shows which are there"
        )
    found = content_hash(folder)
    if wanted not in ("", found):
        raise RequestError(f"--space-of {model}: {folder} is {name}@{found}")
    return read_space(folder), {"name": name, "folder": str(folder), "hash": found}
