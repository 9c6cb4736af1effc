"""The request: all options of a rewriting, defined once.

The command line, ``lexveil.privatize``, the body of the service, the form of the page and the inbox
of lexveil.toml are derived from these models: each says only what it leaves out or fixes. A field
has its type, range and help here, and a message names it by ``option``, so that each face can call
it as it calls it.
"""

from __future__ import annotations

import codecs
import typing
from collections.abc import Collection, Mapping
from copy import copy
from numbers import Integral, Real
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, Field, create_model, model_validator
from pydantic.fields import FieldInfo

from lexveil.base.errors import option
from lexveil.base.parameters import Documented, ListFile, OneOf, Section, refused, validated
from lexveil.core.mechanisms import mechanism_names
from lexveil.core.protection import DEFAULT as DEFAULT_LEVEL
from lexveil.core.protection import LevelName
from lexveil.core.screen_parts import NONE, chosen_parts

# the ledger counts in units of the first; with less, noise overflows
SMALLEST_EPSILON = 1e-9
LARGEST_EPSILON = 1e9

MechanismName = Annotated[str, OneOf(mechanism_names)]
StrategyName = Literal["S1", "S2", "S3", "S4"]
BandName = Literal["all", "content", "function", "frequent", "middle", "rare"]
StopwordAction = Literal["paper", "perturb", "keep", "drop", "sample"]
PunctuationAction = Literal["perturb", "keep", "drop", "sample"]
UnknownAction = Literal["keep", "drop", "sample"]
FoundAction = Literal["perturb", "sample", "drop", "placeholder", "pseudonym", "digits"]
OnExhausted = Literal["withhold", "refuse"]
MOST_SENTENCES = 1_000
SENTENCES = "S5"  # the strategy whose tokens are sentences, or whole texts
OVER_SENTENCES = ("tem", "madlib", "mahalanobis", "vickrey")  # mechanisms that draw sentences
# fields of a request that only S5 has, and those that mean something for words alone
OF_SENTENCES = ("bank", "unit", "sentences")
OF_WORDS = (
    *("document_budget", "recovery", "average_words", "max_token_epsilon"),
    *("consistent", "keep_layout", "stopwords", "punctuation", "oov", "shares", "share_list"),
    *("detector", "spacy_model", "protect", "allow", "types", "pseudonyms"),
    "spans_column",
)
NUMBER = "NUMBER"  # what an option's value is called that is any number; N is a whole one
# a request has one of them, or the default level
BUDGETS = ("protection", "epsilon", "document_budget", "recovery")


class OptionHelp(NamedTuple):
    """How the help shows an option.

    Attributes:
        group: the group it stands in.
        metavar: the name of the option's value in help.
        follows_strategy: whether the default of the option depends on the strategy.
    """

    group: str = "Parameters"
    metavar: str | None = None
    follows_strategy: bool = False


def _float(value: Any) -> Any:
    return (
        float(value) if isinstance(value, Real) and not isinstance(value, bool | float) else value
    )


def _int(value: Any) -> Any:
    return (
        int(value) if isinstance(value, Integral) and not isinstance(value, bool | int) else value
    )


def _columns(value: Any) -> Any:
    return tuple(dict.fromkeys([value] if isinstance(value, str) else value))


# what a command line can hardly hold
DELIMITER_NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|"}


def _delimiter(value: str | None) -> str | None:
    if value is None:
        return None
    character = DELIMITER_NAMES.get(value, value)
    if len(character) != 1 or character.isalnum() or character in '"\r\n\0 \ufeff':
        raise refused("it is no character that can stand between fields, nor the name of one")
    return character


