"""Options of a request to rewrite texts, defined once for all interfaces.

The command line, ``lexveil.privatize``, the body of the service, the form of the page and the inbox
of lexveil.toml are derived from these models. Each interface states only which options it leaves
out or fixes. The type, range and help of an option are at its field. A message names the option by
``option``, so that each interface can use its own name for the option.
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

# The ledger counts in units of the smallest value. With a smaller epsilon, the noise overflows.
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
SENTENCES = "S5"  # the strategy that replaces sentences or whole texts
OVER_SENTENCES = ("tem", "madlib", "mahalanobis", "vickrey")  # mechanisms that draw sentences
# options that only S5 has, and options that only the other strategies have
OF_SENTENCES = ("bank", "unit", "sentences")
OF_WORDS = (
    *("document_budget", "recovery", "average_words", "max_token_epsilon"),
    *("consistent", "keep_layout", "stopwords", "punctuation", "oov", "shares", "share_list"),
    *("detector", "spacy_model", "protect", "allow", "types", "pseudonyms"),
    "spans_column",
)
# placeholders in help for the value of an option: X is any number, N is a whole number
NUMBER = "NUMBER"
# a request has one of these options, or the default level
BUDGETS = ("protection", "epsilon", "document_budget", "recovery")


class OptionHelp(NamedTuple):
    """Description of how the command-line help shows an option.

    Attributes:
        group: heading under which the option is shown.
        metavar: placeholder for the option's value.
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


# characters that a command line can hardly contain
DELIMITER_NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|"}


def _delimiter(value: str | None) -> str | None:
    if value is None:
        return None
    character = DELIMITER_NAMES.get(value, value)
    if len(character) != 1 or character.isalnum() or character in '"\r\n\0 \ufeff':
        raise refused("it is neither a character that can separate fields, nor the name of one")
    return character


def _listed(value: Any) -> Any:
    """Convert a list of names, as YAML, JSON and Python have it, to one text with commas. Any other
    value stays unchanged.
    """
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
    """Base class of options that users give on a command line or in Python."""

    @classmethod
    def of(cls, values: Mapping[str, Any], *, written: bool = False, quotes: bool = True) -> Self:
        """Validate the values of options, and return them as an instance of the class.

        Args:
            written: whether the values are strings, as on a command line and in a form.
            quotes: whether messages show the values.

        Raises:
            RequestError: if options contradict each other, or a value is unknown, of another type
                or out of range.
        """
        return validated(cls, values, named=option, strict=not written, quotes=quotes)


