"""Choice of sentences from the texts of a language model: the sentences that are suitable for a
bank, name nobody, repeat no public text and are likely.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from benchmarks.written_bank.prompts import kinds
from lexveil.core.text.languages.english import STOP_WORDS
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.screened_words import screened_words
from lexveil.io.artifacts.sentence_banks import STRATEGY
from lexveil.io.execution import duckdb_session
from lexveil.lab.data.public_sentences import PublicTexts, candidates, choose
from lexveil.lab.data.sentence_choice import Choice
from lexveil.lab.modelling.screening import FIRST_NAMES, census

COPIED = 8  # a sentence shares no sequence of this many words with a public text
REPEATED = 3  # no sequence of this many words occurs twice in a sentence
# words that may have a capital within a sentence; any other capital may begin a name
PLAIN = frozenset(
    "i i'm i'd i'll i've ok tv monday tuesday wednesday thursday friday saturday sunday january "
    "february march april june july august september october november december english french "
    "spanish german italian chinese japanese mexican indian american british christmas internet "
    "dvd pc usb".split()
)
# subjects that a random sentence should not bring into another person's text
GRAVE = re.compile(
    r"\b(kill\w*|suicid\w*|murder\w*|rap(e|ed|ist)|dead|die[sd]?|dying|death\w*|gun\w*|bomb\w*|"
    r"weapon\w*|violen\w*|jail\w*|prison\w*|arrest\w*|drugs|drunk\w*|sex\w*|porn\w*|naked|"
    r"nazi\w*|terroris\w*|slave\w*|racis\w*|gay|lesbian\w*|jew\w*|muslim\w*|christian\w*|"
    r"islam\w*|god|cancer|hiv|aids|miscarr\w*|abus\w*|stupid|idiot\w*)\b",
    re.IGNORECASE,
)
# two numbers in a row, which could be a telephone number
NUMBERS = re.compile(r"[0-9][ .-]+[0-9]")
# a second clause; a model this small often contradicts the first clause with it
SECOND_CLAUSE = re.compile(
    r"[a-z],|\b(and|but|so|or|because) (I|it|he|she|they|we|you|there|my|the|this|is|was|not|could|"
    r"can|had|have)\b"
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


Screen = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The sentences of a bank, with columns text and n_words, the likeliest first; and the number
    of sentences that were left out, by the reason.
    """

    table: pa.Table
    left_out: dict[str, int]


def chosen(
    written: Path, public: Sequence[Path], choice: Choice, size: int, least: float
) -> Chosen:
    """Choose sentences from a file of texts.

    Args:
        written: JSON lines with the text and the log likelihoods of its pieces.
        public: compressed JSON lines with texts from which no sentence may be copied.
        choice: the rule by which a bank takes sentences.
        size: greatest number of sentences; the likeliest sentences are taken.
        least: smallest mean log likelihood of the pieces of a text.
    """
    model = Model.load(name="en")
    lexicon = model.lexicon(STRATEGY)
    texts = _read(written)
    found = candidates(texts, lexicon, screened_words(choice.parts(lexicon.language)))
    with duckdb_session.session(model.configuration.machine) as con:
        fit = choose(con, [texts], lexicon, choice)
    left_out = {"not suitable for a bank, or a duplicate": len(found) - len(fit)}
    likelihood = dict[str, float]()
    for text, weight in zip(found["text"].to_pylist(), found["weight"].to_pylist(), strict=True):
        likelihood[text.lower()] = max(weight, likelihood.get(text.lower(), 0.0))
    n_words = dict(zip(fit["text"].to_pylist(), fit["n_words"].to_pylist(), strict=True))
    kept = sorted(n_words, key=lambda text: (-likelihood[text.lower()], text))
    for reason, is_out in _screens(kept, public).items():
        rest = [text for text in kept if not is_out(text)]
        left_out[reason] = len(kept) - len(rest)
        kept = rest
    likely = [text for text in kept if likelihood[text.lower()] >= math.exp(least)][:size]
    left_out["less likely"] = len(kept) - len(likely)
    numbers = pa.array([n_words[text] for text in likely], pa.int32())
    return Chosen(pa.table({"text": pa.array(likely, pa.string()), "n_words": numbers}), left_out)


def has_name(text: str, names: Set[str]) -> bool:
    """Return whether a sentence begins with one of the first names, or has a capital inside that
    may begin a name.
    """
    first, *others = _WORD.findall(text)
    return first.lower() in names or any(
        word[0].isupper() and word.lower().replace("’", "'") not in PLAIN for word in others
    )


def is_torn(text: str) -> bool:
    """Return whether a sentence may be incomplete: it does not begin with a capital, or has a
    quotation, a bracket or a colon.
    """
    return text[0].islower() or re.search(r'["“”()*:;]', text) is not None


def repeats(text: str) -> bool:
    """Return whether a sequence of words occurs twice in a sentence."""
    words = _WORD.findall(text.lower())
    grams = _grams(words, REPEATED)
    return len(set(grams)) < len(grams) or any(a == b for a, b in pairwise(words))


def copied(texts: Iterable[str], public: Sequence[Path]) -> set[str]:
    """Return the sequences of ``COPIED`` words of some sentences that occur in public texts."""
    wanted = _phrases(texts)
    found = set[str]()
    for file in public:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                found |= wanted & _phrases([json.loads(line)["text"]])
    return found


def _screens(texts: Sequence[str], public: Sequence[Path]) -> dict[str, Screen]:
    """Return the checks by which a sentence is left out, by the reason."""
    names = census(*FIRST_NAMES) - STOP_WORDS
    examples = [text for kind in kinds() for _, text in kind.examples]
    taken = _phrases(examples) | copied(texts, public)
    return {
        "may name somebody": lambda text: has_name(text, names),
        "about a grave subject": lambda text: GRAVE.search(text) is not None,
        "two numbers in a row": lambda text: NUMBERS.search(text) is not None,
        "part of a sentence": is_torn,
        "repeats words": repeats,
        "has two clauses": lambda text: SECOND_CLAUSE.search(text) is not None,
        "copied from an example or a public text": lambda text: (
            not taken.isdisjoint(_phrases([text]))
        ),
    }


def _phrases(texts: Iterable[str]) -> set[str]:
    """Return all sequences of ``COPIED`` words in some texts."""
    return {phrase for text in texts for phrase in _grams(_WORD.findall(text.lower()), COPIED)}


def _grams(words: Sequence[str], n: int) -> list[str]:
    return [" ".join(words[i : i + n]) for i in range(len(words) - n + 1)]


def _written(text: str, given: int) -> str:
    """Return a text without its first sentence, if the model wrote no word of that sentence.

    Args:
        given: bytes of the opening, which the prompt contains.
    """
    own = text.encode()[given:].decode()
    return own[1:] if own[:1] in {".", "?", "!"} else text


def _read(file: Path) -> PublicTexts:
    """Return the written texts; the weight of a text is the mean likelihood of its pieces."""
    texts = list[str]()
    weights = list[float]()
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            one = json.loads(line)
            if one["nats"]:
                texts.append(_written(one["text"], one["given"]))
                weights.append(math.exp(sum(one["nats"]) / len(one["nats"])))
    return PublicTexts(texts, weights)
