"""A small project in a temporary folder with an invented vocabulary. Its releases are audited from
end to end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lexveil.auditing.distributions import IN_CONTEXT, ON_LISTS, AuditedSpace, euclidean
from lexveil.auditing.toy_spaces import ToyPieces, crowd, list_orders, places_of, public_counts
from lexveil.base import paths
from lexveil.base.runtime.hashes import SHORT, sha256
from lexveil.base.runtime.tables import write_json
from lexveil.base.types import Floats, Ids
from lexveil.core.accounting.budgets import SEGMENTATION_OF, Policy
from lexveil.core.embeddings.word_orders import WordLists
from lexveil.core.embeddings.word_space import WordSpace
from lexveil.core.mechanisms.tem_context import BIGRAMS
from lexveil.io.artifacts.embeddings import write_bigrams, write_embedding, write_word_orders
from lexveil.io.artifacts.mechanisms import CausalModel
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.model_source import CHECKED_BY
from lexveil.io.artifacts.project import Project
from lexveil.io.config import NO_BASE, Configuration, ShareParams
from lexveil.release.ledger.ledger import Ledger

TOY_WORDS = "amber birch cedar ember flint grove heron ivory juniper kelp lotus maple far".split()
UNLISTED = "quartz"  # a word that is in the embedding, but in no word list
LISTED = ("birch", "cedar", "maple", "harbor")  # words on the public list of a class
MORE = ("and", "17", "42")  # further words if classes have shares: with them, two of each class
PAIR = "north_sea"
TRIPLE = "harbor_storm_signal"
# words of the public list of screened words, which are never written in place of another word
SCREENED = ("cocky", "corpse", "corpses", "dumb")
SCREENED_PAIR = "dumb_luck"
WORDS_PER_TEXT = 3  # the public average number of words, so that base ε is a third of B

REPEATED = 256  # number of words in a document of one repeated word

# A token as the audit writes it: a word, a collocation joined by _, a stop word, a mark, or an
# unknown word.
Tokens = tuple[str, ...]
Document = tuple[Tokens, ...]  # the tokens of each column


@dataclass(frozen=True, slots=True)
class TokenFate:
    """Action that a release must take on one token, and the epsilon that it must spend on the
    token.

    Attributes:
        action: perturb, keep, drop or sample.
        number: the number of the word in the mechanism; -1 if the mechanism lacks the word.
        epsilon: the epsilon that is spent on the token.
        leader: position of the equal token whose replacement this token copies; its own position if
            it gets a replacement itself.
        column: the column of the document that contains the token.
    """

    action: str
    number: int
    epsilon: float
    leader: int
    column: int


@dataclass(frozen=True)
class ToyProject:
    """The toy project, and its facts as the audit knows them independently of the library's code.

    Attributes:
        tokens: the tokens of the mechanism, in the order of their numbers.
        cap: the largest ε of a token, as a multiple of base ε; infinite if there is no cap.
        shares: the shares of the budget of some tokens; all other tokens have the share 1.
        crowd: the words of the crowd, which is a cluster of very similar words
            (``toy_spaces.crowd``); empty if the project has none.
    """

    model: Model
    strategy: str
    policy: Policy
    tokens: list[str]
    space: AuditedSpace
    cap: float
    shares: dict[str, float] = field(default_factory=dict)
    crowd: Sequence[str] = ()

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each token of the mechanism."""
        return {token: number for number, token in enumerate(self.tokens)}

    @cached_property
    def beginnings(self) -> frozenset[str]:
        """The words with which multi-word collocations begin."""
        return frozenset(token.split("_")[0] for token in self.tokens if "_" in token)

    @cached_property
    def instead(self) -> Ids:
        """(W,) the number of the word that is written when a word is drawn. For a screened word,
        which must not be written, this is the nearest word that is not screened; for any other word
        the word itself.
        """
        every = np.arange(len(self.tokens))
        parts = [{*token.split("_")} for token in self.tokens]
        others = np.array([not words.intersection(SCREENED) for words in parts])
        gaps = euclidean(self.space.vectors)(every[~others], every[others])
        every[~others] = every[others][gaps.argmin(axis=1)]
        return every

    @property
    def joined(self) -> bool:
        """Whether multi-word collocations are single tokens."""
        return SEGMENTATION_OF[self.strategy] != "word"

    def open_ledger(self) -> Ledger:
        """Return the ledger that the project's releases charge."""
        return Ledger.open(
            self.model.path(self.model.configuration.ledger.folder), None, make=False
        )

    def written(self, tokens: Tokens) -> str:
        """Return a text that consists of the given tokens."""
        return re.sub(r" ([.,])", r"\1", " ".join(tokens).replace("_", " "))

    def cut(self, tokens: Tokens) -> Tokens:
        """Return the normal forms of the tokens into which the strategy segments the text of the
        given tokens.
        """
        lower = [token.lower() for token in tokens]
        return (
            tuple(lower)
            if self.joined
            else tuple(word for token in lower for word in token.split("_"))
        )

    def read(self, text: str | None) -> tuple[int, ...]:
        """Return an output text as word numbers; the number is -1 for a token that the mechanism
        cannot write.
        """
        words = re.findall(r"[a-z]+|[0-9]+|[.,]", (text or "").lower())
        number = self.number
        numbers = list[int]()
        at = 0
        while at < len(words):
            sizes = (3, 2) if words[at] in self.beginnings else ()
            size = next((n for n in sizes if "_".join(words[at : at + n]) in number), 1)
            numbers.append(number.get("_".join(words[at : at + size]), -1))
            at += size
        return tuple(numbers)

    def fates(self, document: Sequence[Tokens], budget: float, consistent: bool) -> list[TokenFate]:
        """Return the action that a release must take on each token of a document. The columns of
        the document follow one after the other.
        """
        number = self.number
        cut = [(at, token) for at, column in enumerate(document) for token in self.cut(column)]
        columns = [column for column, _ in cut]
        tokens = [token for _, token in cut]
        actions = []
        leaders = []
        first = dict[str, int]()
        for at, token in enumerate(tokens):
            stopword = self.policy.stopwords
            kind = {"the": stopword, "and": stopword, ".": self.policy.punctuation}.get(
                token, "perturb"
            )
            action = self.policy.oov if kind == "perturb" and token not in number else kind
            replaced = action in ("perturb", "sample")
            leaders.append(first.setdefault(token, at) if consistent and replaced else at)
            actions.append(action)
        pays = [action == "perturb" and leaders[at] == at for at, action in enumerate(actions)]
        parts = [self.shares.get(token, 1.0) for token in tokens]
        share = sum(part for part, paid in zip(parts, pays, strict=True) if paid)
        if share and self.strategy in ("S1", "S2"):  # divide by all words, whatever their action
            share = sum(
                part * (token.count("_") + 1) if action == "perturb" else float(token != ".")
                for token, part, action in zip(tokens, parts, actions, strict=True)
            )
        most = max([1.0, *self.shares.values()])
        each = min(self.cap * budget / WORDS_PER_TEXT / most, budget / share) if share else 0.0
        return [
            TokenFate(
                action,
                number.get(token, -1),
                each * self.shares.get(token, 1.0) if paid else 0.0,
                leader,
                column,
            )
            for token, action, leader, paid, column in zip(
                tokens, actions, leaders, pays, columns, strict=True
            )
        ]


