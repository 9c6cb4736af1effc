"""End-to-end audit of output texts: the texts that releases wrote are compared with the claimed
distribution, token by token.

So the audit covers everything between a random draw and the written byte. Texts with all kinds of
tokens go through releases of a toy project. Every written word is compared with the distribution
that the audit itself computes from its source word, its ε, and the output text before it. A crowd
is a cluster of a thousand similar words: each is replaced by any other, so that unchanged words are
conspicuous.

Each written word gets a score: the probability, under the claimed distribution, of all words that
are nearer to its source word (or, for the second score, fit the last output word before it better).
If the claim holds, scores are uniform and independent, whatever the words are. So the tokens of all
texts, and of any group of them, can be tested together. For mechanisms whose distribution has no
closed form, scores are compared with scores of draws that the audit makes itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import combinations_with_replacement
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from lexveil.auditing.distributions import ON_LISTS, Claim
from lexveil.auditing.findings import AuditFinding
from lexveil.auditing.fit import POWER, FitResult, chances
from lexveil.auditing.kernels import OWN, claim_of
from lexveil.auditing.release_path import Release, Releasing
from lexveil.auditing.releases import clear_words, composition, copies
from lexveil.auditing.request import AuditRequest
from lexveil.auditing.toy_project import (
    PAIR,
    SCREENED,
    SCREENED_PAIR,
    TOY_WORDS,
    TRIPLE,
    Document,
    TokenFate,
    Tokens,
    ToyProject,
    make,
)
from lexveil.auditing.toy_spaces import UNKNOWN
from lexveil.base.logs import quiet
from lexveil.base.types import Floats, Ids
from lexveil.core.accounting.budgets import Policy
from lexveil.io.artifacts.project import Project

# number of words of the crowd, and of those that texts contain
CROWD = 2500
SOURCES = 250
TOKENS_OF_A_BLOCK = 26  # tokens of a block, of all kinds
LONG = 200  # blocks of a long text, which has more tokens than a block of noise
TOKENS = 3.5  # tokens per draw of a toy's word
LOW = 0.001  # ε on lists, whose unit is one position: with a larger ε most words would stay
EDGES = np.array([*2.0 ** np.arange(-13, 0), *1 - 2.0 ** np.arange(-2, -14, -1)])  # edges of scores
LETTERS = 8  # words with more letters are long
FAR_ON = 4096  # tokens of a text with at least this many before them are a group
LEAST_TOKENS = 50  # least number of tokens in a group that is tested
LAWS_AT_A_TIME = 1000  # tokens per block whose distributions are computed together
# shares of copied tokens for which the power is computed
COPIED = 1 / np.array([100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1500, 2000, 5000])
CROWDED = "from a word of the crowd"
UNSCREENED = "without screen"
FEW = "few at a time"


class WrittenToken(NamedTuple):
    """A randomly drawn token of an output text.

    Attributes:
        code: number of the written word; before: number of the token before it in its column, -1 if
            there is no such token, or if it is not a word of the mechanism; last: number of the
            last written word before it in any text, -1 if there is no such word.
        fate: the action that the release must take on the source token.
        screens: whether certain words are screened, which means never written.
        groups: names of the groups to which the token belongs.
    """

    code: int
    before: int
    last: int
    fate: TokenFate
    screens: bool
    groups: frozenset[str]


def audit_written_texts(
    request: AuditRequest,
    project: Project,
    policy: Policy,
    folder: Path,
    error: float,
    rng: np.random.Generator,
) -> list[AuditFinding]:
    """Release texts with tokens of all kinds in several ways, and test whether the written tokens
    follow the expected distribution.
    """
    name = request.mechanism
    strategy = request.strategy
    epsilon = LOW if name in ON_LISTS else request.epsilon
    toy = make(folder, name, strategy, policy, project, epsilon, CROWD)
    seed = project.params.seed if request.mode == "experiment" else None
    releasing = Releasing(toy, name, request.mode, seed)
    with quiet():
        releases = _releases(releasing, epsilon, int(TOKENS * request.samples), rng)
    wrong = list[str]()
    tokens = list[WrittenToken]()
    for way, release in releases.items():
        facts = composition(release) + clear_words(release)
        facts += copies(release) if release.consistent else []
        wrong += [f"{way}: {fact}" for fact in facts]
        tokens += _tokens(way, release)
    place = f"written texts: {strategy}"
    right = "no token is missing, and each ε is its share of B"
    findings = [AuditFinding.fact(place, "budget", wrong, right)]
    if tokens:
        claim = claim_of(name, toy.space, project.params.mechanisms.model_dump())
        law = Law(claim, toy.instead, tokens)
        findings.append(AuditFinding.of(place, written_audit(tokens, law, epsilon, error, rng)))
    return findings


def _releases(
    releasing: Releasing, epsilon: float, n_tokens: int, rng: np.random.Generator
) -> dict[str, Release]:
    """Make releases of texts and return them by name.

    There are a release in memory, a release in which equal tokens get the same replacement, a
    release of a file, a release of long texts without a word screen, and releases of so few texts
    that not all words of the vocabulary are written. The releases have different budgets, so that
    the noise of experiments differs between them.
    """
    toy = releasing.toy
    size = epsilon * TOKENS_OF_A_BLOCK
    n = max(6, n_tokens // (5 * TOKENS_OF_A_BLOCK))

    def texts(count: int, blocks: int, columns: int = 1) -> tuple[dict[str, Document], list[str]]:
        documents = {
            f"text {number}": tuple(_text(toy, blocks, rng) for _ in range(columns))
            for number in range(1, count + 1)
        }
        return documents, list(documents)

    releases = {"in memory": releasing.in_memory(*texts(2 * n, 1), size)}
    releases["equal tokens alike"] = releasing.in_memory(
        *texts(n // 6, 3), 3 * size, consistent=True, run="alike"
    )
    dropped = replace(toy, policy=Policy("drop", "drop", toy.policy.oov))
    laid_out = replace(releasing, toy=dropped, more={"keep_layout": True})
    releases["a file"] = laid_out.of_files(*texts(n // 2, 1, 2), 2 * size, 1, "csv")
    for number in range(1, n // 60 + 2):
        run = f"{FEW}, {number}"
        releases[run] = releasing.in_memory(*texts(8, 1), size * (1 + number / 100), run=run)
    blocks = min(n, LONG)
    unscreened = replace(releasing, more={"screen": "none"})
    releases[UNSCREENED] = unscreened.in_memory(
        *texts(n // blocks, blocks), blocks * size, run="long"
    )
    return releases


def _text(toy: ToyProject, blocks: int, rng: np.random.Generator) -> Tokens:
    """Return a test text of ``blocks`` blocks. A block contains tokens of all kinds in any order;
    no punctuation mark follows another.

    All blocks have the same number of tokens of each kind, so that ε differs little from text to
    text.
    """
    screened = [word for word in SCREENED if word in toy.number]
    kinds: list[tuple[Sequence[str], int]] = [
        (toy.crowd[:: CROWD // SOURCES], 15),
        (TOY_WORDS, 2),
        (UNKNOWN, 2),
    ]
    kinds.append((screened, 1))
    each = [PAIR, TRIPLE, SCREENED_PAIR, "the", "and"]
    tokens = list[str]()
    for _ in range(blocks):
        drawn = [(words, rng.integers(len(words), size=count)) for words, count in kinds]
        block = [*each, *(words[at] for words, places in drawn for at in places.tolist())]
        block = [block[at] for at in rng.permutation(len(block)).tolist()]
        block.insert(int(rng.integers(1, len(block) + 1)), ".")
        tokens += block
    return tuple(map(_in_capitals, tokens, rng.random(len(tokens)).tolist()))


def _in_capitals(token: str, chance: float) -> str:
    if chance < 0.05:
        return token.upper()
    return token.capitalize() if chance < 0.25 else token


def _tokens(way: str, release: Release) -> Iterator[WrittenToken]:
    """Yield the randomly drawn output tokens of the texts in which no token is missing."""
    toy = release.toy
    last = -1
    kind = cache(partial(_kind, toy=toy, crowd=frozenset(toy.crowd)))
    of_release = f"of the release {way.partition(',')[0]}"
    for name, output in zip(release.names, release.outputs, strict=True):
        codes = release.read(output)
        fates = release.fates(name)
        if len(codes) != len(release.staying(name)):
            continue
        forms = (form for column in release.documents[name] for form in column)
        parts = [(form, part) for form in forms for part in toy.cut((form,))]
        written = iter(codes)
        seen = set[str]()
        column = -1
        position = 0
        source = ""
        before = -1
        for at, ((form, part), fate) in enumerate(zip(parts, fates, strict=True)):
            if fate.column != column:
                column = fate.column
                position = 0
                source = ""
                before = -1
            code = before if fate.action == "drop" else next(written)
            if fate.action in ("perturb", "sample") and fate.leader == at and code >= 0:
                groups = {
                    of_release: True,
                    f"from {kind(part)}": True,
                    f"after {kind(source)}": True,
                    "from a capital": form[0].isupper() and not form.isupper(),
                    "from capitals": form.isupper(),
                    "from a long word": len(part) > LETTERS,
                    "after a long word": len(source) > LETTERS,
                    "at the end": at == len(fates) - 1,
                    "of a second column": column > 0,
                    f"after {FAR_ON} others": position >= FAR_ON,
                    "from a word that occurred before in the text": part in seen,
                    "after an unchanged word": toy.number.get(source, -2) == before,
                }
                held = frozenset(group for group, holds in groups.items() if holds)
                yield WrittenToken(code, before, last, fate, way != UNSCREENED, held)
            position = position + 1
            source = part
            before = code
            last = code if code >= 0 else last
            seen.add(part)


def _kind(part: str, toy: ToyProject, crowd: frozenset[str]) -> str:
    """Return the kind of a source token; return an empty text if ``part`` represents no token."""
    kinds = {"": "nothing", ".": "a mark", "the": "a stop word", "and": "an unknown stop word"}
    if part in kinds:
        return kinds[part]
    if part not in toy.number:
        return "an unknown word"
    if {*part.split("_")} & {*SCREENED}:
        return "a screened word"
    if "_" in part:
        return "a collocation"
    return "a word of the crowd" if part in crowd else "a word"


class Law:
    """Expected distribution of the output token for each source token, according to the claim and
    the word screen.
    """

    def __init__(self, claim: Claim, instead: Ids, tokens: Sequence[WrittenToken]) -> None:
        self.claim = claim
        self.instead = instead
        self.screened = np.flatnonzero(instead != np.arange(len(instead)))
        after = np.array([(token.before, token.last) for token in tokens])
        if not claim.in_context:
            after[:] = -1
        contexts, number = np.unique(after, return_inverse=True)
        self._after, self._last = number.reshape(-1, 2).T
        self._base = claim.base_measure()
        weights = [claim.base_measure(token) / self._base for token in contexts.tolist()]
        self._weights = np.array(weights, dtype=np.float32)
        every = np.broadcast_to(np.arange(len(instead), dtype=np.int32), self._weights.shape)
        self._suits = np.empty_like(self._weights, dtype=np.int32)
        suits = np.argsort(-self._weights, axis=1, kind="stable")
        np.put_along_axis(self._suits, suits, every, axis=1)

    def suits(self, rows: Ids) -> npt.NDArray[np.int32]:
        """Return (n, W) ranks of the words by their probability after the last output word before
        each token, most probable last.
        """
        suits: npt.NDArray[np.int32] = self._suits[self._last[rows]]
        return suits

    def nearness(self, fate: TokenFate) -> Ids:
        """Return (W,) ranks of words by distance from the source word, which comes first. For a
        source word without a vector, words are ranked by number.
        """
        every = np.arange(self.claim.space.size)
        if fate.action == "sample":
            return every
        gaps = self.claim.distances(np.array([fate.number]), every)[0]
        gaps[fate.number] = -1
        rank = np.empty_like(every)
        rank[np.argsort(gaps, kind="stable")] = every
        return rank

    def mass(self, fate: TokenFate, rows: Ids, *, screens: bool) -> npt.NDArray[np.float32]:
        """Return (n, W) the probability of each output word, for tokens with the same required
        action and source word.

        Args:
            screens: whether certain words are screened, which means never written.
        """
        own = self.claim.unknown()
        if fate.action == "perturb":
            own = self.claim.pmf(fate.number, fate.epsilon)
        mass: npt.NDArray[np.float32] = self._weights[self._after[rows]] * own.astype(np.float32)
        mass /= mass.sum(axis=1, keepdims=True)
        for word in self.screened.tolist() if screens else ():
            mass[:, self.instead[word]] += mass[:, word]
            mass[:, word] = 0
        return mass

    def draw(self, fate: TokenFate, n: int, rng: np.random.Generator, *, screens: bool) -> Ids:
        """Draw n output words for a token with this required action, independently of the rewriting
        engine.
        """
        drawn = rng.integers(self.claim.space.size, size=n)
        if fate.action == "perturb":
            drawn = self.claim.draw(fate.number, fate.epsilon, n, rng)
        return self.instead[drawn] if screens else drawn


@dataclass(frozen=True, slots=True)
class Scores:
    """Test scores of n output tokens.

    Attributes:
        near, suits: (n,) scores from 0 to 1, for the two orders of words: by distance to the source
            word, and by fit to the output word before.
        own: (n, OWN) scores of the audit's own draws, which replace the uniform distribution.
        stays: (n,) probability that the source word is written.
        impossible: tokens with a written word that has the probability 0.
    """

    near: Floats
    suits: Floats
    own: Floats
    stays: Floats
    impossible: list[int] = field(default_factory=list)


def _scores(tokens: Sequence[WrittenToken], law: Law, rng: np.random.Generator) -> Scores:
    """Return the test scores of all output tokens. Tokens with the same required action and word
    screen are processed together.
    """
    alike: dict[tuple[str, int, float, bool], list[int]] = defaultdict(list)
    for row, token in enumerate(tokens):
        fate = token.fate
        alike[fate.action, fate.number, fate.epsilon, token.screens].append(row)
    codes = np.array([token.code for token in tokens])
    n = len(tokens)
    scores = Scores(np.empty(n), np.empty(n), np.empty((n, OWN)), np.zeros(n))
    for some in alike.values():
        token = tokens[some[0]]
        rank = law.nearness(token.fate)
        for start in range(0, len(some), LAWS_AT_A_TIME):
            rows = np.array(some[start : start + LAWS_AT_A_TIME])
            if law.claim.closed:
                _score(scores, law, token, rank, rows, codes[rows], rng)
            else:
                drawn = law.draw(token.fate, OWN * len(rows), rng, screens=token.screens)
                scores.near[rows] = rank[codes[rows]] / len(rank)
                scores.own[rows] = rank[drawn].reshape(-1, OWN) / len(rank)
    return scores


def _score(
    scores: Scores,
    law: Law,
    token: WrittenToken,
    rank: Ids,
    rows: Ids,
    codes: Ids,
    rng: np.random.Generator,
) -> None:
    """Write the test scores of tokens with the same required action: the probability of the words
    that precede the written word in the order, plus a uniform part of the written word's own
    probability.
    """
    mass = law.mass(token.fate, rows, screens=token.screens)
    own = np.take_along_axis(mass, codes[:, None], axis=1)
    share = rng.random(len(rows)) * own[:, 0]
    scores.near[rows] = (mass * (rank < rank[codes][:, None])).sum(axis=1) + share
    if law.claim.in_context:
        suits = law.suits(rows)
        first = suits < np.take_along_axis(suits, codes[:, None], axis=1)
        scores.suits[rows] = (mass * first).sum(axis=1) + share
    if token.fate.action == "perturb":
        scores.stays[rows] = mass[:, token.fate.number]
    scores.impossible.extend(rows[own[:, 0] <= 0].tolist())


def written_audit(
    tokens: Sequence[WrittenToken],
    law: Law,
    epsilon: float,
    error: float,
    rng: np.random.Generator,
) -> FitResult:
    """Test whether the scores of output tokens are distributed as claimed, for all tokens, for each
    group, and for each intersection of two groups.

    Args:
        error: the probability of a false alarm.
    """
    scores = _scores(tokens, law, rng)
    closed = law.claim.closed
    names, members = _strata(tokens)
    orders = {"nearest": scores.near}
    if closed and law.claim.in_context:
        orders["best suited"] = scores.suits
    own = None if closed else np.searchsorted(EDGES, scores.own)
    seen = list[Ids]()
    share = list[Floats]()
    for score in orders.values():
        bins = np.searchsorted(EDGES, score)  # number of the first edge that is not below the score
        for rows in members:
            seen.append(_at_most(bins[rows]))
            expected = EDGES if own is None else _at_most(own[rows]) / (OWN * len(rows))
            share.append(expected)
    n = np.repeat([len(rows) for rows in members] * len(orders), len(EDGES))
    chance = chances(np.concatenate(seen), n, np.concatenate(share), 0 if closed else OWN * n)
    events = [(name, order, edge) for order in orders for name in names for edge in EDGES]
    # half of the error probability for copies of the crowd, which come first, half for all others
    each = np.full(len(events), error / 2 / max(1, len(events) - len(EDGES)))
    each[: len(EDGES)] = error / 2 / len(EDGES)
    at = int((chance / each).argmin())
    name, order, edge = events[at]
    least = float(chance[at])
    worst = f"tokens {name}: words among the {order} share {edge:.3g} of the distribution"
    if scores.impossible:
        least = 0.0
        worst = f"{len(scores.impossible):,} words that the claim excludes"
    copied = _power(scores.stays[members[0]], share[0], each[0], 0 if closed else OWN)
    return FitResult(
        claimed=epsilon,
        tests=len(events),
        draws=len(tokens),
        error=error,
        least=least,
        worst=worst,
        factor=None,
        violation=bool(least < each[at]),
        method="written texts",
        copied=copied,
    )


def _strata(tokens: Sequence[WrittenToken]) -> tuple[list[str], list[Ids]]:
    """Return the names and token numbers of the sets to test: tokens of the crowd (a cluster of
    similar words), all tokens, and each group and intersection of two groups with at least
    ``LEAST_TOKENS`` tokens.
    """
    groups = sorted(frozenset[str]().union(*(token.groups for token in tokens)))
    member = np.array([[group in token.groups for group in groups] for token in tokens])
    names = [CROWDED, "of all kinds"]
    members = [np.arange(len(tokens))] * 2
    members[0] = np.flatnonzero(member[:, groups.index(CROWDED)])
    for first, second in combinations_with_replacement(range(len(groups)), 2):
        rows = np.flatnonzero(member[:, first] & member[:, second])
        if len(rows) >= LEAST_TOKENS:
            names.append(", ".join(dict.fromkeys([groups[first], groups[second]])))
            members.append(rows)
    return names, members


def _at_most(bins: Ids) -> Ids:
    """Return (edges,) the number of scores that are at most each edge."""
    counts: Ids = np.bincount(bins.ravel(), minlength=len(EDGES) + 1).cumsum()[:-1]
    return counts


def _power(stays: Floats, shares: Floats, each: float, reference: int) -> float | None:
    """Return the smallest share of tokens copied from the source that the test detects with
    probability ``POWER``; return None if it detects no share of ``COPIED``.

    Args:
        stays: (n,) probability that the source word is written if nothing is copied.
        shares: (edges,) shares of scores up to each edge.
        reference: number of the audit's own draws per token, ``OWN``; 0 for a closed form.
    """
    n = len(stays)
    sees = list[float]()
    counts = np.arange(n + 1)
    for edge, share in zip(EDGES[EDGES <= 0.5], shares, strict=False):
        is_alarm = chances(counts, counts * 0 + n, counts * 0 + share, reference * n) < each
        least = np.flatnonzero(is_alarm & (counts > n * share)).min(initial=n + 1)
        # the score of a copy is uniform between 0 and the probability that the word stays
        below = float(np.minimum(1, edge / np.maximum(stays, 1e-300)).mean())
        sees += COPIED[binom.sf(least - 1, n, share + COPIED * (below - share)) >= POWER].tolist()
    return min(sees, default=None)
