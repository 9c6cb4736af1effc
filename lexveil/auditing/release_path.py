"""Audits of whole releases of a toy project: what came out, what it cost, and what was said of it.

A release goes the way of a user's: the functions on columns in memory and on files, batches, processes, the ledger.
What must come of it is computed from the documents by the audit's own rules.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.accounting.record import PrivacyRecord
from lexveil.auditing.fit import FitResult, independence_audit
from lexveil.auditing.kernels import fit
from lexveil.auditing.laws import Law
from lexveil.auditing.sampled import SampledResult, sampled_audit
from lexveil.auditing.toy_project import REPEATED, WORDS_PER_TEXT, Fate, Tokens, ToyProject
from lexveil.errors import LexveilError
from lexveil.ledger.ledger import Ledger
from lexveil.ledger.statement import subject, summary
from lexveil.privatization.adapters.files import ReleaseHooks, privatize_file
from lexveil.privatization.adapters.memory import privatize
from lexveil.request import FileRequest, Request
from lexveil.types import Ids

PER_SUBJECT = 3  # documents
ASKED = 20  # subjects whose balance is asked for
ROUNDING = 2e-9  # of a nano-epsilon's rounding, for each document
Document = tuple[Tokens, ...]


@dataclass(slots=True)
class Release:
    """One release, and what was seen of it.

    Attributes:
        names: the document of each row; outputs: (rows, columns) texts that came out.
        logged: of each row, (class action, ε) of its tokens in order.
    """

    names: list[str]
    documents: dict[str, Document]
    budget: float
    consistent: bool
    outputs: Sequence[tuple[str | None, ...]]
    logged: list[list[tuple[str, float]]]
    subjects: list[str]
    record: PrivacyRecord

    def rows(self, name: str) -> list[int]:
        """The rows of one document."""
        return [row for row, one in enumerate(self.names) if one == name]


@dataclass(frozen=True, slots=True)
class Releasing:
    """How releases are made."""

    toy: ToyProject
    mechanism: str
    mode: str
    seed: int | None

    def options(self, budget: float, consistent: bool) -> dict[str, object]:
        """The options of a release."""
        policy = self.toy.policy
        return {
            "mechanism": self.mechanism, "strategy": self.toy.strategy, "document_budget": budget, "mode": self.mode,
            "seed": self.seed, "consistent": consistent, "stopwords": policy.stopwords,
            "punctuation": policy.punctuation, "oov": policy.oov,
        }  # fmt: skip

    def in_memory(
        self, documents: dict[str, Document], names: list[str], budget: float, consistent: bool, run: str = "memory"
    ) -> Release:
        """Release a column in memory."""
        texts = {name: self.toy.written(document[0]) for name, document in documents.items()}
        subjects = _subjects(len(names), run)
        done = privatize(
            [texts[name] for name in names],
            Request.of(self.options(budget, consistent) | {"workers": 1}),
            subjects=subjects if self.mode == "release" else None,
            project=self.toy.model,
        )
        outputs = [(value,) for value in done.values]
        logged = _logged(done.token_log, len(names))
        return Release(names, documents, budget, consistent, outputs, logged, subjects, done.record)

    def of_files(self, documents: dict[str, Document], names: list[str], budget: float, workers: int) -> Release:
        """Release a file of two text columns."""
        folder, run = self.toy.model.project.folder, f"{budget!r}-{workers}"
        source, target = folder / f"in-{run}.jsonl", folder / f"out-{run}.jsonl"
        subjects = _subjects(len(names), f"file {run}")
        written = {name: [self.toy.written(column) for column in document] for name, document in documents.items()}
        with source.open("w", encoding="utf-8") as file:
            for name, key in zip(names, subjects, strict=True):
                title, body = written[name]
                file.write(json.dumps({"who": key, "title": title, "body": body}) + "\n")
        columns = {"text_column": ("title", "body"), "subject_column": "who" if self.mode == "release" else None}
        request = FileRequest.of(self.options(budget, consistent=False) | columns | {"workers": workers})
        done = privatize_file(source, target, request, project=self.toy.model)
        outputs = []
        for line in target.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            outputs.append((row["title"], row["body"]))
        logged = _logged(pq.read_table(_beside(target, "tokens.parquet")), len(names))
        return Release(names, documents, budget, False, outputs, logged, subjects, done.record)

    def capped(self, documents: dict[str, Document], budget: float) -> tuple[Release, list[str]]:
        """A release under a cap that the documents of a subject exceed together, and what is wrong with it."""
        model, cap = self.toy.model, 1.5 * budget
        params = model.params.model_copy(update={"ledger": model.params.ledger.model_copy(update={"cap": cap})})
        names = [name for name in documents for _ in range(PER_SUBJECT)]
        toy = replace(self.toy, model=replace(model, project=replace(model.project, params=params)))
        release = replace(self, toy=toy).in_memory(documents, names, budget, consistent=False, run="capped")
        spent: dict[str, float] = defaultdict(float)
        for key, logged in zip(release.subjects, release.logged, strict=True):
            spent[key] += math.fsum(epsilon for _, epsilon in logged)
        wrong = ["a subject spent more than its cap"] if max(spent.values()) > cap * (1 + 1e-9) else []
        hidden = [not logged for logged in release.logged]
        if [text is None for (text,) in release.outputs] != hidden or not any(hidden):
            wrong.append("documents beyond the cap were not withheld")
        return release, wrong

    def refused_or_streamed(self, documents: dict[str, Document], budget: float) -> tuple[list[Release], list[str]]:
        """Releases that cost what no output shows: one that a gate refuses after the noise, one to standard output.

        Returns:
            What each must have cost, and what is wrong with when it was paid.
        """
        names = list(documents) * PER_SUBJECT
        folder, wrong = self.toy.model.project.folder, []
        made = []

        for run in ("refused", "streamed"):
            subjects = _subjects(len(names), run)
            source = folder / f"{run}.jsonl"
            rows = (
                {"who": key, "text": self.toy.written(documents[name][0])}
                for name, key in zip(names, subjects, strict=True)
            )
            source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            request = FileRequest.of({"subject_column": "who", "workers": 1, **self.options(budget, False)})
            project = self.toy.model
            watch = _Watch(self.toy)
            if run == "refused":
                with contextlib.suppress(LexveilError):
                    privatize_file(source, folder / f"{run}.out.jsonl", request, project=project, hooks=_Refusal())
            else:
                with contextlib.redirect_stdout(watch):  # type: ignore[type-var]
                    record = privatize_file(source, "-", request, project=project).record
                if watch.state not in PAID:
                    wrong.append(
                        f"the first byte left on standard output while its release was {watch.state or 'unknown'}"
                    )
            logged = [
                [(fate.action, fate.epsilon) for fate in self.toy.fates(documents[name], budget, consistent=False)]
                for name in names
            ]
            made.append((names, subjects, logged))
        return [
            Release(names, documents, budget, False, [], logged, subjects, record) for names, subjects, logged in made
        ], wrong


PAID = ("spent", "written", "committed")


class _Refusal(ReleaseHooks):
    """Refuses whatever was written."""

    def written(self, *_: Any) -> Any:
        """Refuse."""
        raise LexveilError("refused by the audit")


class _Watch:
    """Stands for standard output, and looks into the ledger when the first byte comes."""

    def __init__(self, toy: ToyProject) -> None:
        self.toy, self.state, self.buffer = toy, "", self

    def write(self, data: bytes) -> int:
        """Forget the data."""
        if not self.state and data:
            with Ledger.open(self.toy.model.path(self.toy.model.params.ledger.folder), None, make=False) as ledger:
                self.state = summary(ledger, None).releases[0].state
        return len(data)

    def flush(self) -> None:
        """Nothing is kept."""


def _beside(target: Path, ending: str) -> Path:
    return target.with_name(f"{target.name}.{ending}")


def _subjects(n: int, run: str) -> list[str]:
    return [f"{run}, subject {row // PER_SUBJECT}" for row in range(n)]


def _logged(token_log: pa.Table, rows: int) -> list[list[tuple[str, float]]]:
    columns = [token_log.column(name).to_pylist() for name in ("row", "action", "epsilon")]
    logged: list[list[tuple[str, float]]] = [[] for _ in range(rows)]
    for row, action, epsilon in zip(*columns, strict=True):
        logged[row - 1].append((action, epsilon))
    return logged


def claims(release: Release, mode: str) -> list[str]:
    """What is wrong with the record's claim: one for a release, none for an experiment."""
    claimed = release.record.guarantee.formula != "none"
    if claimed and mode != "release":
        return ["the record claims privacy for an experiment, whose seed is known"]
    return [] if claimed or mode != "release" else ["the record claims nothing for a release"]


