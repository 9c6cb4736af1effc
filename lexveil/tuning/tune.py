"""Choose ε and t of a mechanism on labelled words: what `lexveil tune` calls. No stage of the graph.

A list of words with labels, such as an opinion lexicon, is the mechanism's whole vocabulary: those of its words that an
embedding knows. What an adversary gets wrong (inference error) and how often the label changes (utility loss) are
measured at every ε of a row, and Vickrey's Algorithm 2 chooses by them. The words are public and the noise is drawn
from a seed: it is an experiment, and nothing is claimed of any text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from lexveil import paths
from lexveil.artifacts.document_sets import load_documents
from lexveil.artifacts.embeddings import read_space
from lexveil.artifacts.external_embeddings import content_hash
from lexveil.artifacts.mechanisms import build_over
from lexveil.config import MechanismParams, VickreyParams, load_params
from lexveil.data.data_store import NAME
from lexveil.embeddings.word_space import WordSpace
from lexveil.errors import MissingArtifact, ParameterError, RequestError
from lexveil.evaluation.inference_error import GRID, Tradeoff, measure, measure_together, select
from lexveil.formats.input_files import find_sources
from lexveil.formats.messages import shown
from lexveil.formats.readers import open_table
from lexveil.formats.values import plain_value, text_value
from lexveil.mechanisms.noise.streams import stream
from lexveil.mechanisms.registry import MECHANISMS, ClosedForm, Kernel
from lexveil.report import formatting
from lexveil.report.epsilon_units import in_words, shared_unit
from lexveil.report.table import to_csv
from lexveil.report.tuning_page import (
    SHOWN,
    Frontier,
    error_over_epsilon,
    error_over_loss,
    page,
    standalone,
)
from lexveil.runtime.hashes import sha256
from lexveil.runtime.stage import Progress
from lexveil.runtime.tables import atomic_file, require, write_json
from lexveil.text.tokenize import normal_form
from lexveil.types import Ids, Vectors

RUNS, DRAWS = 5, 20
STEPS = 4  # ε in a row that is looked for
USUAL_LOSS = 0.05  # where such a row goes if no largest loss is asked for
FEWEST, MOST = 2.0**-20, 2.0**20  # ε that are looked at
COLUMNS = (
    "mechanism", "t", "epsilon", "inference_error", "inference_error_sd", "utility_loss", "utility_loss_sd", "n_runs"
)  # fmt: skip
_FEW_T = (0.0, 0.25, 0.5, 0.75, 1.0)  # what a figure shows of many


@dataclass(frozen=True, slots=True)
class WordList:
    """Labelled words that an embedding knows.

    Attributes:
        rows: (W,) of the embedding, ascending.
        labels: (W,) places in ``classes``.
        classes: the labels, by name.
        n_read: entries of the list.
        n_repeated: left out, because the same word with the same label stands before.
        n_ambiguous: words left out, because they have several labels.
        n_unknown: words left out, because the embedding does not have them.
    """

    rows: Ids
    labels: Ids
    classes: list[str]
    n_read: int
    n_repeated: int
    n_ambiguous: int
    n_unknown: int

    def summary(self) -> dict[str, Any]:
        """The numbers, as JSON values."""
        counts = np.bincount(self.labels, minlength=len(self.classes)).tolist()
        return {
            "read": self.n_read,
            "used": len(self.rows),
            "repeated": self.n_repeated,
            "with_several_labels": self.n_ambiguous,
            "unknown": self.n_unknown,
            "labels": dict(zip(self.classes, counts, strict=True)),
        }


def known_words(entries: Iterable[tuple[str, str]], tokens: Sequence[str]) -> WordList:
    """The words of a list that are among the tokens of an embedding, by their normal form.

    Args:
        entries: (word, label).
        tokens: V tokens of the embedding.
    """
    labels_of: dict[str, set[str]] = {}
    n_read = n_repeated = 0
    for word, label in entries:
        labels = labels_of.setdefault(normal_form(word), set())
        n_read += 1
        n_repeated += label in labels
        labels.add(label)
    rows = {token: row for row, token in enumerate(tokens) if token in labels_of}
    certain = {word: next(iter(labels)) for word, labels in labels_of.items() if len(labels) == 1}
    used = sorted((rows[word], label) for word, label in certain.items() if word in rows)
    classes = sorted({label for _, label in used})
    number = {label: at for at, label in enumerate(classes)}
    return WordList(
        np.array([row for row, _ in used], dtype=np.int64),
        np.array([number[label] for _, label in used], dtype=np.int64),
        classes,
        n_read,
        n_repeated,
        len(labels_of) - len(certain),
        len(certain) - len(used),
    )


def read_words(file: Path) -> list[tuple[str, str]]:
    """Words and labels of a file with columns text or word, and label.

    Raises:
        RequestError: naming file and row: not readable, without the columns, a word or label missing.
    """
    if file.is_dir():
        raise RequestError(f"{shown(file)}: is a folder; give a file")
    (source,) = find_sources([file])
    if not source.format.has_columns:
        raise RequestError(f"{shown(file)}: a plain text has no labels; give a table with columns word and label")
    # Whether it has these columns is not asked of the reader: it would advise an option that is not there.
    with open_table(source, None, ("text", "word", "label")) as table:
        column = next((name for name in ("text", "word") if name in table.columns), None)
        if column is None or "label" not in table.columns:
            raise RequestError(f"{shown(file)}: a list of words has columns label and text (or word); rename them so")
        entries = []
        for row in table.rows:
            where = source.location(row.line)
            word = text_value(row.values.get(column), column, where)
            label = plain_value(row.values.get("label"), "label", where)
            if not word or label is None:
                raise RequestError(f"{where}: the {column if not word else 'label'} is missing")
            entries.append((word.strip(), label))
    return entries


def words_of_project() -> tuple[Path, list[tuple[str, str]]]:
    """The file and the entries of the one document set whose texts are single words with labels.

    Raises:
        RequestError: if there is none, or several.
    """
    documents = load_documents().select(["dataset", "text", "label"]).to_pylist()
    sets: dict[str, list[tuple[str, str]]] = {}
    others = set()
    for row in documents:
        if row["label"] is None or len(row["text"].split()) != 1:
            others.add(row["dataset"])
        else:
            sets.setdefault(row["dataset"], []).append((row["text"].strip(), row["label"]))
    found = {name: entries for name, entries in sets.items() if name not in others}
    if len(found) != 1:
        there = f"several are: {', '.join(sorted(found))}" if found else "none is"
        raise RequestError(
            f"--words: which words to tune on? Of the sets in {paths.DOCUMENTS} that are single words with labels, "
            f"{there}; give a file with columns word and label, such as an opinion lexicon"
        )
    ((name, entries),) = found.items()
    return paths.DOCUMENTS / f"{name}.parquet", entries


@dataclass(frozen=True, slots=True)
class Candidate:
    """A mechanism over the words. ``t``: 0 for madlib, None for a mechanism that has none."""

    mechanism: str
    t: float | None
    kernel: Kernel

    @property
    def label(self) -> str:
        """What a legend says."""
        return self.mechanism if self.t is None or self.mechanism == "madlib" else f"{self.mechanism} t = {self.t:g}"


def families(
    names: Sequence[str], ts: Sequence[float], vectors: Vectors, params: MechanismParams
) -> dict[str, list[Candidate]]:
    """Candidates by the mechanism that is tuned, t rising; those of one mechanism share a row of ε, and noise.

    Vickrey begins with t = 0, which is madlib and stands for it, unless the input is left out of the candidates.
    """
    made: dict[str, list[Candidate]] = {}
    whole = "vickrey" in names and not params.vickrey.exclude_input
    for name in names:
        if name == "vickrey":
            made[name] = []
            for t in sorted({0.0, *ts}):
                own = replace(params, vickrey=VickreyParams(t, 2, params.vickrey.exclude_input))
                shown_as = "madlib" if whole and t == 0 else name
                made[name].append(Candidate(shown_as, t, build_over(name, vectors, own)))
        elif not (name == "madlib" and whole):
            made[name] = [Candidate(name, 0.0 if name == "madlib" else None, build_over(name, vectors, params))]
    return made


def row_of_epsilons(kernel: Kernel, labels: Ids, max_loss: float, rng: np.random.Generator) -> list[float]:
    """STEPS doubling ε of which the last but one is the first that keeps the loss, as far as few draws can tell.

    Those that the mechanism refuses are left out.

    Raises:
        RequestError: if the loss is kept by none, or by all.
    """

    def loss(epsilon: float) -> float:
        # Two draws of each word: a standard error of at most 0.5/√(2W), half a percent of 5,000 words.
        return measure(kernel, epsilon, labels, rng, n_draws=2, n_runs=1).utility_loss

    epsilon, least = 1.0, math.inf
    while epsilon > FEWEST and _accepts(kernel, epsilon) and loss(epsilon) < max_loss:
        epsilon /= 2
    while epsilon < MOST:
        if _accepts(kernel, epsilon):
            least = min(least, loss(epsilon))
            if least < max_loss:
                break
        epsilon *= 2
    if not FEWEST < epsilon < MOST:
        raise RequestError(
            f"{kernel.name}: no epsilon from {FEWEST:g} to {MOST:g} has a utility loss below {max_loss:g} that a "
            f"smaller one has not; the smallest found was {least:g}; allow another loss, or say which --epsilons to try"
        )
    row = [epsilon * 2.0 ** (step - STEPS + 2) for step in range(STEPS)]
    return [one for one in row if _accepts(kernel, one)]


def _accepts(kernel: Kernel, epsilon: float) -> bool:
    try:
        kernel.noise(np.full(1, epsilon), stream(0, "tune", "does it accept"))
    except ParameterError:
        return False
    return True


Row = tuple[Candidate, Tradeoff]


def measure_all(
    made: dict[str, list[Candidate]],
    row_of: dict[str, list[float]],
    labels: Ids,
    seed: int,
    n_draws: int,
    n_runs: int,
    advance: Callable[[int], None],
) -> dict[str, list[Row]]:
    """The trade-off of every candidate at every ε of its row, by the mechanism that is tuned, in that order.

    Args:
        advance: is told of each finished run.
    """
    found: dict[str, list[Row]] = {}
    for name, family in made.items():
        kernels = [one.kernel for one in family]
        found[name] = []
        for epsilon in row_of[name]:
            rng = stream(seed, "tune", name, repr(epsilon))
            done = measure_together(kernels, epsilon, labels, rng, None, n_draws, n_runs, advance)
            found[name] += zip(family, done, strict=True)
    return found


def _rows_of(name: str, found: dict[str, list[Row]]) -> list[Row]:
    """The rows of a mechanism; those of madlib may stand in vickrey's."""
    return found[name] if name in found else [row for row in found["vickrey"] if row[0].mechanism == name]