class Request(Options):
    """Request to rewrite texts, with all options. An option that is None has the value in
    params.yaml or lexveil.toml.
    """

    protection: LevelName | None = None
    """level of protection, by the share of words that an adversary may name: strong, 5 of 100
    content words and 1 of 100 rare words; balanced, 20 and 2; light, 50 and 10. A level sets the
    epsilon of every token, whatever the length of a text (default: balanced, if no other budget
    is given)"""
    mechanism: Annotated[
        str,
        OneOf(lambda: ["none", *mechanism_names()]),
        OptionHelp(metavar="M", follows_strategy=True),
    ] = "tem_context"
    """the mechanism that replaces words or sentences (docs/reference/mechanisms.md; default:
    tem_context; for S5 the default is tem, and madlib, mahalanobis and vickrey are possible)"""
    strategy: Annotated[Literal["none", "S1", "S2", "S3", "S4", "S5"], OptionHelp(metavar="S")] = (
        "S1"
    )
    """the units that are replaced, and their budget. none: no strategy; S1 (word): words; S2
    (gst-word-budget): collocations, with the budget of words; S3 (gst): collocations, chosen
    greedily; S4 (mst): collocations, chosen by score; S5 (sentence): texts or sentences become
    sentences of a public bank, each with the whole epsilon (docs/how-to/sentences.md)"""
    bank: Annotated[str | None, OptionHelp("sentences", "BANK")] = None
    """the bank of S5: a folder that `lexveil sentences build` made of public texts, or shipped
    for the packaged bank (default: the bank of the project's run, else the packaged bank)"""
    unit: Annotated[Literal["text", "sentence"] | None, OptionHelp("sentences")] = None
    """the unit that S5 replaces. text (the default): whole texts, so that nothing of the shape
    of a text is disclosed; sentence: each sentence by one sentence, so that the number of
    sentences is disclosed"""
    sentences: Annotated[
        Count | None, Field(ge=1, le=MOST_SENTENCES), OptionHelp("sentences", "N")
    ] = None
    """the number of sentences that S5 writes for a text, if the unit is the text; each sentence
    spends epsilon (default: 4)"""
    epsilon: Annotated[Positive | None, OptionHelp(metavar=NUMBER)] = None
    """base epsilon per word; the budget of a text is the base epsilon times a public number of
    words. For S5, the epsilon of a sentence (default: 5 with the packaged bank, else the epsilon
    of the level)"""
    document_budget: Annotated[Positive | None, OptionHelp(metavar=NUMBER)] = None
    """the total epsilon of each text"""
    recovery: Annotated[Fraction | None, OptionHelp(metavar=NUMBER)] = None
    """the share of words that an adversary who knows mechanism, model and epsilon is expected to
    name; it determines the base epsilon and the largest epsilon of a token (`lexveil calibrate`)"""
    band: BandName = "all"
    """the words for which --recovery holds, by public frequency; content: all but function words"""
    average_words: Annotated[Positive | Literal["data"] | None, OptionHelp(metavar=NUMBER)] = None
    """the public number of words by which --epsilon is multiplied (default: lexveil.toml, else
    the mean of the corpus); data: the mean of these texts, which is private, so it is allowed
    only in experiments"""
    max_token_epsilon: Annotated[Positive | Literal["none"] | None, OptionHelp(metavar=NUMBER)] = (
        None
    )
    """the largest epsilon of a token; the rest of a short text's budget stays unspent (default:
    lexveil.toml, else twice the base epsilon); none: no limit, which is allowed only in
    experiments"""
    consistent: Annotated[bool, OptionHelp("tokens")] = False
    """replace equal words of a text by equal words and charge them once; this discloses which
    words are equal, and the record says so"""
    keep_layout: Annotated[bool, OptionHelp("tokens")] = False
    """copy the writer's spacing and capitals; the record counts them as unprotected"""
    stopwords: Annotated[StopwordAction | None, OptionHelp("tokens")] = None
    """treatment of stop words; paper: kept in S1, perturbed in S2 to S4 (default: params.yaml)"""
    punctuation: Annotated[PunctuationAction | None, OptionHelp("tokens")] = None
    """treatment of punctuation; sample: a random token replaces it (default: params.yaml)"""
    oov: Annotated[UnknownAction | None, OptionHelp("tokens")] = None
    """treatment of words outside the vocabulary (default: params.yaml)"""
    on_unsupported: Annotated[Literal["refuse", "withhold"], OptionHelp("tokens")] = "refuse"
    """treatment of texts in a script without spaces between words, such as Chinese, which cannot
    be cut into words: refuse the input; or withhold such texts, so that each becomes empty, and
    the record says so"""
    shares: Annotated[
        dict[Literal["stopwords", "numbers", "listed"], Share] | None,
        OptionHelp("tokens", f"CLASS={NUMBER},CLASS={NUMBER}"),
    ] = None
    """share of the budget for each token of a public class (stopwords, numbers, listed),
    relative to 1 for other tokens; this discloses which tokens are in the class, and the record
    says so (default: lexveil.toml)"""
    share_list: Annotated[ListFile | None, OptionHelp("tokens", "FILE@HASH")] = None
    """the public word list that defines the class listed, one word per line (default:
    lexveil.toml)"""
    screen: Annotated[ScreenParts | None, OptionHelp("tokens", "PART,PART")] = None
    """the parts of the public word list whose words are never written; the nearest other word is
    written in their place. vulgar; jargon, words of computing and words in no dictionary;
    health; crime; religion; names, of persons; none: every word may be written. For S5, the bank
    must be built without these parts (default: lexveil.toml: release.screen, else all parts)"""
    detector: Annotated[Literal["none", "presidio"] | None, OptionHelp("tokens")] = None
    """detector of names, numbers and similar entities; its matches are disclosed (default:
    lexveil.toml)"""
    spacy_model: Annotated[str | None, OptionHelp("tokens", "NAME")] = None
    """an installed spaCy model, or its folder, by which the detector presidio also finds names
    (default: lexveil.toml, else no model: patterns only)"""
    protect: Annotated[str | None, OptionHelp("tokens", "FILE")] = None
    """list of words and phrases to match, one per line, below a heading [TYPE] (default:
    lexveil.toml)"""
    allow: Annotated[str | None, OptionHelp("tokens", "FILE")] = None
    """list of words and phrases that no detector matches (default: lexveil.toml)"""
    types: Annotated[
        dict[str, FoundAction] | None, OptionHelp("tokens", "TYPE=ACTION,TYPE=ACTION")
    ] = None
    """treatment of matches, by their type: placeholder (the default), drop, sample (a random
    word), pseudonym, digits (other digits in the same form) or perturb (default: lexveil.toml)"""
    pseudonyms: Annotated[str | None, OptionHelp("tokens", "FILE")] = None
    """list of public names from which pseudonyms are drawn (default: lexveil.toml)"""
    spans_column: Annotated[str | None, OptionHelp("input", "COLUMN")] = None
    """the column of spans that another program found, [{"start": 8, "end": 18, "type":
    "PERSON"}] in characters; the column is empty in the output"""
    mode: Annotated[Literal["release", "experiment"] | None, OptionHelp("noise")] = None
    """release (the default): the noise comes from the operating system, and the ledger is
    charged; experiment: seeded, repeatable, not private"""
    seed: Annotated[Count | None, Field(ge=0, lt=2**63), OptionHelp("noise", "N")] = None
    """the seed of an experiment (default: params.yaml); implies the mode experiment"""
    without_guarantee: Annotated[bool, OptionHelp("noise")] = False
    """release even without a guarantee; the name of the output then says so"""

    workers: Annotated[Count | None, Field(ge=1, le=1024), OptionHelp("output", "N")] = None
    """number of processes, one core each; it changes no result (default: 1 for small inputs,
    else lexveil.toml: machine.workers)"""
    on_exhausted: Annotated[OnExhausted | None, OptionHelp("output")] = None
    """treatment of texts of subjects whose budget is exhausted: leave them out and list them, or
    release nothing (default: lexveil.toml: ledger.on_exhausted)"""

    @property
    def level(self) -> LevelName | None:
        """The protection level of the request. If neither the request nor the project sets epsilon
        in another way, the value is the default level.
        """
        says = self.mechanism == "none" or any(getattr(self, name) is not None for name in BUDGETS)
        return self.protection if says else DEFAULT_LEVEL

    @property
    def is_release(self) -> bool:
        """Whether the request is a release, with noise from the operating system and a charge to
        the ledger. A request with a seed is an experiment.
        """
        return self.mode == "release" or (self.mode is None and self.seed is None)

    @model_validator(mode="before")
    @classmethod
    def _with_mechanism(cls, values: Any) -> Any:
        """Set the default mechanism of strategy S5 (sentences) in a request that names no
        mechanism.
        """
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
                    f"{SENTENCES}, or remove the option"
                )
        given = [name for name in BUDGETS if getattr(self, name) is not None]
        if (self.mechanism == "none") != (self.strategy == "none"):
            raise ValueError(
                f"{option('mechanism')} is '{self.mechanism}' and {option('strategy')} is "
                f"'{self.strategy}'; set both to 'none', which keeps texts unchanged, or set "
                "neither to 'none'"
            )
        if self.mechanism == "none" and given:
            raise ValueError(
                f"{option('mechanism')} 'none' spends no epsilon; remove {option(given[0])}"
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
                "a level of protection sets the epsilon of every token, whatever the length "
                f"of a text; remove {option('average_words')}, or give {option('epsilon')}"
            )
        if self.mode == "release" and self.seed is not None:
            raise ValueError(
                f"a seed makes an experiment; remove {option('mode')} release or {option('seed')}"
            )
        if self.is_release:
            self._check_limits()
        return self

    def _check_sentences(self) -> None:
        """Check that a request for strategy S5 (sentences) has no option that this strategy
        lacks.
        """
        if self.mechanism not in OVER_SENTENCES:
            raise ValueError(
                f"{option('mechanism')} {self.mechanism} replaces only words, not "
                f"sentences; remove {option('mechanism')}, or choose one of "
                f"{', '.join(OVER_SENTENCES)}"
            )
        for name in OF_WORDS:
            if getattr(self, name) not in (None, False) and getattr(self, name) != "none":
                raise ValueError(
                    f"{option(name)} has no effect in strategy {SENTENCES}, which handles "
                    f"no single words; remove {option(name)}"
                )
        if self.protection is not None and self.epsilon is not None:
            raise ValueError(
                f"give one of {option('protection')} (a level) and {option('epsilon')} (of each "
                "sentence)"
            )
        if self.unit == "sentence" and self.sentences is not None:
            raise ValueError(
                f"{option('unit')} 'sentence' writes one sentence for each sentence; remove "
                f"{option('sentences')}"
            )
        if self.mode == "release" and self.seed is not None:
            raise ValueError(
                f"a seed makes an experiment; remove {option('mode')} release or {option('seed')}"
            )

    def _check_limits(self) -> None:
        if self.average_words == "data":
            raise ValueError(
                f"{option('average_words')} data: the average of the texts depends on "
                "private texts, and so would every epsilon; give a public number of words, "
                f"remove the option to take the mean of the corpus, or add {option('mode')} "
                "experiment"
            )
        if self.max_token_epsilon == "none":
            raise ValueError(
                f"{option('max_token_epsilon')} none: without a limit, short texts get so "
                "large an epsilon that they stay unchanged; give a number, remove the "
                f"option to take twice the base epsilon, or add {option('mode')} experiment"
            )


