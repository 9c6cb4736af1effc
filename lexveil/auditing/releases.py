"""Audits of whole releases of a toy project: the outputs, the charges, and the records.

The audit releases documents in the ways in which users do: by the functions for columns in memory
and for files, in batches, with several processes and with the ledger. It computes the expected
results from the documents by its own rules.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.stats import binom

from lexveil.auditing.distributions import Claim
from lexveil.auditing.findings import AuditFinding
from lexveil.auditing.fit import FitResult, independence_audit
from lexveil.auditing.kernels import DrawnKind, claim_of, fit
from lexveil.auditing.keys import key_audit
from lexveil.auditing.release_path import PER_SUBJECT, Release, Releasing
from lexveil.auditing.request import AuditRequest
from lexveil.auditing.sampled import SampledResult, sampled_audit
from lexveil.auditing.toy_project import (
    REPEATED,
    WORDS_PER_TEXT,
    Document,
    TokenFate,
    ToyProject,
    documents,
    make,
)
from lexveil.base.logs import quiet
from lexveil.base.types import Floats, Ids
from lexveil.core.accounting.budgets import Policy
from lexveil.io.artifacts.project import Project
from lexveil.io.execution.stage import Progress
from lexveil.io.formats.chunks import ROWS_OF_A_CHUNK
from lexveil.release.ledger.statement import subject, summary

SAME = 4  # documents of one repeated word at the start of each batch
BATCHES = 6  # minimum number of batches of a release by several processes
LEAST_ROWS = 40  # minimum number of rows of each other document
ASKED = 20  # number of subjects whose balance is read from the ledger
ROUNDING = 2e-9  # allowance per document, because charges are rounded up to nano-epsilons
RELATIVE = 1e-9  # relative tolerance for a sum of ε that are rounded down
# share by which a charge may be below the spent ε: float64 sums are no finer, and a nano-epsilon
# would show
EXACT = 1e-14
ACTIONS = {"perturb": "perturbed", "keep": "kept", "drop": "dropped", "sample": "sampled"}


def audit_releases(
    request: AuditRequest,
    project: Project,
    policy: Policy,
    folder: Path,
    epsilons: Iterable[float],
    error: float,
    rng: np.random.Generator,
) -> list[AuditFinding]:
    """Release documents of a toy project in several ways, and test each release against the
    expected results.
    """
    toy = make(folder, request.mechanism, request.strategy, policy, project, request.epsilon)
    claim = claim_of(request.mechanism, toy.space, project.params.mechanisms.model_dump())
    other = next(
        (epsilon for epsilon in sorted(epsilons) if epsilon != request.epsilon), request.epsilon
    )
    is_experiment = request.mode == "experiment"
    releasing = Releasing(
        toy, request.mechanism, request.mode, project.params.seed if is_experiment else None
    )
    releases = _releases(request, releasing, other, rng)
    findings: list[AuditFinding] = []
    for name, release in releases.items():
        place = f"release: {request.strategy}, {name}"
        wrong = composition(release) + clear_words(release) + claims(release, request.mode)
        wrong += copies(release) if release.consistent else []
        findings.append(
            AuditFinding.fact(
                place,
                "budget",
                wrong,
                "each ε is its share of B, and the record and token log agree",
            )
        )
        if any(not name.startswith("same") for name in release.documents):
            findings.append(AuditFinding.of(place, distributions(release, claim, error, rng)))
    first = releases["in memory"]
    place = f"release: {request.strategy}, {request.mode} mode"
    findings.append(AuditFinding.of(place, losses(first, claim, 1 - error, request.epsilon)))
    # In an experiment, all runs with one seed have the same noise, so only one run is tested.
    looked_at = (
        [first]
        if is_experiment
        else [release for release in releases.values() if not release.consistent]
    )
    for name in (name for name in first.documents if name.startswith("same")):
        findings += reuse(looked_at, place, name, claim, error)
    if not is_experiment:
        findings.append(key_audit(place, releasing.worker(first.budget)))
        few = {
            name: document
            for name, document in first.documents.items()
            if not name.startswith("same")
        }
        with quiet():
            hidden, late = releasing.refused_or_streamed(few, first.budget)
            capped, beyond = releasing.capped(few, first.budget)
        unpaid = charges([*releases.values(), *hidden, capped], toy) + late + beyond
        findings.append(
            AuditFinding.fact(
                place, "charges", unpaid, "the ledger charged the sum of ε in the token logs"
            )
        )
    return findings


def _releases(
    request: AuditRequest, releasing: Releasing, other: float, rng: np.random.Generator
) -> dict[str, Release]:
    """Make the audited releases of the toy project and return them by name.

    Args:
        other: the ε of the release of a file.
    """
    policy = releasing.toy.policy
    toy = releasing.toy
    one_column = documents(toy.joined, policy.oov == "sample", shared=bool(toy.shares))
    same: dict[str, Document] = {"same": (("flint",) * REPEATED,)}
    if policy.oov == "sample":
        same["same unknown"] = (("zorblax",) * REPEATED,)
    two_columns: dict[str, Document] = {
        name: (("heron",), *document) for name, document in one_column.items()
    }
    halves: dict[str, Document] = {
        name: ((word[0],) * (REPEATED // 2),) * 2 for name, (word,) in same.items()
    }
    n = max(LEAST_ROWS, request.samples // 10)
    columns = {**two_columns, **halves}
    budget = WORDS_PER_TEXT * request.epsilon
    names = _arranged(one_column, same, n, rng)
    progress = Progress("audit, releases", 5 + (request.workers > 1), "releases")
    releases: dict[str, Release] = {}

    def keep(name: str, release: Release) -> None:
        releases[name] = release
        progress.advance(1)

    with quiet():
        keep("in memory", releasing.in_memory({**one_column, **same}, names, budget))
        few = _arranged(two_columns, same, max(LEAST_ROWS, n // 2), rng)
        keep(
            f"file at ε = {other:.4g}", releasing.of_files(columns, few, WORDS_PER_TEXT * other, 1)
        )
        if request.workers > 1:
            # Enough batches that no process finishes all of them before another has started.
            many = [
                names[row % len(names)] if row % ROWS_OF_A_CHUNK >= SAME else "same"
                for row in range(BATCHES * ROWS_OF_A_CHUNK + 10)
            ]
            keep("file, processes", releasing.of_files(columns, many, budget, request.workers))
        arranged = _arranged(one_column, {}, max(LEAST_ROWS, n // 4), rng)
        keep("consistent", releasing.in_memory(one_column, arranged, budget, consistent=True))
        for run in ("again", "and again"):
            keep(run, releasing.in_memory(same, list(same) * SAME, budget))
    progress.finish()
    return releases


def _arranged(
    varied: dict[str, Document], same: dict[str, Document], n: int, rng: np.random.Generator
) -> list[str]:
    """Return the order of the documents, as a list with one name per row. Each batch begins with
    the documents of one repeated word; n rows of each varied document follow in random order.
    """
    rows = [name for name in varied for _ in range(n)]
    rng.shuffle(rows)
    head = [name for name in same for _ in range(SAME)]
    step = ROWS_OF_A_CHUNK - len(head)
    return [
        name for start in range(0, len(rows), step) for name in (*head, *rows[start : start + step])
    ]


def claims(release: Release, mode: str) -> list[str]:
    """List faults in the record's guarantee: a release must have a guarantee, an experiment must
    have none.
    """
    claimed = release.record.guarantee.formula != "none"
    if claimed and mode != "release":
        return ["the record claims privacy for an experiment, whose seed is known"]
    return [] if claimed or mode != "release" else ["the record claims nothing for a release"]


def composition(release: Release) -> list[str]:
    """List faults in the ε of a release: the ε_i of each token, their sum in each document, and
    both figures in the record.
    """
    wrong = []
    most = 0.0
    largest = 0.0
    fates = {name: release.fates(name) for name in release.documents}
    for name, logged in zip(release.names, release.logged, strict=True):
        if [action for action, _ in logged] != [ACTIONS[fate.action] for fate in fates[name]]:
            wrong.append(f"document {name!r}: the fates in the token log differ from the policy")
            continue
        for (_, epsilon), fate in zip(logged, fates[name], strict=True):
            if abs(epsilon - fate.epsilon) > 1e-8 * fate.epsilon:
                wrong.append(
                    f"document {name!r}: a token spends {epsilon:.6g}, but its share is "
                    f"{fate.epsilon:.6g}"
                )
        spent = math.fsum(epsilon for _, epsilon in logged)
        if spent > release.budget * (1 + 1e-12):
            wrong.append(f"document {name!r}: Σε exceeds B by {spent - release.budget:.3g}")
        most = max(most, spent)
        largest = max(largest, max((epsilon for _, epsilon in logged), default=0.0))
    spent_in_record = release.record.spent
    record = release.record
    for what, stated, seen, tolerance in (
        ("document", getattr(spent_in_record, "most", None), most, 1e-9),
        ("token", getattr(spent_in_record, "max_token_epsilon", None), largest, 1e-8),
    ):
        if stated is not None and abs(stated - seen) > tolerance * seen:
            wrong.append(
                f"the record states that a {what} spent {stated:.6g} at most, but it was {seen:.6g}"
            )
    if any(budget != release.budget for budget in record.document_budget.values()):
        wrong.append("the record states another document budget")
    return list(dict.fromkeys(wrong))


def clear_words(release: Release) -> list[str]:
    """List output words that neither belong to the mechanism's vocabulary nor are kept by the
    policy.
    """
    wrong = []
    for name, texts in zip(release.names, release.outputs, strict=True):
        out = release.read(texts)
        stay = release.staying(name)
        if len(out) != len(stay):
            wrong.append(
                f"document {name!r}: {len(out)} tokens in the output instead of {len(stay)}"
            )
        elif any(code < 0 and fate.action != "keep" for code, fate in zip(out, stay, strict=True)):
            wrong.append(
                f"document {name!r}: a token was replaced by something that is not a word of the "
                "mechanism"
            )
    return list(dict.fromkeys(wrong))


def copies(release: Release) -> list[str]:
    """List faults in a consistent release, in which equal tokens of a document must have equal
    replacements.
    """
    wrong = []
    for name in release.documents:
        fates = release.fates(name)
        codes = release.codes(name)
        staying = [at for at, fate in enumerate(fates) if fate.action != "drop"]
        for column, at in enumerate(staying):
            if (codes[:, column] != codes[:, staying.index(fates[at].leader)]).any():
                wrong.append(f"document {name!r}: equal tokens have different replacements")
    return list(dict.fromkeys(wrong))


def charges(releases: Sequence[Release], toy: ToyProject) -> list[str]:
    """List faults in the ledger: the charge of each subject must be the sum of ε_i in the token
    logs of the subject's documents.
    """
    owed: dict[str, list[float]] = defaultdict(list)
    for release in releases:
        for key, logged in zip(release.subjects, release.logged, strict=True):
            owed[key] += [epsilon for _, epsilon in logged]
    # Without a token log, ε come from the audit's own plan and are not rounded down.
    unlogged = {key for release in releases if not release.outputs for key in release.subjects}
    logged_keys = sorted(owed.keys() - unlogged)
    wrong = []
    rows = sum(len(release.names) for release in releases)
    with toy.open_ledger() as ledger:
        of_unlogged = {key: subject(ledger, key, None).epsilon for key in sorted(unlogged)}
        spent = math.fsum(math.fsum(owed[key]) for key in logged_keys)
        charged = summary(ledger, None).spent - math.fsum(of_unlogged.values())
        if not spent * (1 - EXACT) <= charged <= spent * (1 + RELATIVE) + ROUNDING * rows:
            wrong.append(
                f"the ledger charged {charged:.15g} in all, the token logs spent {spent:.15g}"
            )
        asked = {
            key: subject(ledger, key, None).epsilon
            for key in logged_keys[:: max(1, len(logged_keys) // ASKED)]
        }
    for key, charged in (of_unlogged | asked).items():
        spent = math.fsum(owed[key])
        below = RELATIVE if key in unlogged else EXACT
        if not spent * (1 - below) <= charged <= spent * (1 + RELATIVE) + ROUNDING * PER_SUBJECT:
            wrong.append(
                f"a subject was charged {charged:.15g}, but its token log spent {spent:.15g}"
            )
            break
    return wrong


def distributions(
    release: Release, claim: Claim, error: float, rng: np.random.Generator
) -> FitResult:
    """Test whether the output of every token follows the claimed distribution at the token's share
    of the budget.

    For a mechanism whose output depends on the token before, outputs after different tokens are
    tested separately.
    """
    drawn: dict[DrawnKind, list[Ids]] = defaultdict(list)
    sampled: dict[int, list[Ids]] = defaultdict(list)
    for name in (name for name in release.documents if not name.startswith("same")):
        codes = release.codes(name)
        contexts = release.contexts(name, codes) if claim.in_context else np.full(codes.shape, -1)
        for at, fate in enumerate(release.staying(name)):
            for before in np.unique(contexts[:, at]).tolist():
                column = codes[contexts[:, at] == before, at]
                if fate.action == "perturb" and fate.epsilon > 0:
                    drawn[DrawnKind(fate.number, fate.epsilon, before)].append(column[column >= 0])
                elif fate.action == "sample":
                    sampled[before].append(column[column >= 0])
    joined = {kind: np.concatenate(parts) for kind, parts in drawn.items()}
    joined = {kind: codes for kind, codes in joined.items() if len(codes) >= LEAST_ROWS}
    result = fit(joined, claim, release.budget / WORDS_PER_TEXT, error / 2, rng, with_power=True)
    chance = 1.0
    for before, parts in sampled.items():
        seen = np.bincount(np.concatenate(parts), minlength=claim.space.size)
        share = claim.unknown(before)
        tails = np.minimum(
            binom.cdf(seen, seen.sum(), share), binom.sf(seen - 1, seen.sum(), share)
        )
        chance = min(chance, float(2 * tails.min()) * len(seen) * len(sampled))
    if chance >= error / 2:
        return result
    why = f"sampled tokens are not {'by the base measure' if claim.in_context else 'uniform'}"
    return FitResult(
        result.claimed,
        result.tests,
        result.draws,
        error=error,
        least=chance,
        worst=why,
        factor=result.factor,
        violation=True,
    )


def losses(release: Release, claim: Claim, confidence: float, epsilon: float) -> SampledResult:
    """Return a lower confidence bound on the privacy loss between documents that differ in their
    first token, by comparing whole outputs.
    """
    heads = [name for name in release.documents if name.startswith("head")]
    fates = {name: release.fates(name) for name in heads}
    # The order must not depend on samples, because these numbers break ties before the test half
    # of the samples is used.
    number = {text: place for place, text in enumerate(sorted({*release.outputs}, key=str))}
    codes = [
        np.array([number[release.outputs[row]] for row in release.rows(name)]) for name in heads
    ]
    allowed = np.full((len(heads), len(heads)), np.inf)
    for a, first in enumerate(heads):
        for b, second in enumerate(heads):
            pairs = list(zip(fates[first], fates[second], strict=False))
            treated_alike = all(
                (one.action, one.epsilon) == (other.action, other.epsilon) for one, other in pairs
            )
            if treated_alike and len(fates[first]) == len(fates[second]):
                allowed[a, b] = math.fsum(
                    one.epsilon
                    * float(claim.distances(np.array([one.number]), np.array([other.number]))[0, 0])
                    for one, other in pairs
                    if one.number != other.number and one.action == "perturb"
                )
    n = min(map(len, codes))
    return sampled_audit([each[:n] for each in codes], allowed, epsilon, confidence)


def reuse(
    releases: Sequence[Release], place: str, name: str, claim: Claim, error: float
) -> list[AuditFinding]:
    """Check whether random noise was used twice: no long sequence of outputs of one word may occur
    twice, in one release or in several.

    Args:
        name: name of the document of one repeated word.

    Returns:
        The finding of the check. If the word is replaced often enough, also the test of
            neighbouring outputs for independence.
    """
    whole = [
        (each, codes)
        for each in releases
        if name in each.documents and len(codes := each.codes(name))
    ]
    if not whole:
        return [
            AuditFinding.fact(place, "noise", ["no output of a text of one word is complete"], "")
        ]
    runs = [codes for _, codes in whole]
    epsilon = whole[0][0].budget / WORDS_PER_TEXT
    share = max(map(_equal, runs))
    independent = runs
    if claim.in_context:
        own = [_own(release.fates(name)[0], claim) for release, _ in whole]
        share = max(
            float((pmf(before=before) ** 2).sum())
            for pmf in own
            for before in range(-1, claim.space.size)
        )
        # chosen by the claim, because the draws must not determine which sequences are tested
        likeliest = int(own[0](before=-1).argmax())
        independent = [
            _after(likeliest, codes, release.contexts(name, codes)) for release, codes in whole
        ]
    length = math.ceil(
        (50 + 2 * math.log2(sum(map(np.size, runs)))) / -math.log2(min(share, 1 - 1e-9))
    )
    if length > REPEATED // 2:
        unclear = f"inconclusive: outputs of one word are equal {share:.0%} of the time"
        return [
            AuditFinding(
                place,
                "noise",
                violation=False,
                evidence=None,
                detail=unclear,
                inconclusive=True,
            )
        ]
    windows = [
        row[start : start + length].tobytes()
        for codes in runs
        for row in codes.astype(np.int16)
        for start in range(len(row) - length + 1)
    ]
    wrong = ["noise is used twice"] if len(set(windows)) < len(windows) else []
    seen = f"{len(windows):,} sequences of {length} outputs of one word: no sequence occurs twice"
    tested = independence_audit(_side_by_side(independent), error, epsilon)
    return [AuditFinding.fact(place, "noise", wrong, seen), AuditFinding.of(place, tested)]


def _equal(codes: Ids) -> float:
    """Return the probability that two randomly drawn codes (word numbers of outputs) are equal."""
    return float(((np.bincount((codes + 1).ravel()) / codes.size) ** 2).sum())


def _own(fate: TokenFate, claim: Claim) -> Callable[..., Floats]:
    """Return a function that computes the claimed output distribution of one token, given the
    output token before it.
    """
    return (
        partial(claim.pmf, fate.number, fate.epsilon) if fate.action == "perturb" else claim.unknown
    )


def _after(token: int, codes: Ids, contexts: Ids) -> Ids:
    """Return the outputs that directly follow the output ``token`` in a release of one repeated
    word, in rows.

    These outputs are independent of each other. The sequence of all outputs is not independent,
    because each output depends on the one before it.
    """
    row = codes[contexts == token]
    width = REPEATED // 16
    whole: Ids = row[: len(row) // width * width].reshape(-1, width)
    return whole


def _side_by_side(runs: Sequence[Ids]) -> dict[str, tuple[Ids, Ids]]:
    """Return pairs of output sequences that must be independent, taken from releases of one
    repeated word, (rows, tokens) each.
    """
    codes = max(runs, key=len)
    pairs = {
        f"tokens {lag} apart": (codes[:, :-lag].ravel(), codes[:, lag:].ravel())
        for lag in (1, 2, 3)
    }
    half = codes.shape[1] // 2
    pairs["the two halves of a document"] = (
        codes[:, :half].ravel(),
        codes[:, half : 2 * half].ravel(),
    )
    pairs["documents side by side"] = codes[:-1].ravel(), codes[1:].ravel()
    for number, (one, other) in enumerate(pairwise(runs), 1):
        rows = min(len(one), len(other))
        width = min(one.shape[1], other.shape[1])
        pairs[f"releases {number} and {number + 1}"] = (
            one[:rows, :width].ravel(),
            other[:rows, :width].ravel(),
        )
    return pairs
