"""Presidio as a detector (extra ``presidio``): its pattern recognizers, which need no model, and
its recognition of names by a spaCy model that the user installs.

Nothing is downloaded, neither a model nor the list of internet domains for the recognizer of e-mail
addresses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from lexveil.base.errors import RequestError
from lexveil.core.text.spans import Span

INSTALL = "`pip install 'lexveil[presidio]'` installs it"


@dataclass(frozen=True, slots=True)
class Presidio:
    """Settings of the Presidio detector. Each process builds its own recognizers on first use.

    Attributes:
        language: code of the language of the texts.
        entities: entities to find; empty for all supported ones.
        countries: codes of the countries whose numbers (of passports, taxes and the like) are
            found; empty for all.
        threshold: the least score of a finding.
        spacy_model: name or folder of an installed spaCy model, which finds names; with None, only
            patterns are used.
        spacy_key: name of the ``spacy_model`` parameter in messages.
    """

    language: str = "en"
    entities: tuple[str, ...] = ()
    countries: tuple[str, ...] = ()
    threshold: float = 0.3
    spacy_model: str | None = None
    spacy_key: str = field(default="detection.presidio.spacy_model", compare=False)

    @property
    def name(self) -> str:
        """Name of the detector in privacy records, with its version."""
        import importlib.metadata

        patterns = (
            "patterns" if self.spacy_model is None else f"patterns and {_last(self.spacy_model)}"
        )
        return f"presidio-analyzer {importlib.metadata.version('presidio-analyzer')} ({patterns})"

    def check(self) -> None:
        """Raise unless Presidio can run with these settings.

        Raises:
            RequestError: if Presidio is not installed, or lacks the model, the language or an
                entity.
        """
        engine = _engine(self)
        known = set(engine.get_supported_entities(self.language))
        if unknown := sorted(set(self.entities) - known):
            raise RequestError(
                f"lexveil.toml: detection.presidio.entities: presidio has no entity {unknown[0]} "
                f"with these settings; it has {', '.join(sorted(known))}"
            )

    def find(self, texts: Sequence[str]) -> Iterator[list[Span]]:
        """Yield the entity spans that Presidio finds in each text."""
        engine = _engine(self)
        entities = list(self.entities) or None
        for text in texts:
            results = engine.analyze(
                text, self.language, entities=entities, score_threshold=self.threshold
            )
            yield [Span(result.start, result.end, result.entity_type) for result in results]


def _last(model: str) -> str:
    """Return the name of a spaCy model without its folder, which must not appear in records or
    messages.
    """
    return Path(model).name


@cache
def _engine(settings: Presidio) -> Any:
    """Return this process's Presidio analyzer for the settings; it is built once per settings.

    Raises:
        RequestError: as ``Presidio.check``.
    """
    try:
        from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
        from presidio_analyzer.nlp_engine import NoOpNlpEngine
    except ImportError:
        raise RequestError(f"the detector presidio is not installed; {INSTALL}") from None
    languages = [settings.language]
    countries = list(settings.countries) or None
    nlp: Any = NoOpNlpEngine(models=[{"lang_code": settings.language, "model_name": "none"}])
    if settings.spacy_model is not None:
        nlp = _spacy(settings)
    registry = RecognizerRegistry(supported_languages=languages)
    registry.load_predefined_recognizers(languages=languages, nlp_engine=nlp, countries=countries)
    _keep_offline(registry.recognizers)
    if not registry.recognizers:
        raise RequestError(
            "lexveil.toml: detection.presidio.language: presidio has no recognizer of "
            f"{settings.language}"
        )
    return AnalyzerEngine(registry=registry, nlp_engine=nlp, supported_languages=languages)


def _spacy(settings: Presidio) -> Any:
    import spacy
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    model = str(settings.spacy_model)
    model_name = f"{settings.spacy_key}: {_last(model)}"
    # Presidio would download a missing model.
    if not spacy.util.is_package(model) and not (Path(model) / "config.cfg").is_file():
        raise RequestError(
            f"{model_name} is neither an installed model of spaCy nor a folder of one; `python -m "
            "spacy download NAME` "
            "installs a model of spaCy, or leave this setting out to use patterns only. Lexveil "
            "does not download models"
        )
    try:
        loaded = spacy.load(model)
    except (OSError, ValueError):
        raise RequestError(f"{model_name} is not a model that spaCy can load") from None
    if not any("doc.ents" in loaded.get_pipe_meta(pipe).assigns for pipe in loaded.pipe_names):
        raise RequestError(
            f"{model_name} has no component that finds names (ner); choose another model, or "
            "leave this setting out to use patterns only"
        )
    engine = SpacyNlpEngine(models=[{"lang_code": settings.language, "model_name": _last(model)}])
    engine.nlp = {settings.language: loaded}
    return engine


def _keep_offline(recognizers: Sequence[Any]) -> None:
    """Make the recognizer of e-mail addresses use the installed list of domains, so that it
    downloads none.
    """
    import tldextract
    from presidio_analyzer.predefined_recognizers import EmailRecognizer

    extract = tldextract.TLDExtract(cache_dir=None, suffix_list_urls=())
    for recognizer in recognizers:
        if isinstance(recognizer, EmailRecognizer):
            recognizer.validate_result = lambda text: extract(text).fqdn != ""
