"""Checks of a request before anything is released, shared by the file commands, the Python API, the
service and the explore page.

Two further conditions concern the texts themselves, and are checked while texts are counted: that
they can be split into words, and that they are in the model's language.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from lexveil.base.errors import RequestError, option
from lexveil.base.logs import logger
from lexveil.base.runtime.hashes import code_hash, sha256, version
from lexveil.core.accounting.budgets import DocumentBudget
from lexveil.core.accounting.operator_report import LanguageFinding
from lexveil.core.accounting.record import AuditReference, ModelReference
from lexveil.core.detectors.given import type_name
from lexveil.core.text.encode import Lexicon, tokenize
from lexveil.core.text.languages.detection import other_language
from lexveil.core.text.normal_forms import is_punctuation
from lexveil.io.artifacts.model import Model
from lexveil.io.config import LedgerParams
from lexveil.io.formats.chunks import Chunk
from lexveil.io.formats.messages import name
from lexveil.io.formats.registry import as_source
from lexveil.io.request import Request
from lexveil.readers.calibration import given_back, recovered, unchanged
from lexveil.readers.meaning import recovery_at
from lexveil.release.engine.batch import selected_texts, supported
from lexveil.release.engine.counts import BatchCounts
from lexveil.release.engine.engine import Engine
from lexveil.release.engine.sentences import engine_of
from lexveil.release.linkage import linkage_of
from lexveil.release.settings import (
    Settings,
    document_budget,
    require_uniform_shares,
    resolve_settings,
)

LOG = logger(__name__)

STAMP = "no-guarantee"
LOOKED_AT_WORDS = 10_000  # number of words to examine, which is enough to tell languages apart
LOOKED_AT_CHARACTERS = 8 * LOOKED_AT_WORDS
LEAST_WORDS = 5  # classes of words whose known share the warning states
# share of the words; a model has nine tenths or more of the words of texts in its language
FEW_KNOWN = 0.6


@dataclass(frozen=True, slots=True)
class Checked:
    """A request that passed its checks, with facts for the privacy record of the output.

    Attributes:
        budget: the privacy budget of each document (of each text column, if texts are replaced by
            sentences); 0 if the budget depends on the texts and is not known yet.
        no_guarantee: why no guarantee can be given; empty if there is a guarantee.
        model: the model that the run uses.
        made_with: the SHA-256 of the model files that determine the output.
        audit: the audit of the mechanism that the privacy record cites; None if it cites no audit.
        why_no_audit: why the privacy record cites no audit.
    """

    engine: Engine
    budget: DocumentBudget
    no_guarantee: tuple[str, ...]
    model: ModelReference
    made_with: dict[str, str]
    audit: AuditReference | None
    why_no_audit: str


def check(request: Request | Settings, model: Model) -> Checked:
    """Check that texts may be rewritten as requested, before any text is read and any ledger is
    opened.

    Args:
        request: the request, or the settings of a completed request.

    Raises:
        MissingArtifactError: if an artifact of an earlier stage is missing or did not pass its
            checks.
        RequestError: if the request cannot be served. A release is also refused if a purpose (a
            scale that the metric preserves) is not public, if no guarantee is proven for it, if its
            expected recovery exceeds ``release.max_recovery``, or if the last audit of the
            mechanism found a violation.
    """
    settings = settings_for(request, model)
    require_public_purposes(settings, model)
    engine = engine_of(settings, model)
    refusals = engine.measurement().refusals
    if settings.mode == "release" and refusals and not settings.without_guarantee:
        raise NoGuaranteeError("; ".join(refusals))
    budget = document_budget(settings, model)
    _require_little_recovery(settings, engine, budget)
    _require_little_linkage(settings, model)
    made_with = engine.made_with()
    reference = model.reference(settings.of_words)
    audit, why = find_valid_audit(engine, budget, reference, made_with)
    return Checked(engine, budget, refusals, reference, made_with, audit, why)


def settings_for(request: Request | Settings, model: Model) -> Settings:
    """Return the complete settings of a request to rewrite or preview texts, after checking the
    model.

    Raises:
        MissingArtifactError: if an artifact of an earlier stage is missing or did not pass its
            checks.
        RequestError: if the request cannot be completed, or leaves texts unchanged.
    """
    settings = request if isinstance(request, Settings) else resolve_settings(request, model)
    if settings.mechanism == "none":
        raise RequestError(
            "mechanism 'none' keeps texts unchanged, so there is nothing to "
            "do; choose another mechanism"
        )
    model.require_checks(settings.of_words)
    return settings


def require_public_purposes(settings: Settings, model: Model) -> None:
    """Check that every purpose (a scale of words, such as sentiment, that the metric preserves) is
    declared public.

    Raises:
        RequestError: if a scale is not declared public; the message names the first such scale.
        ParameterError: if the vectors were made with other purposes than params.yaml names.
    """
    kept = model.kept_purposes(settings.of_words)
    private = [purpose.name for purpose in kept if not purpose.is_public]
    if private and settings.mode == "release":
        raise RequestError(
            f"nothing is released: the scale of purpose {private[0]} is not declared "
            "public, and a scale of private texts would disclose them in outputs; make the "
            "scale from public texts by `lexveil purpose build --public`, or add "
            f"{option('mode')} experiment"
        )


def is_without_guarantee(request: Request, model: Model) -> bool:
    """Return whether the name of the output must say that there is no guarantee: no guarantee is
    proven, and the user has allowed this.
    """
    if not request.is_release or not (
        request.without_guarantee or model.configuration.release.without_guarantee
    ):
        return False
    return request.mechanism == "none" or bool(check(request, model).no_guarantee)


def _require_little_recovery(settings: Settings, engine: Engine, budget: DocumentBudget) -> None:
    """Raise if a release's expected recovery (the share of words that an adversary would guess)
    exceeds ``release.max_recovery``.

    The recovery is computed at the largest epsilon that a token can get, for the words of the
    frequency band that the limit names.

    The recovery is the larger of two shares: the words that an adversary is expected to name, and
    the words that are expected to stay unchanged.
    """
    limits = engine.model.configuration.release
    if settings.mode != "release" or limits.max_recovery is None:
        return
    require_uniform_shares(settings, "lexveil.toml: release.max_recovery")
    largest = min(budget.cap, budget.total)
    band = limits.max_recovery_band
    if not largest:
        return
    curve = engine.recovery_curve()
    if curve is None:
        raise RequestError(
            "nothing is released: the expected recovery is not known for sentences; remove "
            "release.max_recovery from lexveil.toml, or rewrite words (strategy S1 to S4)"
        )
    expected = curve.at(largest)
    if given_back(expected, band) <= limits.max_recovery:
        return
    passes = curve.epsilon_for(limits.max_recovery, band, given_back).epsilon
    of = "words" if band == "all" else f"{band} words"
    raise RequestError(
        f"nothing is released: at epsilon {largest:.4g}, the largest of a token, a "
        f"Bayes-optimal adversary is expected to name {recovered(expected, band):.1%} of "
        f"the {of}{recovery_at(expected).aside}, and {unchanged(expected, band):.1%} are "
        "expected to stay unchanged; lexveil.toml: release.max_recovery allows "
        f"{limits.max_recovery:.1%}. {option('epsilon')} {passes:g} "
        f"{option('max_token_epsilon')} {passes:g} meets the limit"
    )


def _require_little_linkage(settings: Settings, model: Model) -> None:
    """Raise if a release's linkage (how often an adversary identifies the source of an output)
    exceeds ``release.max_linkage``.

    The largest share among all lengths of text counts, and a linkage that was not measured meets no
    limit.
    """
    limit = model.configuration.release.max_linkage
    if settings.mode != "release" or limit is None:
        return
    linkage = linkage_of(settings, model)
    if linkage.largest is not None and linkage.largest <= limit:
        return
    raise RequestError(
        f"nothing is released: {linkage.sentence}; lexveil.toml: release.max_linkage allows "
        f"{limit:.1%} (docs/reference/levels.md, Linkage)"
    )


def require_named_subjects(ledger: LedgerParams, has_subjects: bool) -> None:
    """Check that a release names the subject of each row if its ledger stores keys in plain text.
    Without named subjects such a ledger would store the texts themselves as keys.

    Raises:
        RequestError: if the ledger stores plain keys and the release names no subjects.
    """
    if ledger.keys == "plain" and not has_subjects:
        raise RequestError(
            "lexveil.toml: ledger.keys is plain, so the ledger would store each text "
            f"without a subject as its own key; give {option('subject_column')}, or set "
            "ledger.keys to hashed"
        )


def stamped(target: Path) -> Path:
    """Return the path of an output that has no privacy guarantee: NAME.no-guarantee.EXT. The path
    stays unchanged if the file or its folder already has this mark.
    """
    if STAMP in target.name or STAMP in target.parent.name:
        return target
    source = as_source(target)
    stem = source.stem if source else target.name
    return target.with_name(f"{stem}.{STAMP}{target.name[len(stem) :]}")


def find_valid_audit(
    engine: Engine, budget: DocumentBudget, model: ModelReference, made_with: Mapping[str, str]
) -> tuple[AuditReference | None, str]:
    """Find the recorded audit of the mechanism that matches a run and has the nearest epsilon.
    Return the audit and an empty reason, or None and the reason why no audit matches.

    `lexveil schedule` runs such audits every week.

    Args:
        model, made_with: the model and the artifacts of the run.

    Raises:
        RequestError: if the request is a release, and any audit of this mechanism with these
            parameters found a violation, whatever its age and its other settings.
    """
    settings = engine.settings
    folder = engine.model.project.audits
    parameters = engine.prepared.parameters
    epsilon = settings.base_epsilon
    average = budget.average_words
    if epsilon is None:
        average = engine.model.average_words() if average is None else average
        epsilon = budget.total / average if average else 0.0
    audited = f"{settings.mechanism} {settings.strategy}"
    why = f"there is no audit of {audited} in {folder}"
    valid = list[tuple[float, AuditReference]]()
    for file in sorted(folder.glob(f"{settings.mechanism}-{settings.strategy}-*.json")):
        try:
            result = json.loads(file.read_text(encoding="utf-8"))
            if (
                result["violation"]
                and result["parameters"] == parameters
                and settings.mode == "release"
            ):
                raise RequestError(
                    f"{file}: the last audit of {audited} found a violation of the claimed "
                    "epsilon, so nothing is released with it; correct the mechanism and "
                    "audit it again"
                )
            days = engine.model.configuration.operation.audit_days
            differs = {
                "an audit of other parameters of the mechanism": result["parameters"] != parameters,
                "an audit of another policy": result["policy"] != asdict(settings.policy),
                "an audit of other shares of the budget": result["shares"]
                != (settings.shares and settings.shares.as_dict()),
                "an audit of releases without detectors": settings.detection is not None,
                "an audit of another model or another version of it": result["model"]
                != model.to_dict(),
                "an audit of another embedding, other collocations or word orders": result["space"]
                != made_with,
                "an audit of another version of the code": (result["lexveil"], result["code"])
                != (version(), code_hash()),
                "an audit of an experiment's noise": result["mode"] != "release",
                "inconclusive": result["verdict"] not in ("no violation found", "violated"),
                f"an audit of a base epsilon from {min(result['epsilons']):g} to "
                f"{max(result['epsilons']):g}": not (
                    min(result["epsilons"]) <= epsilon <= max(result["epsilons"])
                ),
                f"older than {days} days (lexveil.toml: operation.audit_days)": (
                    datetime.now(UTC) - datetime.fromisoformat(result["time"])
                    > timedelta(days=days)
                ),
            }
            mismatch = next((what for what, is_so in differs.items() if is_so), None)
            if mismatch is None:
                reference = AuditReference(
                    **{key: result[key] for key in ("epsilon", "mode", "factor", "time")},
                    result="violation found" if result["violation"] else "no violation found",
                    sha256=sha256(file),
                )
                valid.append((abs(result["epsilon"] - epsilon), reference))
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            mismatch = "truncated, or of an older version"
        why = f"{file.name}: it is {mismatch}"
    return (min(valid, key=lambda pair: pair[0])[1], "") if valid else (None, why)


class NoGuaranteeError(RequestError):
    """Error for a release for which no privacy guarantee is proven. ``why`` has the reasons."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"nothing is released: no guarantee can be given, {why}. Change that; or add "
            f"{option('without_guarantee')} (lexveil.toml: release.without_guarantee = "
            f"true), which marks the output by its name; or add {option('mode')} experiment"
        )
        self.why = why