def choose(rows: Sequence[Row], max_loss: float) -> tuple[Row | None, str | None]:
    """What Algorithm 2 chooses of one mechanism's rows, and if it is nothing, why."""
    by_t = {(one.t or 0.0, tradeoff.epsilon): (one, tradeoff) for one, tradeoff in rows}
    epsilons = sorted({epsilon for _, epsilon in by_t})
    grid = sorted({t for t, _ in by_t} - {0.0})
    try:
        selected = select(lambda t, epsilon: by_t[t, epsilon][1], max_loss, epsilons, grid)
    except RequestError as error:
        return None, str(error)
    return by_t[selected.t, selected.chosen.epsilon], None


def of_largest_error(rows: Sequence[Row], max_loss: float) -> Row | None:
    """The row of largest inference error among those that keep the loss, whatever its ε; None if none keeps it.

    Algorithm 2 does not look beyond the smallest ε that keeps the loss at t = 0, where another t may do better.
    """
    keeping = [row for row in rows if row[1].utility_loss <= max_loss]
    return max(keeping, key=lambda row: row[1].inference_error, default=None)


def tune(
    mechanism: str = "vickrey",
    *,
    max_loss: float | None = None,
    compare: Sequence[str] = (),
    words: Path | None = None,
    space: str = "word",
    space_of: str | None = None,
    epsilons: Sequence[float] = (),
    t: Sequence[float] = (),
    n_runs: int = RUNS,
    n_draws: int = DRAWS,
    seed: int | None = None,
    out: Path | None = None,
) -> dict[str, Any]:
    """Measure a mechanism, or compare several, and choose ε and t where a largest loss is given.

    Args:
        mechanism: what to tune.
        max_loss: C, the largest utility loss, in (0, 1).
        compare: mechanisms to measure instead of one; then ``max_loss`` may be left out.
        words: file of labelled words; None looks for a document set of such words.
        space: embedding: word, gst or mst.
        space_of: a model that was brought in, NAME or NAME@HASH, instead.
        epsilons: to measure; if there are none, a row is looked for.
        t: of vickrey, to try besides 0; none are those of Algorithm 2.
        n_runs: of n_draws of each word.
        n_draws: at least 2.
        seed: of the noise; None is that of params.yaml.
        out: folder for tuning.json, tuning.html, frontier.csv, frontier.svg and epsilon.svg.

    Returns:
        What tuning.json holds: ``words``, ``space``, ``frontier`` (rows of COLUMNS); by mechanism ``chosen``, with the
        reason in ``none`` if nothing is, and ``of_largest_error``.

    Raises:
        RequestError: if the request is wrong, words or embedding are missing, or the words cannot be told apart.
    """
    params = load_params()
    names = list(dict.fromkeys(compare)) or [mechanism]
    _check(names, max_loss, bool(compare), epsilons, t, n_runs, n_draws, out)
    seed = params.seed if seed is None else seed
    source, entries = words_of_project() if words is None else (words, read_words(words))
    embedding, about = _embedding(space, space_of)
    listed = known_words(entries, embedding.tokens)
    if len(listed.classes) < 2:
        raise RequestError(
            f"{shown(source)}: {about['folder']} knows {len(listed.rows):,} of its words, with {len(listed.classes)} "
            "labels; words of at least two labels are needed"
        )
    vectors = np.ascontiguousarray(embedding.vectors[listed.rows])
    made = families(names, t or GRID, vectors, params.mechanisms)
    row_of = {}
    for name, family in made.items():
        rng = stream(seed, "tune", name, "row")
        row_of[name] = list(epsilons) or row_of_epsilons(
            family[0].kernel, listed.labels, USUAL_LOSS if max_loss is None else max_loss, rng
        )
    n_steps = sum(
        len(row_of[name]) * n_runs for name, family in made.items() if not isinstance(family[0].kernel, ClosedForm)
    )
    progress = Progress("tune", n_steps, "runs")
    work = len(listed.rows) * n_draws
    found = measure_all(
        made, row_of, listed.labels, seed, n_draws, n_runs, lambda done: progress.advance(done, done * work)
    )
    if n_steps:
        progress.finish()
    chosen = {name: choose(_rows_of(name, found), max_loss) for name in names} if max_loss is not None else {}
    result = {
        "mechanisms": names,
        "words": {"file": source.name, "sha256": sha256(source), **listed.summary()},
        "space": about,
        "epsilon_in": in_words(list(made)),
        "max_loss": max_loss,
        "runs": n_runs,
        "draws": n_draws,
        "seed": seed,
        "parameters": {name: asdict(params.mechanisms).get(name, {}) for name in made},
        "no_guarantee": {name: family[-1].kernel.no_guarantee for name, family in made.items()},
        "frontier": [_as_row(*one) for rows in found.values() for one in rows],
        "chosen": {
            name: {"none": why} if one is None else {**_as_row(*one), "none": None}
            for name, (one, why) in chosen.items()
        },
        "of_largest_error": {
            name: None if best is None else _as_row(*best)
            for name in chosen
            for best in [of_largest_error(_rows_of(name, found), max_loss or 0.0)]
        },
    }
    if out is not None:
        _write(result, found, [one for one, _ in chosen.values() if one is not None], out)
    return result


