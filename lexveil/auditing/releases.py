"""The releases that an audit makes of a toy project, and what it finds in them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from lexveil.accounting.budgets import Policy
from lexveil.auditing import release_path
from lexveil.auditing.findings import AuditFinding
from lexveil.auditing.kernels import law_of
from lexveil.auditing.release_path import Document, Release
from lexveil.auditing.request import AuditRequest
from lexveil.auditing.toy_project import REPEATED, WORDS_PER_TEXT, ToyProject, documents, make
from lexveil.config import Params
from lexveil.formats.chunks import ROWS
from lexveil.runtime.stage import Progress

SAME = 4  # documents of one word at the start of each batch
BATCHES = 6  # at least, of a release by several processes
LEAST = 40  # of each other document


def audit_releases(
    request: AuditRequest, params: Params, policy: Policy, folder: Path, epsilons: Iterable[float], error: float,
    rng: np.random.Generator,
) -> list[AuditFinding]:  # fmt: skip
    """Release documents of a toy project in several ways, and compare with what must come of them."""
    toy = make(folder, request.mechanism, request.strategy, policy, params, request.epsilon)
    law = law_of(request.mechanism, toy.space, params.mechanisms.model_dump())
    other = next((one for one in sorted(epsilons) if one != request.epsilon), request.epsilon)
    progress = Progress("audit, releases", 5 + (request.workers > 1), "releases")
    made = _releases(request, toy, params.seed, other, rng, progress)
    progress.finish()
    findings: list[AuditFinding] = []
    for name, release in made.items():
        place = f"release: {request.strategy}, {name}"
        wrong = release_path.composition(release, toy) + release_path.clear_words(release, toy)
        wrong += release_path.claims(release, request.mode)
        wrong += release_path.copies(release, toy) if release.consistent else []
        findings.append(AuditFinding.fact(place, "budget", wrong, "each ε is its share of B, and all are as said"))
        if any(not name.startswith("same") for name in release.documents):
            findings.append(AuditFinding.of(place, release_path.laws(release, toy, law, error, rng)))
    first = made["in memory"]
    place = f"release: {request.strategy}, {request.mode} mode"
    findings.append(AuditFinding.of(place, release_path.losses(first, toy, law, 1 - error, request.epsilon)))
    # In an experiment, two runs of one seed have the same noise: only one is looked at.
    looked = [first] if request.mode == "experiment" else [one for one in made.values() if not one.consistent]
    for name in (name for name in first.documents if name.startswith("same")):
        wrong_noise, seen, tested = release_path.reuse(looked, toy, name, error, request.epsilon)
        noise = AuditFinding.fact(place, "noise", [wrong_noise] if wrong_noise else [], seen)
        findings.append(noise if tested or wrong_noise else AuditFinding(place, "noise", False, None, seen, True))
        findings += [AuditFinding.of(place, tested)] if tested else []
    if request.mode == "release":
        few = {name: document for name, document in first.documents.items() if not name.startswith("same")}
        with contextlib.redirect_stderr(io.StringIO()):
            hidden, late = releasing(request, toy, params.seed).refused_or_streamed(few, first.budget)
            capped, beyond = releasing(request, toy, params.seed).capped(few, first.budget)
        unpaid = release_path.charges([*made.values(), *hidden, capped], toy) + late + beyond
        findings.append(AuditFinding.fact(place, "charges", unpaid, "the ledger charged Σε of the token logs"))
    return findings


def _releases(
    request: AuditRequest, toy: ToyProject, seed: int, other: float, rng: np.random.Generator, progress: Progress
) -> dict[str, Release]:
    policy = toy.policy
    one_column = documents(toy.joined, policy.oov == "sample", shared=bool(toy.shares))
    same: dict[str, Document] = {"same": (("flint",) * REPEATED,)}
    if policy.oov == "sample":
        same["same unknown"] = (("zorblax",) * REPEATED,)
    two_columns: dict[str, Document] = {name: (("heron",), *document) for name, document in one_column.items()}
    halves: dict[str, Document] = {name: ((word[0],) * (REPEATED // 2),) * 2 for name, (word,) in same.items()}
    n = max(LEAST, request.samples // 10)
    path = releasing(request, toy, seed)
    budget, second = WORDS_PER_TEXT * request.epsilon, WORDS_PER_TEXT * other
    names = _arranged(one_column, same, n, rng)
    columns = {**two_columns, **halves}
    made: dict[str, Release] = {}

    def keep(name: str, release: Release) -> None:
        made[name] = release
        progress.advance(1)

    with contextlib.redirect_stderr(io.StringIO()):
        keep("in memory", path.in_memory({**one_column, **same}, names, budget, consistent=False))
        few = _arranged(two_columns, same, max(LEAST, n // 2), rng)
        keep(f"file at ε = {other:.4g}", path.of_files(columns, few, second, 1))
        if request.workers > 1:
            # So many batches that no process works on all of them before another has started.
            many = [names[row % len(names)] if row % ROWS >= SAME else "same" for row in range(BATCHES * ROWS + 10)]
            keep("file, processes", path.of_files(columns, many, budget, request.workers))
        keep("consistent", path.in_memory(one_column, _arranged(one_column, {}, max(LEAST, n // 4), rng), budget, True))
        for run in ("again", "and again"):
            keep(run, path.in_memory(same, list(same) * SAME, budget, consistent=False))
    return made


def releasing(request: AuditRequest, toy: ToyProject, seed: int) -> release_path.Releasing:
    """How the releases of an audit are made."""
    experiment = request.mode == "experiment"
    return release_path.Releasing(toy, request.mechanism, request.mode, seed if experiment else None)


def _arranged(varied: dict[str, Document], same: dict[str, Document], n: int, rng: np.random.Generator) -> list[str]:
    """Names of rows: n of each varied document in any order, and at the start of each batch those of one word."""
    rows = [name for name in varied for _ in range(n)]
    rng.shuffle(rows)
    head = [name for name in same for _ in range(SAME)]
    step = ROWS - len(head)
    return [name for start in range(0, len(rows), step) for name in (*head, *rows[start : start + step])]