class NoSpacesError(RequestError):
    """Error for a text in a script without spaces between words.

    Attributes:
        row: the number of the row, from 1.
        script: the name of the script.
    """

    def __init__(self, message: str, row: int, script: str) -> None:
        super().__init__(message)
        self.row = row
        self.script = script


def tell_unmatched(request: Request, found: Iterable[tuple[str, str]]) -> None:
    """Warn the operator about detector types that have a configured action but no match, because
    the name of a type may be misspelt.

    Args:
        found: the types of matches, with their actions. Matches that are perturbed like ordinary
            words are not included.
    """
    types = {
        type_name(kind) for kind, action in (request.types or {}).items() if action != "perturb"
    }
    for kind in sorted(map(str, types - {kind for kind, _ in found})):
        LOG.warning(
            f"no match has the type {kind}, which --type (types=) names, so the option has "
            "no effect"
        )


class LanguageCheck:
    """Check of the first words of an input for the model's language. Texts that cannot be split
    into words, because their script has no spaces, are refused or emptied.

    Args:
        columns: the names of the text columns.
        empties: whether such texts are emptied.
    """

    def __init__(
        self, model: Model, lexicon: Lexicon, columns: Sequence[str], *, empties: bool = False
    ) -> None:
        self.model = model
        self.lexicon = lexicon
        self.columns = columns
        self.n_emptied: int | None = 0 if empties else None
        self.counts: Counter[str] = Counter()
        self.n_words = 0

    def supported(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yield the chunks of an input from its first row. If the user asked for it, texts that
        cannot be split into words are emptied and counted.
        """
        if self.n_emptied is not None:
            self.n_emptied = 0
        for chunk in chunks:
            if self.n_emptied is None:
                yield chunk
                continue
            cut, n_emptied = supported(chunk)
            self.n_emptied += n_emptied
            yield cut

    def add(self, chunk: Chunk, counted: BatchCounts) -> None:
        """Check the words of the next chunk.

        Raises:
            NoSpacesError: if a text is in a script without spaces; the message names the row.
        """
        if counted.without_spaces is not None:
            row, column, script = counted.without_spaces
            number = chunk.first + row
            place = f"{chunk.file + ', ' if chunk.file else ''}row {number:,}"
            raise NoSpacesError(
                f"{place}: {name(self.columns[column])} has a text in {script} script, "
                "which has no spaces between words, so that a clause would be one unknown "
                "word; remove the row, put spaces between its words, or add "
                f"{option('on_unsupported')} withhold",
                number,
                script,
            )
        if self.n_words < LOOKED_AT_WORDS:
            self._count(chunk)

    def _count(self, chunk: Chunk) -> None:
        texts = list[str]()
        left = LOOKED_AT_CHARACTERS
        for text in (
            text for row in selected_texts(chunk) for text in row if text is not None and left > 0
        ):
            texts.append(text[:left])
            left -= len(text)
        tokens = tokenize(texts, self.lexicon.language)
        forms = tokens.forms
        for form, count in zip(
            forms, np.bincount(tokens.ids, minlength=len(forms)).tolist(), strict=True
        ):
            if not is_punctuation(form):
                self.counts[form] += count
                self.n_words += count

    def tell(self) -> None:
        """Warn the operator if the texts do not seem to be in the model's language, or if texts
        were emptied.
        """
        if self.model.suppress_language_warning:
            return
        if (finding := self.finding()) is not None:
            LOG.warning(f"CAUTION: the input {finding.sentence}")
        if self.n_emptied:
            LOG.warning(
                f"private to the operator: {self.n_emptied:,} texts are in a script without "
                "spaces between words, and become empty"
            )

    def finding(self) -> LanguageFinding | None:
        """Return the finding about the texts' language for the operator, or None if the texts may
        well be in the model's language.
        """
        if self.n_words < LEAST_WORDS:
            return None
        n_known = sum(count for form, count in self.counts.items() if form in self.lexicon.rows)
        found = other_language(self.counts, self.lexicon.language)
        if found is None and n_known >= FEW_KNOWN * self.n_words:
            return None
        looks_like, shares = found or (None, {})
        return LanguageFinding(
            model=self.model.name,
            language=self.lexicon.language,
            looks_like=looks_like,
            function_words=shares,
            known=n_known / self.n_words,
            words=self.n_words,
        )