class ToyWords(NamedTuple):
    """The words of a toy project, with their positions in the plane, (W, 2), in units of 1/ε."""

    words: list[str]
    places: Floats


COLLOCATED_AT = ([4.0, 1.1], [-6.0, 0.7], [9.0, -1.2])
SHARED_AT = ([2.2, -1.0], [-3.0, -1.1], [6.5, 0.9])
SCREENED_AT = ([1.0, 7.0], [-5.0, 8.0], [6.0, -7.0], [10.0, 6.5], [-9.0, -7.0])
UNLISTED_AT = [1.0, -1.6]


def toy_words(*, has_pairs: bool, has_shares: bool, n_crowd: int) -> ToyWords:
    """Return the words of a toy project with their positions. They are about half a unit of 1/ε
    apart, except for one word that is far from all others.

    Args:
        has_pairs: whether collocations are words.
        has_shares: whether some words belong to classes with their own share of the budget.
        n_crowd: number of words of a crowd, which is a cluster of very similar words; with a crowd,
            there are also screened words.
    """
    collocated = [PAIR, TRIPLE] if has_pairs else ["north", "sea"]
    shared = MORE if has_shares else ()
    screened: list[str] = []
    if n_crowd:
        pair = [SCREENED_PAIR] if has_pairs else SCREENED_PAIR.split("_")
        screened = [*SCREENED[:-1], *pair]
    crowded, crowded_places = crowd(n_crowd)
    words = [*TOY_WORDS, *collocated, "the", *shared, *screened, *crowded, UNLISTED]
    at = [
        *COLLOCATED_AT,
        *SHARED_AT[: len(shared)],
        *SCREENED_AT[: len(screened)],
        *crowded_places.tolist(),
        UNLISTED_AT,
    ]
    return ToyWords(words, np.vstack([places_of("plane"), at]))