class FileRequest(Request):
    """Request to rewrite texts from files, from standard input or from a database."""

    text_column: Annotated[
        tuple[str, ...], BeforeValidator(_columns), OptionHelp("input", "NAME")
    ] = ()
    """a column to rewrite; the option can be repeated, and the texts of a row share its budget.
    In JSON lines, it may be a path to texts inside a column, such as messages[].content
    (default: text, else the only column that could contain texts by type and name; several such
    columns are an error)"""
    subject_column: Annotated[str | None, OptionHelp("input", "NAME")] = None
    """the column that names the subject of a row; the ledger adds up a subject's epsilon over
    all releases, up to the cap (default: each text is its own subject, which is recognized by
    its content)"""
    form: Annotated[str | None, OptionHelp("input", "F")] = None
    """the format of standard input, by its ending, such as csv or txt (default: jsonl)"""
    delimiter: Annotated[
        str | None, AfterValidator(_delimiter), OptionHelp("input", "CHARACTER")
    ] = None
    """the delimiter of fields in CSV or TSV: a character, or comma, semicolon, tab or bar
    (default: the delimiter of the first line; standard error says so if the file's name implies
    another)"""
    encoding: Annotated[str | None, AfterValidator(_encoding), OptionHelp("input", "NAME")] = None
    """the text encoding of a file, such as utf-16 or cp1252 (default: UTF-8, or UTF-16 by its
    byte order mark)"""
    sql: Annotated[str | None, OptionHelp("input", "SELECT")] = None
    """the query to read, if IN is a database (postgresql://host/database, sqlite:///path); the
    address must not have a password, which client libraries read from places such as ~/.pgpass"""
    formulas: Annotated[Literal["keep", "quote", "refuse"], OptionHelp("output")] = "keep"
    """treatment of rewritten CSV or TSV fields that begin with = + - @, which spreadsheets
    compute: keep and count them, put an apostrophe before them, or release nothing"""
    table: Annotated[str | None, OptionHelp("output", "NAME")] = None
    """the table to write, if OUT is a database: NAME or SCHEMA.NAME"""
    if_exists: Annotated[Literal["fail", "append", "replace"], OptionHelp("output")] = "fail"
    """treatment of an existing table: release nothing, add to its rows, or replace them"""

    @model_validator(mode="after")
    def _has_columns(self) -> Self:
        if self.spans_column is not None and self.spans_column in (
            *self.text_column,
            self.subject_column,
        ):
            raise ValueError(
                f"{option('spans_column')} is also a text column or the subject column; use "
                "a separate column for spans"
            )
        return self