def _listed(value: Any) -> Any:
    """Return a list of names, as YAML, JSON and Python have it, as one text."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else value


def _parts(value: str) -> str:
    try:
        return ",".join(chosen_parts(value)) or NONE
    except ValueError as error:
        raise refused(str(error)) from None


def _encoding(value: str | None) -> str | None:
    if value is None:
        return None
    sample = '\ta,"b";\r\n'
    try:
        name = codecs.lookup(value).name
        is_of_text = sample.encode(name).decode(name) == sample
    except (LookupError, ValueError):
        is_of_text = False
    if not is_of_text or name in ("utf-7", "unicode_escape", "raw_unicode_escape", "punycode"):
        raise refused("it is not the name of a text encoding")
    return "utf-8" if name == "utf-8-sig" else name


Positive = Annotated[float, BeforeValidator(_float), Field(ge=SMALLEST_EPSILON, le=LARGEST_EPSILON)]
Fraction = Annotated[float, BeforeValidator(_float), Field(gt=0, lt=1)]
Share = Annotated[float, BeforeValidator(_float), Field(ge=0.01, le=10)]
Count = Annotated[int, BeforeValidator(_int)]
ScreenParts = Annotated[str, BeforeValidator(_listed), AfterValidator(_parts)]


class Options(Documented):
    """Options that users write on a command line or in Python."""

    @classmethod
    def of(cls, values: Mapping[str, Any], *, written: bool = False, quotes: bool = True) -> Self:
        """Return the options after checking them.

        Args:
            written: values are texts, as a command line and a form have them.
            quotes: messages show values.

        Raises:
            RequestError: if they contradict each other, or a value is unknown, of another kind or
                out of range.
        """
        return validated(cls, values, named=option, strict=not written, quotes=quotes)


class Request(Options):
    """Request to rewrite texts, with all options. An option that is None has the value of
    params.yaml or lexveil.toml.
    """

    protection: LevelName | None = None
    """how many words a reader may name: strong, 5 of 100 content words and 1 of 100 rare ones;
    balanced, 20 and 2; light, 50 and 10. It is the epsilon of every token, whatever the length of a
    text (default: balanced, where no other budget is asked for)"""
    mechanism: Annotated[
        str,
        OneOf(lambda: ["none", *mechanism_names()]),
        OptionHelp(metavar="M", follows_strategy=True),
    ] = "tem_context"
    """how words are replaced, or sentences (docs/reference/mechanisms.md; default: tem_context, of
    S5 tem, which takes madlib, mahalanobis and vickrey, too)"""
    strategy: Annotated[Literal["none", "S1", "S2", "S3", "S4", "S5"], OptionHelp(metavar="S")] = (
        "S1"
    )
    """none; S1 (word): words; S2 (gst-word-budget): collocations on the budget of words; S3 (gst):
    collocations, greedy; S4 (mst): collocations by score; S5 (sentence): sentences of a public bank
    in the place of texts, each on the whole epsilon (docs/how-to/sentences.md)"""
    bank: Annotated[str | None, OptionHelp("sentences", "BANK")] = None
    """the bank of S5: a folder that `lexveil sentences build` made of public texts, or shipped, the
    packaged one (default: that of the project's run, else the packaged one)"""
    unit: Annotated[Literal["text", "sentence"] | None, OptionHelp("sentences")] = None
    """what S5 replaces: text (the default), so that nothing of the shape of a text is disclosed; or
    each sentence by one, so that the number of sentences is"""
    sentences: Annotated[
        Count | None, Field(ge=1, le=MOST_SENTENCES), OptionHelp("sentences", "N")
    ] = None
    """how many sentences S5 writes for a text, where the unit is the text; each spends epsilon
    (default: 4)"""
    epsilon: Annotated[Positive | None, OptionHelp(metavar=NUMBER)] = None
    """base epsilon per word; the budget of a text is this times a public number of words. Of S5,
    the epsilon of a sentence (default: 5 with the packaged bank, else that of the level)"""
    document_budget: Annotated[Positive | None, OptionHelp(metavar=NUMBER)] = None
    """the budget of each text, directly"""
    recovery: Annotated[Fraction | None, OptionHelp(metavar=NUMBER)] = None
    """the share of words that a reader who knows mechanism, model and epsilon is expected to name;
    it sets the base epsilon and the largest epsilon of a token (`lexveil calibrate`)"""
    band: BandName = "all"
    """the words that --recovery is about, by public frequency; content: all but function words"""
    average_words: Annotated[Positive | Literal["data"] | None, OptionHelp(metavar=NUMBER)] = None
    """the public number of words that --epsilon is multiplied by (default: lexveil.toml, else the
    mean of the corpus); data: the mean of these texts, which is private, so only in experiments"""
    max_token_epsilon: Annotated[Positive | Literal["none"] | None, OptionHelp(metavar=NUMBER)] = (
        None
    )
    """the largest epsilon of a token; short texts do not spend the rest of their budget (default:
    lexveil.toml, else twice the base epsilon); none: only in experiments"""
    consistent: Annotated[bool, OptionHelp("tokens")] = False
    """replace equal words of a text alike and charge them once; discloses which are equal, and the
    record says so"""
    keep_layout: Annotated[bool, OptionHelp("tokens")] = False
    """copy the writer's spacing and capitals; recorded as unprotected"""
    stopwords: Annotated[StopwordAction | None, OptionHelp("tokens")] = None
    """what happens to stop words; paper: kept in S1, perturbed in S2 to S4 (default:
    params.yaml)"""
    punctuation: Annotated[PunctuationAction | None, OptionHelp("tokens")] = None
    """what happens to punctuation; sample: a random token replaces it (default: params.yaml)"""
    oov: Annotated[UnknownAction | None, OptionHelp("tokens")] = None
    """what happens to words outside the vocabulary (default: params.yaml)"""
    on_unsupported: Annotated[Literal["refuse", "withhold"], OptionHelp("tokens")] = "refuse"
    """texts in a script without spaces between words, such as Chinese, which cannot be cut into
    words: refuse the input; or withhold such texts, each of which comes out empty, and the record
    says so"""
    shares: Annotated[
        dict[Literal["stopwords", "numbers", "listed"], Share] | None,
        OptionHelp("tokens", f"CLASS={NUMBER},CLASS={NUMBER}"),
    ] = None
    """share of the budget for each token of a public class (stopwords, numbers, listed), relative
    to 1 for others; discloses which tokens are of the class, and the record says so (default:
    lexveil.toml)"""
    share_list: Annotated[ListFile | None, OptionHelp("tokens", "FILE@HASH")] = None
    """the public list of the class listed, one word per line (default: lexveil.toml)"""
    screen: Annotated[ScreenParts | None, OptionHelp("tokens", "PART,PART")] = None
    """the parts of the public list of words that are never put out, whatever the source was: the
    nearest other word is written. vulgar; jargon, of computing and words in no dictionary; health;
    crime; religion; names, of persons; none: every word may come out. Of S5 the bank has to be
    built without them (default: lexveil.toml: release.screen, else all parts)"""
    detector: Annotated[Literal["none", "presidio"] | None, OptionHelp("tokens")] = None
    """detector of names, numbers and the like; its matches are disclosed (default: lexveil.toml)"""
    spacy_model: Annotated[str | None, OptionHelp("tokens", "NAME")] = None
    """an installed model of spaCy, or its folder, with which the detector presidio also finds names
    (default: lexveil.toml, else none: patterns only)"""
    protect: Annotated[str | None, OptionHelp("tokens", "FILE")] = None
    """list of words and phrases to match, one per line, below a heading [TYPE] (default:
    lexveil.toml)"""
    allow: Annotated[str | None, OptionHelp("tokens", "FILE")] = None
    """list of words and phrases that no detector matches (default: lexveil.toml)"""
    types: Annotated[
        dict[str, FoundAction] | None, OptionHelp("tokens", "TYPE=ACTION,TYPE=ACTION")
    ] = None
    """what happens to matches, by their type: placeholder (the default), drop, sample (a random
    word), pseudonym, digits (others in the same form) or perturb (default: lexveil.toml)"""
    pseudonyms: Annotated[str | None, OptionHelp("tokens", "FILE")] = None
    """list of public names from which pseudonyms are drawn (default: lexveil.toml)"""
    spans_column: Annotated[str | None, OptionHelp("input", "COLUMN")] = None
    """the column of spans that another program found, [{"start": 8, "end": 18, "type": "PERSON"}]
    in characters; it comes out empty"""
    mode: Annotated[Literal["release", "experiment"] | None, OptionHelp("noise")] = None
    """release (the default): noise from the operating system, and the ledger is charged;
    experiment: seeded, repeatable, not private"""
    seed: Annotated[Count | None, Field(ge=0, lt=2**63), OptionHelp("noise", "N")] = None
    """the seed of an experiment (default: params.yaml); implies the mode experiment"""
    without_guarantee: Annotated[bool, OptionHelp("noise")] = False
    """release even without a guarantee; the name of the output then says so"""

    workers: Annotated[Count | None, Field(ge=1, le=1024), OptionHelp("output", "N")] = None
    """number of processes, one core each; changes no result (default: 1 for small inputs, else
    lexveil.toml: machine.workers)"""
    on_exhausted: Annotated[OnExhausted | None, OptionHelp("output")] = None
    """texts of subjects whose budget is exhausted: leave them out and list them, or release nothing
    (default: lexveil.toml: ledger.on_exhausted)"""

    @property
    def level(self) -> LevelName | None:
        """The level of protection: the level in the request, or the default level if the request
        and the project give no other way to set epsilon.
        """
        says = self.mechanism == "none" or any(getattr(self, name) is not None for name in BUDGETS)
        return self.protection if says else DEFAULT_LEVEL

    @property
    def is_release(self) -> bool:
        """Whether the request is a release, with noise from the operating system and a charge to
        the ledger; a request with a seed is an experiment.
        """
        return self.mode == "release" or (self.mode is None and self.seed is None)

    @model_validator(mode="before")
    @classmethod
    def _with_mechanism(cls, values: Any) -> Any:
        """Give S5 its own default mechanism, if the request names no mechanism."""
        is_bare = isinstance(values, Mapping) and values.get("mechanism") is None
        if is_bare and values.get("strategy") == SENTENCES:
            return {**values, "mechanism": "tem"}
        return values

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.strategy == SENTENCES:
            self._check_sentences()
            return self
        for name in OF_SENTENCES:
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{option(name)} is an option for sentences; add {option('strategy')} "
                    f"{SENTENCES}, or leave the option out"
                )
        given = [name for name in BUDGETS if getattr(self, name) is not None]
        if (self.mechanism == "none") != (self.strategy == "none"):
            raise ValueError(
                f"{option('mechanism')} {self.mechanism}, {option('strategy')} "
                f"{self.strategy}: give none for both, which keeps texts unchanged, or for neither"
            )
        if self.mechanism == "none" and given:
            raise ValueError(
                f"{option('mechanism')} none spends nothing; leave {option(given[0])} out"
            )
        if len(given) > 1:
            raise ValueError(
                f"give one of {option('protection')} (a level), {option('epsilon')} (base "
                "epsilon per word), "
                f"{option('document_budget')} (budget of each text) and {option('recovery')} "
                "(share of words that an "
                "adversary is expected to name)"
            )
        if self.level is not None and self.average_words is not None:
            raise ValueError(
                "a level of protection is the epsilon of every token, whatever the length of "
                "a text; leave "
                f"{option('average_words')} out, or give {option('epsilon')}"
            )
        if self.mode == "release" and self.seed is not None:
            raise ValueError(
                f"a seed makes an experiment; leave {option('mode')} release or "
                f"{option('seed')} out"
            )
        if self.is_release:
            self._check_limits()
        return self

    def _check_sentences(self) -> None:
        """Check that a request for sentences asks for nothing that sentences do not have."""
        if self.mechanism not in OVER_SENTENCES:
            raise ValueError(
                f"{option('mechanism')} {self.mechanism} replaces words and no sentences; leave "
                f"{option('mechanism')} out, or say one of {', '.join(OVER_SENTENCES)}"
            )
        for name in OF_WORDS:
            if getattr(self, name) not in (None, False) and getattr(self, name) != "none":
                raise ValueError(
                    f"{option(name)}: no word of a text is kept, cut or looked for in strategy "
                    f"{SENTENCES}; leave {option(name)} out"
                )
        if self.protection is not None and self.epsilon is not None:
            raise ValueError(
                f"give one of {option('protection')} (a level) and {option('epsilon')} (of each "
                "sentence)"
            )
        if self.unit == "sentence" and self.sentences is not None:
            raise ValueError(
                f"{option('unit')} sentence writes one sentence for each; leave "
                f"{option('sentences')} out"
            )
        if self.mode == "release" and self.seed is not None:
            raise ValueError(
                f"a seed makes an experiment; leave {option('mode')} release or "
                f"{option('seed')} out"
            )

    def _check_limits(self) -> None:
        if self.average_words == "data":
            raise ValueError(
                f"{option('average_words')} data: the texts' own average follows from private "
                "texts, and every epsilon "
                "from it; give a public number of words, leave it out for that of the "
                "corpus, or add "
                f"{option('mode')} experiment"
            )
        if self.max_token_epsilon == "none":
            raise ValueError(
                f"{option('max_token_epsilon')} none: without a limit short texts get so "
                "large an epsilon that they "
                "come out as they are; give a number, leave it out for twice the base "
                "epsilon, or add "
                f"{option('mode')} experiment"
            )