def _check(
    names: Sequence[str],
    max_loss: float | None,
    comparing: bool,
    epsilons: Sequence[float],
    t: Sequence[float],
    n_runs: int,
    n_draws: int,
    out: Path | None,
) -> None:
    option = "--compare" if comparing else "--mechanism"
    for name in names:
        if name not in MECHANISMS:
            raise RequestError(f"{option} {name}: there is no such mechanism; there are {', '.join(MECHANISMS)}")
    if max_loss is None and not comparing:
        raise RequestError("--max-loss: give the largest utility loss, a share of 1, or --compare mechanisms without")
    if max_loss is not None and not 0 < max_loss < 1:
        raise RequestError(f"--max-loss {max_loss:g}: must lie between 0 and 1")
    if any(not 0 < one < math.inf for one in epsilons):
        raise RequestError("--epsilons: each must be finite and greater than 0")
    if list(epsilons) != sorted(set(epsilons)):
        raise RequestError("--epsilons: must rise")
    if any(not 0 <= one <= 1 for one in t):
        raise RequestError("--t: each must lie between 0 and 1")
    if t and "vickrey" not in names:
        raise RequestError(f"--t: of {', '.join(names)} none has a t; vickrey has")
    if n_runs < 1:
        raise RequestError(f"--runs {n_runs}: must be at least 1")
    if n_draws < 2:
        raise RequestError(f"--draws {n_draws}: must be at least 2")
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