def as_requested(name: str, default: Any = None, example: Any = None) -> Any:
    """Return a pydantic field for another model, with the type, limits and help of an option of
    ``Request``, but with a different default and an example of a value.
    """
    field = copy(Request.model_fields[name])
    field.default = default
    field.examples = None if example is None else [example]
    field.description = (field.description or "").partition(" (default:")[0]
    return field


def partly(
    model: type[Request], leave_out: Collection[str] = (), **other_types: Any
) -> type[Section]:
    """Return a model class with the options of a request, all of which may be omitted. An omitted
    field is None. The fields are not validated against each other.

    Args:
        leave_out: names of options that the model does not have.
        other_types: types of the fields that accept only some values, by name.
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
    """Return the description of how the command-line help shows a field."""
    return next((mark for mark in field.metadata if isinstance(mark, OptionHelp)), OptionHelp())


def choices_of(field: FieldInfo) -> list[str]:
    """Return the names that an option accepts, if it accepts only names."""
    kinds = [kind for kind in (typing.get_args(field.annotation) or ()) if kind is not type(None)]
    if typing.get_origin(field.annotation) is Literal:
        return [str(name) for name in kinds]
    if not kinds or any(typing.get_origin(kind) is not Literal for kind in kinds):
        return []
    return [str(name) for kind in kinds for name in typing.get_args(kind)]