class FileRequest(Request):
    """Request to rewrite texts of files, of standard input or of a database."""

    text_column: Annotated[
        tuple[str, ...], BeforeValidator(_columns), OptionHelp("input", "NAME")
    ] = ()
    """a column to rewrite; can be given several times: the texts of a row share its budget; of
    JSON lines also a path to texts within a column, such as messages[].content (default: text, else
    the only column whose type and name could be those of texts; several are refused)"""
    subject_column: Annotated[str | None, OptionHelp("input", "NAME")] = None
    """the column that names whom a row is about; the ledger sums a subject's epsilon over all
    releases, up to the cap (default: each text is a subject of its own, recognized by its
    content)"""
    form: Annotated[str | None, OptionHelp("input", "F")] = None
    """the format of standard input, by its ending, such as csv or txt (default: jsonl)"""
    delimiter: Annotated[
        str | None, AfterValidator(_delimiter), OptionHelp("input", "CHARACTER")
    ] = None
    """what stands between fields of CSV or TSV: a character, or comma, semicolon, tab or bar
    (default: as the first line shows; standard error says so where the name says otherwise)"""
    encoding: Annotated[str | None, AfterValidator(_encoding), OptionHelp("input", "NAME")] = None
    """as what the text of a file is encoded, such as utf-16 or cp1252 (default: UTF-8, or UTF-16 by
    its byte order mark)"""
    sql: Annotated[str | None, OptionHelp("input", "SELECT")] = None
    """the query to read, if IN is a database (postgresql://host/database, sqlite:///path); the
    address holds no password, which comes from where the database's own clients read it"""
    formulas: Annotated[Literal["keep", "quote", "refuse"], OptionHelp("output")] = "keep"
    """rewritten CSV or TSV fields that begin with = + - @, which spreadsheets compute: keep and
    count them, put an apostrophe before them, or release nothing"""
    table: Annotated[str | None, OptionHelp("output", "NAME")] = None
    """the table to write, if OUT is a database: NAME or SCHEMA.NAME"""
    if_exists: Annotated[Literal["fail", "append", "replace"], OptionHelp("output")] = "fail"
    """if the table exists: release nothing, add to its rows, or replace them"""

    @model_validator(mode="after")
    def _has_columns(self) -> Self:
        if self.spans_column is not None and self.spans_column in (
            *self.text_column,
            self.subject_column,
        ):
            raise ValueError(
                f"{option('spans_column')}: is a text column or the subject column, too; give "
                "the column of spans its "
                "own"
            )
        return self