def _as_row(one: Candidate, tradeoff: Tradeoff) -> dict[str, Any]:
    values = (
        one.mechanism, one.t, tradeoff.epsilon, tradeoff.inference_error, tradeoff.inference_error_sd,
        tradeoff.utility_loss, tradeoff.utility_loss_sd, tradeoff.n_runs,
    )  # fmt: skip
    # One run has no deviation, and JSON no NaN.
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in zip(COLUMNS, values, strict=True)
    }


def _shown(found: dict[str, list[Row]], chosen: Sequence[Row]) -> list[Candidate]:
    """What a figure has room for: of many t a few, and those that were chosen."""
    every = list({id(one): one for rows in found.values() for one, _ in rows}.values())
    if len(every) <= SHOWN:
        return every
    wanted = {id(one) for one, _ in chosen}
    few = [one for one in every if id(one) in wanted or one.t is None or one.t in _FEW_T]
    spare = [one for one in few if id(one) not in wanted]
    return [one for one in few if id(one) in wanted or one in spare[: SHOWN - len(wanted)]]


def _lines(found: dict[str, list[Row]], candidates: Sequence[Candidate]) -> list[Frontier]:
    lines = []
    for candidate in candidates:
        own = [tradeoff for rows in found.values() for one, tradeoff in rows if one is candidate]
        columns = zip(
            *(
                (
                    one.epsilon, one.utility_loss, one.inference_error, np.nan_to_num(one.utility_loss_sd),
                    np.nan_to_num(one.inference_error_sd),
                )
                for one in own
            ),
            strict=True,
        )  # fmt: skip
        lines.append(Frontier(candidate.label, *map(list, columns)))
    return lines