def make(
    folder: Path,
    mechanism: str,
    strategy: str,
    policy: Policy,
    project: Project,
    epsilon: float,
    n_crowd: int = 0,
) -> ToyProject:
    """Write the files of a toy project to a folder.

    Args:
        project: another project, from which parameters and settings are taken.
        n_crowd: number of words of an additional crowd, which is a cluster of very similar words;
            with a crowd, there are also screened words.
    """
    segmentation = SEGMENTATION_OF[strategy]
    params = project.params
    shares = project.configuration.release.shares
    has_shares = {shares.stopwords, shares.numbers, shares.listed} != {1.0}
    has_pairs = segmentation != "word"
    words, places = toy_words(has_pairs=has_pairs, has_shares=has_shares, n_crowd=n_crowd)
    vectors = (places / epsilon).astype(np.float32)
    write_embedding(
        WordSpace(words, vectors, np.arange(len(words), 0, -1)),
        folder / paths.embedding(segmentation),
    )
    _write_collocations(folder)
    for check in CHECKED_BY:
        write_json({"success": True}, folder / paths.CHECKS / check)
    tokens = [word for word in words if mechanism not in ON_LISTS or word != UNLISTED]
    orders = None
    if mechanism in ON_LISTS:
        name = getattr(params.mechanisms, mechanism).lists
        orders = list_orders(places[: len(tokens)], 2)
        write_word_orders(
            WordLists(tokens, orders), {}, folder / paths.word_orders(segmentation, name)
        )
    configuration = _configuration(folder, project.configuration)
    embeddings = params.embeddings.model_copy(update={"base": NO_BASE})
    # Audits of releases use an invented language model, because the probabilities of a model that
    # reads whole texts cannot be listed.
    language_model = params.mechanisms.tem_context.model
    causal = CausalModel(
        "en", ToyPieces, partial(Path, folder / paths.embedding(segmentation) / "words.txt")
    )
    toy = Project(
        folder, params.model_copy(update={"embeddings": embeddings}), configuration, is_project=True
    )
    model = Model.of_run(
        toy,
        causal_models={} if language_model == BIGRAMS else {language_model: causal},
        cache_only=True,  # recovery by readers is not audited, and takes long to compute
    )
    public = public_counts(np.array([token.count("_") + 1 for token in tokens]), tokens)
    if mechanism == IN_CONTEXT and public.bigrams is not None:
        (folder / paths.bigrams(segmentation)).mkdir(parents=True)
        write_bigrams(public.bigrams, folder / paths.bigrams(segmentation))
    space = AuditedSpace(vectors[: len(tokens)].astype(np.float64), orders, public)
    by_class = _shares(shares, words) if has_shares else {}
    return ToyProject(model, strategy, policy, tokens, space, 2.0, by_class, crowd(n_crowd)[0])


def _configuration(folder: Path, configuration: Configuration) -> Configuration:
    """Adapt the settings of another project to a toy project."""
    shares = configuration.release.shares
    release: dict[str, object] = {"average_words": float(WORDS_PER_TEXT), "max_token_epsilon": None}
    if shares.listed != 1.0:
        file = folder / "listed.txt"
        file.write_text("\n".join(LISTED) + "\n", encoding="utf-8")
        release["shares"] = shares.model_copy(update={"list": f"{file}@{sha256(file)[:SHORT]}"})
    return configuration.changed(
        ledger={"folder": ".lexveil/ledger", "cap": "unlimited"},
        release=release,
        machine={"dask_scheduler": None},
        detection={"detector": None, "protect": None},  # audits test releases without detectors
    )


def _shares(shares: ShareParams, words: Sequence[str]) -> dict[str, float]:
    """Return the share of the budget of each word that belongs to a class with a share of its
    own.
    """
    listed = {word for word in words if set(LISTED) & {word, *word.split("_")}}
    classes = (
        ({"the", "and"}, shares.stopwords),
        ({"17", "42"}, shares.numbers),
        (listed, shares.listed),
    )
    return {word: share for members, share in classes for word in sorted(members)}


def _write_collocations(folder: Path) -> None:
    names = ("first_word", "second_word", "third_word")
    (folder / paths.COLLOCATIONS).mkdir(parents=True, exist_ok=True)
    for file, tokens in (("bigrams", (PAIR, SCREENED_PAIR)), ("trigrams", (TRIPLE,))):
        split = zip(*(token.split("_") for token in tokens), strict=True)
        columns = {name: pa.array(column) for name, column in zip(names, split, strict=False)}
        rows = {"count": [9] * len(tokens), "pmi_bits": [9.0] * len(tokens)}
        pq.write_table(pa.table(columns | rows), folder / paths.COLLOCATIONS / f"{file}.parquet")


def documents(joined: bool, sampled: bool, *, shared: bool = False) -> dict[str, Document]:
    """Return test documents of one text column, by name. Documents named ``head …`` differ only in
    their first token.

    Args:
        shared: whether some words belong to classes with their own share of the budget.
    """
    tail = ("grove", PAIR)
    heads = ["amber", "birch", "cedar", "far", *([TRIPLE] if joined else [])]
    heads += ["zorblax", "quuxly"] if sampled else []
    made: dict[str, Document] = {f"head {head}": ((head, *tail),) for head in heads}
    made |= {
        "capitals": (("AMBER", "Grove", "North_Sea"),),
        "marks": (("the", "birch", "."),),
        "one word": (("cedar",),),
        "last": (("grove", PAIR, "ember"),),
        "unlisted": ((UNLISTED, "grove"),),
        "repeats": (("amber", "birch", "amber", "cedar", "amber", "grove"),),
    }
    made |= {"classes": (("17", "grove", "and", "maple", "42"),)} if shared else {}
    return made