def as_requested(name: str, default: Any = None, example: Any = None) -> Any:
    """Return the field of a request for another model: its meaning and its limits, with another
    default and an example of a value.
    """
    field = copy(Request.model_fields[name])
    field.default = default
    field.examples = None if example is None else [example]
    field.description = (field.description or "").partition(" (default:")[0]
    return field


def partly(
    model: type[Request], leave_out: Collection[str] = (), **other_types: Any
) -> type[Section]:
    """A request of which any field may be left out and is then None. Its fields are not checked
    against each other.

    Args:
        other_types: types of the fields of which only some values can be given, by name.
    """
    fields: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if name not in leave_out:
            kind = (
                other_types.get(name)
                or Annotated[(field.annotation, OptionHelp(), *field.metadata)]
            )
            fields[name] = (kind | None, Field(None, description=field.description))
    return create_model(f"Partly{model.__name__}", __base__=Section, **fields)


def shown_of(field: FieldInfo) -> OptionHelp:
    """Return how the help shows an option."""
    return next((mark for mark in field.metadata if isinstance(mark, OptionHelp)), OptionHelp())


def choices_of(field: FieldInfo) -> list[str]:
    """Return the names that an option accepts, if the option accepts only names."""
    kinds = [kind for kind in (typing.get_args(field.annotation) or ()) if kind is not type(None)]
    if typing.get_origin(field.annotation) is Literal:
        return [str(name) for name in kinds]
    if not kinds or any(typing.get_origin(kind) is not Literal for kind in kinds):
        return []
    return [str(name) for kind in kinds for name in typing.get_args(kind)]
