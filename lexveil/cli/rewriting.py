"""The options of `lexveil privatize` and `lexveil inspect` that say how texts are rewritten."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from lexveil.cli.options import (
    ModelName,
    Positive,
    Seed,
    Strategy,
    a_number,
    exclusive,
    option,
    positive_or,
    reads,
    several,
    share,
    whole,
)

BUDGET = exclusive("budget")
FOUND_ACTIONS = ("perturb", "sample", "drop", "placeholder", "pseudonym", "digits")  # a test holds it to the engine's

Mechanism = Annotated[str, option("none, {mechanisms}", "M")]
StrategyOption = Annotated[
    Strategy,
    option(
        "none; S1 (word): words; S2 (gst-word-budget): collocations on the budget of words; "
        "S3 (gst): collocations, greedy; S4 (mst): collocations by score"
    ),
]


def _class_share(text: str) -> tuple[str, float]:
    name, _, share = text.partition("=")
    if not share:
        raise ValueError(f"{text!r} is no CLASS=X, such as stopwords=0.5")
    return name, a_number(share)


def _type_action(text: str) -> tuple[str, str]:
    name, _, action = text.partition("=")
    if not name or action not in FOUND_ACTIONS:
        raise ValueError(f"{text!r} is no TYPE=ACTION, such as PERSON=placeholder; actions: {', '.join(FOUND_ACTIONS)}")
    return name, action


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Settings:
    """How texts are rewritten, wherever they are from, but for the mechanism and the strategy."""

    model: ModelName = None
    epsilon: Annotated[
        Positive | None,
        option("base epsilon per word; a row's budget is E times a public number of words", "E", group=BUDGET),
    ] = None
    document_budget: Annotated[Positive | None, option("the budget of each row, directly", "B", group=BUDGET)] = None
    recovery: Annotated[
        float | None,
        option(
            "in their place the share of words that a best-informed reader is to name: the base epsilon, and the "
            "largest of a token, at which public word frequencies let expect that (`lexveil calibrate`)",
            "R",
            group=BUDGET,
            converter=reads(share),
        ),
    ] = None
    band: Annotated[
        Literal["all", "content", "function", "frequent", "middle", "rare"],
        option("of which words --recovery is, by their public frequency; content: all but function words"),
    ] = "all"
    average_words: Annotated[
        float | Literal["data"] | None,
        option(
            "that number of words (default: params.yaml, else the corpus's mean); data: these rows' own mean, only in "
            "experiments",
            "N",
            converter=reads(positive_or("data")),
        ),
    ] = None
    max_token_epsilon: Annotated[
        float | Literal["none"] | None,
        option(
            "the largest epsilon of a token; short rows leave the rest of their budget (default: params.yaml, else "
            "twice the base epsilon); none: only in experiments",
            "X",
            converter=reads(positive_or("none")),
        ),
    ] = None
    consistent: Annotated[
        Literal["document"] | None,
        option(
            "replace equal words of a row alike, paying once; shows which are equal, and the guarantee says so",
            group="tokens",
        ),
    ] = None
    keep_layout: Annotated[
        bool, option("copy the writer's spacing and capitals; recorded as unprotected", group="tokens")
    ] = False
    stopwords: Annotated[
        Literal["paper", "perturb", "keep", "drop", "sample"] | None,
        option("what happens to stop words (default: params.yaml)", group="tokens"),
    ] = None
    punctuation: Annotated[
        Literal["perturb", "keep", "drop", "sample"] | None,
        option("what happens to punctuation (default: params.yaml)", group="tokens"),
    ] = None
    oov: Annotated[
        Literal["keep", "drop", "sample"] | None,
        option("what happens to unknown words (default: params.yaml)", group="tokens"),
    ] = None
    share: Annotated[
        tuple[tuple[str, float], ...],
        option(
            "what a token of a public class gets of its row's budget, where another gets 1: stopwords, numbers, "
            "listed; shows which tokens are of the class, and the record says so (default: params.yaml)",
            "CLASS=X,CLASS=X",
            group="tokens",
            converter=several(_class_share),
            n_tokens=1,
        ),
    ] = ()
    share_list: Annotated[
        str | None,
        option(
            "the public list of the class listed, a word a line (default: params.yaml)", "FILE@HASH", group="tokens"
        ),
    ] = None

    detector: Annotated[
        Literal["none", "presidio"] | None,
        option("finds names, numbers and the like; what it finds is shown (default: params.yaml)", group="tokens"),
    ] = None
    protect: Annotated[
        str | None,
        option(
            "words and phrases that are found: one a line, below a heading [TYPE] (default: params.yaml)",
            "FILE",
            group="tokens",
        ),
    ] = None
    allow: Annotated[
        str | None,
        option("words and phrases that are never taken for found (default: params.yaml)", "FILE", group="tokens"),
    ] = None
    type: Annotated[
        tuple[tuple[str, str], ...],
        option(
            "what happens to what is found, by its type: placeholder (the default), drop, sample (a random word), "
            "pseudonym, digits (others in the same form) or perturb (default: params.yaml)",
            "TYPE=ACTION,TYPE=ACTION",
            group="tokens",
            converter=several(_type_action),
            n_tokens=1,
        ),
    ] = ()
    pseudonyms: Annotated[
        str | None,
        option("the public names that pseudonyms are drawn from (default: params.yaml)", "FILE", group="tokens"),
    ] = None

    def settings(self) -> dict[str, Any]:
        """The same as fields of ``RewriteOptions``."""
        other = ("model", "share", "type")
        own = {name: getattr(self, name) for name in Settings.__dataclass_fields__ if name not in other}
        return own | {
            "consistent": self.consistent == "document",
            "shares": dict(self.share),
            "types": dict(self.type),
        }


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Rewriting(Settings):
    """How texts of files are rewritten, but for the mechanism and the strategy."""

    text_column: Annotated[
        tuple[str, ...],
        option(
            "a column to rewrite; can be given several times: the texts of a row share its budget",
            "NAME",
            group="input",
        ),
    ] = ("text",)
    subject_column: Annotated[
        str | None,
        option(
            "the column that says whom a row is about: whose budget the ledger keeps over all releases, "
            "up to release.cap of params.yaml (default: each text is a subject of its own, known again by"
            " its content)",
            "NAME",
            group="input",
        ),
    ] = None
    spans: Annotated[
        str | None,
        option(
            'the column that says what was found in the texts of a row, [{"start": 8, "end": 18, "type": "PERSON"}] in '
            "characters; it comes out empty",
            "COLUMN",
            group="input",
        ),
    ] = None
    mode: Annotated[
        Literal["release", "experiment"] | None,
        option(
            "release (the default): noise from the operating system; experiment: seeded, repeatable, not private",
            group="noise",
        ),
    ] = None
    without_guarantee: Annotated[
        bool,
        option("release also what no guarantee can be given of; the name of the output then says so", group="noise"),
    ] = False
    seed: Annotated[
        Seed | None,
        option("the seed of an experiment (default: params.yaml); implies --mode experiment", group="noise"),
    ] = None
    format: Annotated[
        str | None,
        option("the format of standard input: {formats} (default: jsonl)", "F", group="input"),
    ] = None
    sql: Annotated[
        str | None,
        option(
            "of the database that IN is (postgresql://host/database, sqlite:///path): what is "
            "read; the address has no password in it, which is read from where the database's own clients have it",
            "SELECT",
            group="input",
        ),
    ] = None
    workers: Annotated[
        int | None,
        option(
            "processes that rewrite, one core each; changes no result (default: 1 if there is little to "
            "do, else params.yaml: machine.workers)",
            "N",
            converter=reads(whole(1, 1024, "a number of processes (1 to 1024)")),
        ),
    ] = None

    def keywords(self) -> dict[str, Any]:
        """The same as keyword arguments of ``privatize_file`` and ``inspect``."""
        same = {name: value for name, value in asdict(self).items() if name not in ("format", "share", "type", "spans")}
        return (
            same
            | self.settings()
            | {
                "text_column": tuple(dict.fromkeys(self.text_column)),
                "form": self.format,
                "spans_column": self.spans,
                "mode": self.mode or ("release" if self.seed is None else "experiment"),
            }
        )