def _write(result: dict[str, Any], found: dict[str, list[Row]], chosen: Sequence[Row], out: Path) -> None:
    """All files of the folder, each whole or not at all; what else is in it stays."""
    lines = _lines(found, _shown(found, chosen))
    rings = [(tradeoff.utility_loss, tradeoff.inference_error) for _, tradeoff in chosen]
    titles = "Inference error over utility loss (larger points: larger ε)", "Inference error over ε"
    figures = [
        error_over_loss("frontier", titles[0], lines, max_loss=result["max_loss"], chosen=rings),
        error_over_epsilon("epsilon", titles[1], lines, unit=shared_unit(list(found))),
    ]
    style = (resources.files("lexveil.report") / "page.css").read_text(encoding="utf-8")
    notes = [*_about(result), *_choices(result), *_warnings(result)]
    html = page("Tuning", style, notes, list(zip(titles, figures, strict=True)), _cells(_few(result)))
    for file, text in (
        ("frontier.svg", standalone(figures[0])),
        ("epsilon.svg", standalone(figures[1])),
        ("tuning.html", html),
        ("frontier.csv", to_csv(COLUMNS, [list(row.values()) for row in result["frontier"]])),
    ):
        with atomic_file(out / file) as partial:
            partial.write_text(text, encoding="utf-8")
    write_json(result, out / "tuning.json")