ACTIONS = {"perturb": "perturbed", "keep": "kept", "drop": "dropped", "sample": "sampled"}


def composition(release: Release, toy: ToyProject) -> list[str]:
    """What is wrong with the ε of a release: each ε_i, their sum in each document, and the record's word for both."""
    wrong, most, largest = [], 0.0, 0.0
    fates = {
        name: toy.fates(document, release.budget, release.consistent) for name, document in release.documents.items()
    }
    for row, name in enumerate(release.names):
        logged, must = release.logged[row], fates[name]
        if [action for action, _ in logged] != [ACTIONS[fate.action] for fate in must]:
            wrong.append(f"document {name!r}: the token log says other fates than the policy")
            continue
        for (_, epsilon), fate in zip(logged, must, strict=True):
            if abs(epsilon - fate.epsilon) > 1e-8 * fate.epsilon:
                wrong.append(f"document {name!r}: a token spends {epsilon:.6g} where {fate.epsilon:.6g} is its share")
        spent = math.fsum(epsilon for _, epsilon in logged)
        if spent > release.budget * (1 + 1e-12):
            wrong.append(f"document {name!r}: Σε exceeds B by {spent - release.budget:.3g}")
        most, largest = max(most, spent), max(largest, max((epsilon for _, epsilon in logged), default=0.0))
    record, said = release.record, release.record.spent
    if said is not None and said.most is not None and abs(said.most - most) > 1e-9 * most:
        wrong.append(f"the record says that a document spent {said.most:.6g} at most; it was {most:.6g}")
    claimed = getattr(said, "max_token_epsilon", None)
    if claimed is not None and abs(claimed - largest) > 1e-8 * largest:
        wrong.append(f"the record says that a token spent {claimed:.6g} at most; it was {largest:.6g}")
    if any(budget != release.budget for budget in record.document_budget.values()):
        wrong.append("the record says another document budget")
    return list(dict.fromkeys(wrong))


