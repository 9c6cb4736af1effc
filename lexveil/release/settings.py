"""The complete settings by which texts are rewritten: a request, completed by a project's defaults
and by a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from lexveil.base.errors import RequestError, option
from lexveil.base.logs import logger
from lexveil.base.runtime.hashes import sha256
from lexveil.core.accounting.budgets import (
    DEFAULT_FOUND,
    MOST_TOKENS,
    SEGMENTATION_OF,
    BudgetSource,
    DocumentBudget,
    PerDocument,
    PerToken,
    Policy,
    Spending,
)
from lexveil.core.accounting.expected_recovery import WORDS_ALONE
from lexveil.core.accounting.record import Protection
from lexveil.core.accounting.shares import CLASSES, WHOLE, BudgetShares, parts_of
from lexveil.core.detectors.detection import Detection
from lexveil.core.detectors.given import type_name
from lexveil.core.detectors.presidio import Presidio
from lexveil.core.mechanisms.over_sentences import OF_VECTORS
from lexveil.core.mechanisms.registry import MECHANISMS
from lexveil.core.protection import LEVELS, LevelName, MeasuredLevel
from lexveil.core.screen_parts import NONE, chosen_parts
from lexveil.io.artifacts.default_bank import level_of_written, open_wanted, takes_written_bank
from lexveil.io.artifacts.levels import PER_TEXT, level_of, measured_levels, spending_at
from lexveil.io.artifacts.model import Model
from lexveil.io.artifacts.project import Project
from lexveil.io.artifacts.screened_words import LANGUAGE
from lexveil.io.artifacts.user_lists import load_phrases, load_pseudonyms, load_words
from lexveil.io.config import DetectionParams, PolicyParams, ShareParams
from lexveil.io.config.operation import PresidioParams
from lexveil.io.config.privacy import every_mechanism
from lexveil.io.request import SENTENCES, Request
from lexveil.readers.bank_levels import level_of_bank
from lexveil.readers.calibration import recovered
from lexveil.readers.stored_curve import StoredCurve

LOG = logger(__name__)

# factor for the shares of a level if the model has no bigrams, because an adversary with context
# names up to 1 / 0.35 times as many words
BY_WORD = 0.35
# the strategy that provides the words, collocations and vectors for sentences
WORDS_OF_SENTENCES = "S3"
EPSILON = 5.0  # epsilon of a sentence of the packaged bank, unless the request gives one
# policy for sentences: no word of a text is kept
NOTHING_KEPT = Policy("perturb", "perturb", "perturb")
ORDINARY_SENTENCES = 10  # number of sentences of a text of ordinary length
# times the share that an adversary names without any output; a smaller share is no useful target
NEARLY = 1.5


@dataclass(frozen=True, slots=True)
class Sentences:
    """Settings for replacing texts by sentences of a sentence bank.

    Attributes:
        bank: the folder of the sentence bank, or the name of the packaged bank; None for the bank
            that the project has built or, without one, the packaged bank.
        unit: the unit that is embedded and replaced: a whole text, or each of its sentences.
        per_text: number of sentences that replace a text; None if one sentence replaces each
            sentence.
    """

    bank: str | None
    unit: Literal["text", "sentence"]
    per_text: int | None

    def spending(self, epsilon: float) -> PerToken:
        """Return the settings for spending ``epsilon`` on every sentence that is written for a
        text.
        """
        if self.per_text is not None:
            return PerToken(DocumentBudget(epsilon * self.per_text, epsilon))
        most = epsilon * MOST_TOKENS
        return PerToken(DocumentBudget(most, epsilon, ordinary_sentences=ORDINARY_SENTENCES))


@dataclass(frozen=True, slots=True)
class Settings:
    """The complete settings by which texts are rewritten. All texts of a document share one budget.

    Attributes:
        spending: the epsilon that is spent on each token or on each document; None if texts stay
            unchanged.
        seed: the seed of an experiment; None in release mode.
        consistent: whether equal tokens of a document get the same replacement, charged once.
        without_guarantee: whether a release is allowed without a guarantee, as in ``Request``.
        shares: the classes of tokens that get a larger or smaller share of the budget; None if all
            tokens have the same share.
        detection: the detection of tokens in texts, and the actions on them; None without
            detection.
        screen: the parts of the public list of unwanted words, which are never written. For
            sentences, these are the parts that the request names; the sentence bank states which
            parts it was built without.
        empties_scripts: whether texts in a script without spaces between words become empty;
            otherwise the input is refused.
        protection: the protection level that determines epsilon; None if epsilon is set in another
            way.
        sentences: the settings of sentences that replace texts; None if words are replaced.
    """

    mechanism: str
    strategy: str
    spending: Spending | None
    seed: int | None
    policy: Policy
    keep_layout: bool
    consistent: bool = False
    without_guarantee: bool = False
    shares: BudgetShares | None = None
    detection: Detection | None = None
    protection: Protection | None = None
    screen: tuple[str, ...] = ()
    empties_scripts: bool = False
    sentences: Sentences | None = None

    @property
    def of_words(self) -> str:
        """The strategy that determines how texts are divided into words and collocations."""
        return self.strategy if self.sentences is None else WORDS_OF_SENTENCES

    @property
    def mode(self) -> Literal["none", "release", "experiment"]:
        """The mode of the run: none, release or experiment. A run with a known seed is an
        experiment, because its noise can be repeated.
        """
        if self.mechanism == "none":
            return "none"
        return "release" if self.seed is None else "experiment"

    @property
    def budget_source(self) -> BudgetSource:
        """The origin of the number from which every epsilon is computed, such as the request or the
        texts.
        """
        return "given" if self.spending is None else self.spending.source

    @property
    def has_public_budget(self) -> bool:
        """Whether the budget is known before any text is read, and so does not depend on the
        texts.
        """
        return self.budget_source != "data"

    @property
    def names_average_words(self) -> bool:
        """Whether the user gave the average number of words per document, which then replaces the
        mean of the corpus.
        """
        return self.spending is not None and self.spending.average_words is not None

    @property
    def base_epsilon(self) -> float | None:
        """The epsilon per word or per token, or None if only a document budget is given."""
        return None if self.spending is None else self.spending.base_epsilon

    @property
    def most_of_token(self) -> float:
        """The largest allowed epsilon of a token, from the user or the project, or infinity."""
        limit = None if self.spending is None else self.spending.max_token_epsilon
        return limit if isinstance(limit, float) else math.inf

    @property
    def metric(self) -> str | None:
        """The distance between words for which the privacy guarantee holds, or None if texts stay
        unchanged.
        """
        if self.sentences is not None:
            return OF_VECTORS[self.mechanism]
        known = MECHANISMS.get(self.mechanism)
        return known.metric if known else None

    @property
    def _layout(self) -> str:
        if self.sentences is not None:
            return "spacing and case of the sentences of the bank"
        if self.keep_layout:
            return "copied, unprotected"
        return "ordinary English spacing, lower case"

    def described(self) -> dict[str, object]:
        """Return the fields of a privacy record that describe how texts are rewritten."""
        detection = self.detection
        described = {
            "mechanism": self.mechanism,
            "metric": self.metric,
            "strategy": self.strategy,
            "segmentation": SEGMENTATION_OF.get(self.strategy),
            "base_epsilon": self.base_epsilon,
            "policy": asdict(self.policy),
            "consistent": "document" if self.consistent else None,
            "layout": self._layout,
            "mode": self.mode,
        }
        further = {
            "shares": self.shares and self.shares.as_dict(),
            "detection": detection
            and {
                "sources": detection.sources,
                "types": dict(sorted(detection.actions.items())),
                "other_types": DEFAULT_FOUND,
            },
            "protection": self.protection,
            "on_unsupported": "withhold" if self.empties_scripts else None,
        }
        return described | {name: value for name, value in further.items() if value is not None}


UNCHANGED = Settings("none", "none", None, None, Policy("keep", "keep", "keep"), keep_layout=True)


def resolve_settings(request: Request, model: Model) -> Settings:
    """Complete a request to settings. If the request names a recovery (the share of words that an
    adversary may guess), compute the base epsilon that gives it, from public data alone and before
    any text is read.

    No token gets more than the base epsilon unless the request allows it, so that an adversary is
    not expected to name a larger share of a short text either.

    Raises:
        RequestError: if a list or a detector cannot be used, the screened words are in another
            language than the model, or no epsilon gives the recovery.
    """
    settings = _screened_in_language(settings_of(request, model.project), request, model)
    if settings.sentences is not None:
        return sentences_completed(settings, model, request)
    if request.level is not None:
        return at_level(settings, model, request.level)
    if request.recovery is None:
        return settings
    require_uniform_shares(settings, option("recovery"))
    curve = StoredCurve(
        model,
        settings.mechanism,
        settings.strategy,
        settings.policy,
        told=progress_of(model, settings),
    )
    epsilon = curve.epsilon_for(request.recovery, request.band).epsilon
    LOG.info(f"recovery {request.recovery:g} ({request.band}): base epsilon {epsilon:g}")
    spending = settings.spending
    assert spending is not None
    by_words = PerDocument(
        base_epsilon=epsilon,
        average_words=spending.average_words,
        max_token_epsilon=spending.max_token_epsilon or epsilon,
    )
    return replace(settings, spending=by_words)


def _screened_in_language(settings: Settings, request: Request, model: Model) -> Settings:
    """Return the settings, without the word screen (the public list of unwanted words) if the model
    has another language than the list.
    """
    if model.language == LANGUAGE or not settings.screen:
        return settings
    if request.screen is not None:
        raise RequestError(
            f"{option('screen')} {request.screen}: the public word list is English, but "
            f"model {model.name} has the language {model.language}; remove "
            f"{option('screen')}"
        )
    return replace(settings, screen=())


def document_budget(
    settings: Settings, model: Model, average_of_texts: float | None = None
) -> DocumentBudget:
    """Return the privacy budget of each document, or of each text column if texts are replaced by
    sentences. The budget is 0 if it depends on texts whose words are not counted yet.

    Args:
        average_of_texts: mean number of words per document of the data set; None if the words are
            not counted yet.

    Raises:
        MissingArtifactError: if the budget follows from the corpus, and no run has counted its
            words.
    """
    spending = settings.spending
    assert spending is not None
    if average_of_texts is None and not settings.has_public_budget:
        return DocumentBudget(0.0, 0.0)
    return spending.budget(model.average_words, average_of_texts or 0.0)


def at_level(settings: Settings, model: Model, name: LevelName) -> Settings:
    """Return the settings at a protection level, which gives every token the same epsilon, whatever
    the length of its text.

    If measured figures are packaged with the model, the level's epsilon is computed for the
    strongest adversary that was measured. Otherwise it is computed for the stronger of two
    adversaries whose recovery is computed.

    Raises:
        RequestError: if no epsilon gives the level.
    """
    require_uniform_shares(settings, f"{option('protection')} {name}")
    measured = usable_levels(settings, model)
    sought = (settings.mechanism, settings.strategy, name)
    known = spending_at(measured, sought, settings.most_of_token, model.average_words)
    if known is not None:
        protection, spending = known
        return replace(settings, spending=spending, protection=protection)
    if any(level[:2] == sought[:2] for level in measured):
        why = (
            "measured on public texts, an adversary with context names more words at every epsilon"
        )
        raise _without_level(settings, name, why)
    told = progress_of(model, settings)
    curve = StoredCurve(model, settings.mechanism, settings.strategy, settings.policy, told=told)
    try:
        level, epsilon = _expected_level(curve, settings.mechanism, name)
    except RequestError as error:
        raise _without_level(settings, name, error.message) from None
    return replace(of_every_token(settings, model, epsilon), protection=level)


def sentences_completed(settings: Settings, model: Model, request: Request) -> Settings:
    """Return complete settings for replacing texts by sentences, with the epsilon of each sentence.

    If the request does not determine epsilon, the packaged sentence bank has a default epsilon at
    which sources are hardly ever identified (docs/reference/sentences.md). Protection levels exist
    for some settings only.

    Raises:
        RequestError: if ``sentences_at_level`` refuses the level, or if the mechanism has no
            protection levels.
    """
    wanted = settings.sentences
    assert wanted is not None
    if request.level is None:
        return settings
    if settings.mechanism != "tem":
        raise RequestError(
            f"{option('mechanism')} {settings.mechanism}: levels of protection of sentences "
            f"are measured with tem; give {option('epsilon')} of each sentence, or choose "
            "tem"
        )
    if request.protection is None and takes_written_bank(request.bank, model):
        return replace(settings, spending=wanted.spending(EPSILON))
    return sentences_at_level(settings, model, request.level)


def sentences_at_level(settings: Settings, model: Model, name: LevelName) -> Settings:
    """Return the settings for replacing texts by sentences at a protection level, which was
    calibrated on public texts.

    The public texts are those of the sentence bank or, for the packaged bank, the texts on which
    its levels were measured.

    Raises:
        RequestError: if the sentence bank cannot be used or has no protection levels, or if no
            epsilon gives the level.
    """
    wanted = settings.sentences
    assert wanted is not None
    if takes_written_bank(wanted.bank, model):
        found = level_of_written(model, wanted.per_text, name)
    else:
        found = level_of_bank(open_wanted(wanted.bank, model), model, wanted.per_text, name)
    level = Protection(
        level=name,
        reader="measured on public texts, by the exact channel",
        content=found.content,
        rare=found.rare,
        linkage=found.linkage,
        missed=found.missed,
    )
    return replace(settings, spending=wanted.spending(found.epsilon), protection=level)


def usable_levels(settings: Settings, model: Model) -> list[MeasuredLevel]:
    """Return the measured protection levels that are packaged with the model.

    The list is empty if the policy or the parameters of mechanisms differ from the defaults, for
    which the levels were measured.
    """
    if not is_usual(settings, model):
        return []
    assert model.sha256 is not None
    return measured_levels(model.sha256)


def measured_level(settings: Settings, model: Model, name: LevelName) -> MeasuredLevel | None:
    """Return the packaged, measured figures of a protection level, or None if there are none for
    these settings.
    """
    measured = usable_levels(settings, model)
    return level_of(measured, settings.mechanism, settings.strategy, name)


def beyond_light(settings: Settings, model: Model, epsilon: float) -> str | None:
    """Return a caution if a token may get more epsilon than at the weakest protection level, light,
    and otherwise None. The result is also None if the model has no packaged figure for that level.
    """
    light = measured_level(settings, model, "light")
    if light is None or epsilon <= light.epsilon:
        return None
    return (
        f"CAUTION: a token may get epsilon {epsilon:.4g}; above {light.epsilon:g} for "
        f"{settings.mechanism} {settings.strategy} an adversary names more than "
        f"{100 * LEVELS['light'].content:.0f} of 100 content words, which is more than the "
        "level light allows; choose a level of protection, or a smaller epsilon"
    )


def is_usual(settings: Settings, model: Model) -> bool:
    """Return whether the figures that are packaged with a model apply: the model has a metadata
    card, and the policy and the parameters of mechanisms have their defaults.
    """
    usual = PolicyParams()
    policy = Policy.of(settings.strategy, usual.stopwords, usual.punctuation, usual.oov)
    return (
        model.sha256 is not None
        and settings.policy == policy
        and model.params.mechanisms == every_mechanism()
    )


def of_every_token(settings: Settings, model: Model, epsilon: float) -> Settings:
    """Return settings that give every token the same epsilon, at most the largest allowed epsilon
    of a token.
    """
    epsilon = min(epsilon, settings.most_of_token)
    if settings.sentences is not None:
        return replace(settings, spending=settings.sentences.spending(epsilon))
    return replace(settings, spending=PerToken.of(epsilon, model.average_words()))


def _without_level(settings: Settings, name: LevelName, why: str) -> RequestError:
    """Return the error for a protection level that no epsilon can give."""
    way_out = "" if settings.mechanism == "tem" else f"; or choose {option('mechanism')} tem"
    return RequestError(
        f"{option('protection')} {name}: no epsilon of {settings.mechanism} "
        f"{settings.strategy} is known to give this level: {why}{way_out}"
    )


def _expected_level(
    curve: StoredCurve, mechanism: str, name: LevelName
) -> tuple[Protection, float]:
    """Return a protection level and its epsilon, computed for the strongest adversary whose
    recovery can be computed.
    """
    if not curve.in_context and MECHANISMS[mechanism].has_few_sources:
        raise RequestError(
            "an adversary with context can tell the few possible sources of an output "
            "apart, and the model has no bigrams"
        )
    content, rare = (share * (1 if curve.in_context else BY_WORD) for share in LEVELS[name])
    epsilon = curve.epsilon_for(max(content, NEARLY * curve.blind["content"]), "content").epsilon
    expected = curve.at(epsilon)
    if recovered(expected, "rare") > rare:
        epsilon = curve.epsilon_for(rare, "rare").epsilon
        expected = curve.at(epsilon)
    shares = {band: recovered(expected, band) for band in ("content", "rare")}
    reader = (
        "expected in context, for texts with the word counts of the model"
        if curve.in_context
        else f"expected {WORDS_ALONE}"
    )
    return Protection(level=name, reader=reader, **shares), epsilon


def require_uniform_shares(settings: Settings, what: str) -> None:
    """Check that all token classes have the same share of the budget. With different shares, an
    adversary also knows the class of a token, which some features do not account for.

    Args:
        what: the feature that needs equal shares, for the message.

    Raises:
        RequestError: if classes of tokens have different shares.
    """
    if settings.shares is not None:
        raise RequestError(
            f"{what}: the expected recovery is not known if classes of tokens have shares "
            f"of the budget; remove {option('shares')} and lexveil.toml: release.shares, or "
            f"give {option('epsilon')} or {option('document_budget')} and no limit"
        )


def progress_of(model: Model, settings: Settings) -> Callable[[float], None]:
    """Return a function that logs the progress of computing a curve of expected recovery (the share
    of words that an adversary would guess). Its first call logs why the computation takes time.
    """
    is_said = False

    def tell(epsilon: float) -> None:
        nonlocal is_said
        if not is_said:
            LOG.info(
                f"computing the expected recovery with the model {model.name} by "
                f"{settings.mechanism} {settings.strategy}: the result is cached, so only "
                "the first call with a model, a purpose or parameters takes up to some "
                "minutes"
            )
        is_said = True
        LOG.info(f"computing, once, the expected recovery at epsilon {epsilon:.4g}")

    return tell


def settings_of(request: Request, project: Project) -> Settings:
    """Complete a request by a project's files alone, without computing the epsilon of a recovery.

    Raises:
        RequestError: if a list or a detector cannot be used.
    """
    params = project.params
    release = project.configuration.release
    without_guarantee = request.without_guarantee or release.without_guarantee
    if request.mechanism == "none":
        if request.is_release and not without_guarantee:
            raise RequestError(
                f"{option('mechanism')} 'none' keeps texts unchanged, so no guarantee can be "
                f"given; add {option('mode')} experiment, or {option('without_guarantee')}, "
                "which marks the output by its name"
            )
        return replace(UNCHANGED, without_guarantee=without_guarantee and request.is_release)
    if request.strategy == SENTENCES:
        return _of_sentences(request, project, without_guarantee=without_guarantee)
    MECHANISMS[request.mechanism]  # the detector is in another package, which may be broken
    classes = ("stopwords", "punctuation", "oov")
    policy = {name: getattr(request, name) or getattr(params.policy, name) for name in classes}
    return Settings(
        mechanism=request.mechanism,
        strategy=request.strategy,
        spending=PerDocument(
            base_epsilon=request.epsilon,
            total=request.document_budget,
            average_words=request.average_words or release.average_words,
            max_token_epsilon=request.max_token_epsilon or release.max_token_epsilon,
        ),
        seed=None if request.is_release else params.seed if request.seed is None else request.seed,
        policy=Policy.of(request.strategy, **policy),
        keep_layout=request.keep_layout,
        consistent=request.consistent,
        without_guarantee=without_guarantee,
        shares=_shares(request, release.shares),
        detection=detection_of(request, project.configuration.detection),
        screen=chosen_parts(request.screen or release.screen),
        empties_scripts=request.on_unsupported == "withhold",
    )


def _of_sentences(request: Request, project: Project, *, without_guarantee: bool) -> Settings:
    """Return the settings of a request to replace texts by sentences.

    Raises:
        RequestError: if lexveil.toml sets an option that does not apply to sentences.
    """
    seed = project.params.seed
    detection = project.configuration.detection
    found = detection.detector is not None or detection.protect is not None
    if found and request.detector != "none":
        raise RequestError(
            f"lexveil.toml: detection.detector, detection.protect: strategy {SENTENCES} "
            "writes no word of a text, so detectors have no effect; add "
            f"{option('detector')} none"
        )
    if _shares(request, project.configuration.release.shares) is not None:
        raise RequestError(
            f"lexveil.toml: release.shares: in strategy {SENTENCES} each sentence gets the "
            "same epsilon; remove the shares"
        )
    unit = request.unit or "text"
    per_text = (request.sentences or PER_TEXT) if unit == "text" else None
    sentences = Sentences(request.bank, unit, per_text)
    return Settings(
        mechanism=request.mechanism,
        strategy=request.strategy,
        spending=sentences.spending(request.epsilon or 0.0),
        seed=None if request.is_release else seed if request.seed is None else request.seed,
        policy=NOTHING_KEPT,
        keep_layout=False,
        empties_scripts=request.on_unsupported == "withhold",
        without_guarantee=without_guarantee,
        screen=chosen_parts(request.screen or NONE),
        sentences=sentences,
    )


def _shares(request: Request, defaults: ShareParams) -> BudgetShares | None:
    """Return the classes of tokens that get a larger or smaller share of the budget, or None if all
    tokens have the same share.
    """
    parts = {}
    for name, share in (
        {name: getattr(defaults, name) for name in CLASSES[1:]} | (request.shares or {})
    ).items():
        try:
            parts[name] = parts_of(share)
        except ValueError as error:
            raise RequestError(f"{option('shares')} {name}={share}: {error}") from None
    named = request.share_list or defaults.list
    if parts["listed"] != WHOLE and named is None:
        raise RequestError(
            f"the share of listed words needs their list; give {option('share_list')}, or "
            "lexveil.toml: release.shares.list"
        )
    words = frozenset[str]()
    digest = None
    if named is not None and parts["listed"] != WHOLE:
        key = (
            "lexveil.toml: release.shares.list"
            if request.share_list is None
            else option("share_list")
        )
        words = load_words(named, key)
        digest = sha256(Path(named.rpartition("@")[0]))
    shares = BudgetShares(**parts, words=words, list_sha256=digest)
    return shares if shares.differing else None


def detection_of(request: Request, default: DetectionParams) -> Detection | None:
    """Return the settings for detecting personal data in texts, completed by lexveil.toml, or None
    if no detector is used.

    Raises:
        RequestError: if a list cannot be read, or a detector cannot be started.
    """
    detector = request.detector or default.detector
    if request.spacy_model is not None and detector != "presidio":
        raise RequestError(
            f"{option('spacy_model')} has no effect without the detector presidio; add "
            f"{option('detector')} presidio"
        )
    protect, allow, pseudonyms = (
        _file(request, default, name) for name in ("protect", "allow", "pseudonyms")
    )
    if detector in (None, "none") and protect is None and request.spans_column is None:
        for name in ("allow", "types", "pseudonyms"):
            if getattr(request, name):
                raise RequestError(
                    f"{option(name)} has no effect without a detector; add "
                    f"{option('detector')}, {option('protect')} or {option('spans_column')}"
                )
        return None
    actions = dict(default.types) | _actions(request.types or {})
    detection = Detection(
        actions,
        _presidio(request, default.presidio) if detector == "presidio" else None,
        None if protect is None else load_phrases(*protect),
        None if allow is None else load_phrases(*allow),
        request.spans_column is not None,
        load_pseudonyms(*(pseudonyms or (None, ""))) if "pseudonym" in actions.values() else {},
    )
    detection.check()
    return detection


def _presidio(request: Request, look: PresidioParams) -> Presidio:
    """Return the settings of the Presidio detector, including the request's choice of its spaCy
    model.
    """
    model = look.spacy_model
    key = "lexveil.toml: detection.presidio.spacy_model"
    if request.spacy_model is not None:
        model = request.spacy_model
        key = option("spacy_model")
    return Presidio(
        look.language, tuple(look.entities), tuple(look.countries), look.threshold, model, key
    )


def _file(request: Request, detection: DetectionParams, name: str) -> tuple[Path, str] | None:
    """Return the file that a detector reads, and the name of the option that sets the file, or None
    if no file is set.
    """
    if (requested := getattr(request, name)) is not None:
        return Path(requested), option(name)
    default = getattr(detection, name)
    return None if default is None else (Path(default), f"lexveil.toml: detection.{name}")


def _actions(types: Mapping[str, str]) -> dict[str, str]:
    actions = {type_name(written): action for written, action in types.items()}
    if None in actions:
        raise RequestError(
            f"{option('types')}: a type must be a name, such as PERSON in PERSON=placeholder"
        )
    return {str(name): action for name, action in actions.items()}