def as_table(result: dict[str, Any]) -> list[str]:
    """The result as lines for people."""
    cells = _cells(_few(result))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return [*_about(result), *table, *_choices(result), *_warnings(result)]


def _few(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the frontier that people are shown: of many t a few, and those that were chosen."""
    rows: list[dict[str, Any]] = result["frontier"]
    if len({(row["mechanism"], row["t"]) for row in rows}) <= SHOWN:
        return rows
    chosen = {(row["mechanism"], row["t"]) for row in result["chosen"].values() if row["none"] is None}
    return [row for row in rows if row["t"] is None or row["t"] in _FEW_T or (row["mechanism"], row["t"]) in chosen]


def _cells(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    head = ["mechanism", "t", "ε", "inference error", "utility loss"]
    return [head] + [
        [
            row["mechanism"],
            formatting.MISSING if row["t"] is None else f"{row['t']:g}",
            f"{row['epsilon']:g}",
            *(_mean_sd(row, name) for name in ("inference_error", "utility_loss")),
        ]
        for row in rows
    ]


def _mean_sd(row: dict[str, Any], name: str) -> str:
    if row["n_runs"] == 0:
        return f"{row[name]:.4f} (exact)"
    return f"{row[name]:.4f}" if row[f"{name}_sd"] is None else f"{row[name]:.4f} ± {row[f'{name}_sd']:.4f}"


def _about(result: dict[str, Any]) -> list[str]:
    words, space = result["words"], result["space"]
    labels = ", ".join(f"{count:,} of label {name}" for name, count in words["labels"].items())
    return [
        f"{words['used']:,} of {words['read']:,} words ({labels}); left out: {words['unknown']:,} that "
        f"{space['folder']} does not know, {words['repeated']:,} repeated, {words['with_several_labels']:,} with "
        "several labels"
    ]


def _choices(result: dict[str, Any]) -> list[str]:
    said = []
    for name, row in result["chosen"].items():
        if row["none"] is not None:
            said.append(f"{name}: nothing chosen; {row['none']}")
            continue
        t = "" if row["t"] is None or name == "madlib" else f", t = {row['t']:g}"
        said.append(
            f"{name}: ε = {row['epsilon']:g}{t}, for a utility loss of at most {result['max_loss']:g}: inference error "
            f"{_mean_sd(row, 'inference_error')}, utility loss {_mean_sd(row, 'utility_loss')}"
        )
        best = result["of_largest_error"][name]
        if best["inference_error"] > row["inference_error"]:
            t = "" if best["t"] is None or name == "madlib" else f", t = {best['t']:g}"
            weaker = "weaker" if best["epsilon"] > row["epsilon"] else "stronger"
            said.append(
                f"{name}: of all that was measured the inference error is largest at ε = {best['epsilon']:g}{t}: "
                f"{_mean_sd(best, 'inference_error')}, utility loss {_mean_sd(best, 'utility_loss')}; the guarantee "
                f"there is {weaker}"
            )
    return said


def _warnings(result: dict[str, Any]) -> list[str]:
    space = result["space"]
    return [
        f"± is one standard deviation over {result['runs']} runs of {result['draws']} draws of each word."
        if result["runs"] > 1
        else f"One run of {result['draws']} draws of each word: how much runs differ is not known.",
        f"{result['epsilon_in']} It is measured in the embedding {space['name']}@{space['hash']}: the same number "
        "means something else in any other, also in one trained anew.",
        f"An experiment on public words with seed {result['seed']}: no privacy of any text is claimed by it.",
        *(f"{name} has no guarantee: {why}." for name, why in result["no_guarantee"].items() if why is not None),
    ]