def charges(releases: Sequence[Release], toy: ToyProject) -> list[str]:
    """What is wrong with what the ledger says: each subject's charge is the sum of ε_i of its documents' token logs."""
    owed: dict[str, list[float]] = defaultdict(list)
    for release in releases:
        for key, logged in zip(release.subjects, release.logged, strict=True):
            owed[key] += [epsilon for _, epsilon in logged]
    wrong = []
    rows = sum(len(release.names) for release in releases)
    with Ledger.open(toy.model.path(toy.model.params.ledger.folder), None, make=False) as ledger:
        total, spent = math.fsum(math.fsum(each) for each in owed.values()), summary(ledger, None).spent
        if abs(total - spent) > ROUNDING * rows + 1e-9 * total:
            wrong.append(f"the ledger charged {spent:.9g} in all, the token logs spent {total:.9g}")
        for key in sorted(owed)[:: max(1, len(owed) // ASKED)]:
            charged, spent = subject(ledger, key, None).epsilon, math.fsum(owed[key])
            if abs(charged - spent) > ROUNDING * PER_SUBJECT + 1e-9 * spent:
                wrong.append(f"a subject was charged {charged:.9g} where its token log spent {spent:.9g}")
                break
    return wrong


def clear_words(release: Release, toy: ToyProject) -> list[str]:
    """Words in the output that are none of the mechanism's and that no policy keeps."""
    wrong = []
    for row, name in enumerate(release.names):
        fates = toy.fates(release.documents[name], release.budget, release.consistent)
        out = [code for text in release.outputs[row] for code in toy.read(text)]
        stay = [fate for fate in fates if fate.action != "drop"]
        if len(out) != len(stay):
            wrong.append(f"document {name!r}: {len(out)} tokens came out where {len(stay)} must")
        elif any(code < 0 and fate.action != "keep" for code, fate in zip(out, stay, strict=True)):
            wrong.append(f"document {name!r}: what is no word of the mechanism came out in the place of a token")
    return list(dict.fromkeys(wrong))


def outputs_of(release: Release, toy: ToyProject, name: str) -> tuple[Ids, list[Fate]]:
    """(rows, tokens) what came out for one document, and the fates of its tokens, without those that are dropped."""
    fates = toy.fates(release.documents[name], release.budget, release.consistent)
    stay = [fate for fate in fates if fate.action != "drop"]
    rows = [[code for text in release.outputs[row] for code in toy.read(text)] for row in release.rows(name)]
    whole = [codes for codes in rows if len(codes) == len(stay)]
    return np.array(whole, dtype=np.int64).reshape(len(whole), len(stay)), stay


def laws(release: Release, toy: ToyProject, law: Law, error: float, rng: np.random.Generator) -> FitResult:
    """Every token of every document against the law of its word at its share of the budget."""
    drawn: dict[tuple[int, float], list[Ids]] = defaultdict(list)
    uniform: list[Ids] = []
    for name in release.documents:
        if name.startswith("same"):
            continue
        codes, fates = outputs_of(release, toy, name)
        for at, fate in enumerate(fates):
            some = codes[:, at]
            if fate.action == "perturb" and fate.epsilon > 0:
                drawn[fate.number, fate.epsilon].append(some[some >= 0])
            elif fate.action == "sample":
                uniform.append(some[some >= 0])
    joined = {kind: np.concatenate(parts) for kind, parts in drawn.items()}
    joined = {kind: codes for kind, codes in joined.items() if len(codes) >= 40}
    found = fit(joined, law, release.budget / WORDS_PER_TEXT, error / 2, rng, with_power=True)
    if not uniform:
        return found
    seen = np.bincount(np.concatenate(uniform), minlength=len(toy.tokens))
    from scipy.stats import binom

    n, share = int(seen.sum()), 1 / len(toy.tokens)
    chance = float(2 * np.minimum(binom.cdf(seen, n, share), binom.sf(seen - 1, n, share)).min()) * len(seen)
    if chance < error / 2:
        return FitResult(
            found.claimed, found.tests, found.draws, error, chance, "sampled tokens are not uniform", found.factor, True
        )
    return found


def copies(release: Release, toy: ToyProject) -> list[str]:
    """Of a consistent release: equal tokens of a document must have equal replacements."""
    wrong = []
    for name in release.documents:
        tokens, fates = outputs_of(release, toy, name)
        order = [fate for fate in fates if fate.action != "drop"]
        for at, fate in enumerate(order):
            if fate.leader != at and fate.leader < len(order) and (tokens[:, at] != tokens[:, fate.leader]).any():
                wrong.append(f"document {name!r}: equal tokens were not replaced alike")
    return list(dict.fromkeys(wrong))


def losses(release: Release, toy: ToyProject, law: Law, confidence: float, epsilon: float) -> SampledResult:
    """Bounds of the loss between documents that differ in their first token, whole outputs compared."""
    heads = [name for name in release.documents if name.startswith("head")]
    fates = {name: toy.fates(release.documents[name], release.budget, release.consistent) for name in heads}
    codes, number = [], dict[tuple[str | None, ...], int]()
    for name in heads:
        codes.append(np.array([number.setdefault(release.outputs[row], len(number)) for row in release.rows(name)]))
    allowed = np.full((len(heads), len(heads)), np.inf)
    for a, first in enumerate(heads):
        for b, second in enumerate(heads):
            pairs = list(zip(fates[first], fates[second], strict=False))
            same = len(fates[first]) == len(fates[second]) and all(
                (one.action, one.epsilon) == (other.action, other.epsilon) for one, other in pairs
            )
            if same:
                allowed[a, b] = math.fsum(
                    one.epsilon * float(law.distances(np.array([one.number]), np.array([other.number]))[0, 0])
                    for one, other in pairs
                    if one.number != other.number and one.action == "perturb"
                )
    n = min(map(len, codes))
    starts = {"order": 0, "choose": n // 4, "test": 2 * (n // 4)}

    def sample(which: int, size: int, stage: str) -> Ids:
        return codes[which][starts[stage] : starts[stage] + size]

    return sampled_audit(sample, allowed, epsilon, n, confidence)


def reuse(
    releases: Sequence[Release], toy: ToyProject, name: str, error: float, epsilon: float
) -> tuple[str | None, str, FitResult | None]:
    """Whether any noise was used twice: no long enough run of outputs of one word may come twice, anywhere.

    Args:
        name: of the document of one word.

    Returns:
        What is wrong, what was looked at, and the test of pairs side by side; None where words hardly move.
    """
    runs = [
        codes for release in releases if name in release.documents and (codes := outputs_of(release, toy, name)[0]).size
    ]
    if not runs:
        return "no text of one word came out whole", "", None
    every = np.concatenate([codes.ravel() for codes in runs])
    share = float(((np.bincount(every - every.min()) / len(every)) ** 2).sum())
    length = math.ceil((50 + 2 * math.log2(len(every))) / -math.log2(min(share, 1 - 1e-9)))
    if length > REPEATED // 2:
        return None, f"inconclusive: outputs of one word are equal {share:.0%} of the time", None
    windows = [
        row[start : start + length].tobytes()
        for codes in runs
        for row in codes.astype(np.int16)
        for start in range(len(row) - length + 1)
    ]
    wrong = "noise is used twice" if len(set(windows)) < len(windows) else None
    tested = independence_audit(_side_by_side(runs), share, error, epsilon)
    return wrong, f"{len(windows):,} runs of {length} outputs of one word: none twice", tested


def _side_by_side(runs: Sequence[Ids]) -> dict[str, tuple[Ids, Ids]]:
    """Outputs that must be independent, of releases of one word (rows, tokens)."""
    codes = max(runs, key=len)
    pairs = {f"tokens {lag} apart": (codes[:, :-lag].ravel(), codes[:, lag:].ravel()) for lag in (1, 2, 3)}
    half = codes.shape[1] // 2
    pairs["the two halves of a document"] = codes[:, :half].ravel(), codes[:, half : 2 * half].ravel()
    pairs["documents side by side"] = codes[:-1].ravel(), codes[1:].ravel()
    for number, (one, other) in enumerate(pairwise(runs), 1):
        rows, width = min(len(one), len(other)), min(one.shape[1], other.shape[1])
        pairs[f"releases {number} and {number + 1}"] = one[:rows, :width].ravel(), other[:rows, :width].ravel()
    return pairs
