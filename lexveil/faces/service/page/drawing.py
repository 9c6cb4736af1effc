"""Computation for the explore page: rewrite one text several times, as experiments, and describe
each token, its outcomes in these draws, and its possible outcomes.

Nothing is written or charged, and no ledger is opened. The results contain source text, so they are
for the page alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lexveil.base.errors import LexveilError, RequestError
from lexveil.core.accounting.budgets import Action, DocumentBudget
from lexveil.core.accounting.changes import Fate, TextChanges
from lexveil.core.embeddings.exact_search import ExactSearch
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.core.text.encode import TokenClass
from lexveil.core.text.pieces import plain
from lexveil.faces.service.page.form import SAMPLES, Form, Row
from lexveil.faces.service.warm_model import WarmModel
from lexveil.io.artifacts.default_bank import has_written_bank
from lexveil.io.artifacts.model import Model
from lexveil.io.config import LedgerParams
from lexveil.release import preconditions
from lexveil.release.adapters.memory import Texts, whole_chunks
from lexveil.release.engine.batch import Batch, Rewritten, batch_of
from lexveil.release.engine.counts import BatchCounts, Tally
from lexveil.release.engine.engine import Engine, WordEngine
from lexveil.release.engine.sentences import TRIED_DRAWS, SentenceEngine, engine_of
from lexveil.release.ledger.amounts import NANO, cap_nano, costs
from lexveil.release.ledger.reservation import ExhaustedError
from lexveil.release.looking.inspect import draws_in_words
from lexveil.release.preconditions import LanguageCheck
from lexveil.release.settings import Settings, document_budget

SHOWN = 8  # number of neighbours and outcomes of a token to show
LIKELIEST = 10  # number of sentences to show that may replace a unit
OFTEN = 500  # number of draws from which frequencies are computed
MODELS = 2  # number of models in memory
# number of successive samples, enough for the searches after which products of 8 bits are used
MANY = 30
CLASSES = {
    TokenClass.WORD: "word",
    TokenClass.STOPWORD: "stop word",
    TokenClass.PUNCTUATION: "punctuation",
    TokenClass.OOV: "unknown word",
    TokenClass.FOUND: "found",
    TokenClass.SENTENCE: "unit",
}


@dataclass(frozen=True, slots=True, repr=False)
class Token:
    """A token of the source text on the explore page.

    Attributes:
        text: the text of the token in the source.
        before: the text between the previous token and this token.
        action: the action on the token, in the words of token logs.
        word: the index of the token in the vocabulary of the mechanism; -1 if the token is not in
            the vocabulary.
        epsilon: the epsilon that the token spends.
    """

    text: str
    before: str
    kind: str
    action: str
    n_words: int
    word: int
    epsilon: float


@dataclass(frozen=True, slots=True, repr=False)
class Drawing:
    """A text, its tokens, and its outcomes in several draws of noise. If texts are replaced by
    sentences, the tokens are the units that are replaced: the text, or each of its sentences.

    Attributes:
        draws: for each draw, the changes of the tokens.
        outputs: for each draw, the vocabulary index of the word written at each token; -1 if no
            word was written.
        rest: the text of the source after its last token.
        spent: the epsilon spent in each draw.
        in_release: the settings of a release of the text.
        refused: why that release would be refused; None if it would not be, or if this is not known
            yet.
        stamp: why the output of that release would be named as an output without a guarantee; None
            if it would not be.
        language: the sentence that warns that the text may have another language than the model;
            None if there is no warning.
        in_words: the sentences of `lexveil inspect` about the text, computed from the draws.
    """

    form: Form
    settings: Settings
    engine: Engine
    budget: DocumentBudget
    tokens: Sequence[Token]
    rest: str
    draws: Sequence[TextChanges]
    outputs: Sequence[Sequence[int]]
    spent: float
    in_release: Settings
    refused: str | None
    stamp: str | None
    language: str | None
    in_words: Sequence[str]

    @property
    def is_decided(self) -> bool:
        """Whether it is already known if a release would be refused. It is not known at first if
        the expected recovery (the share of words that an adversary would guess) is limited, because
        computing it takes long.
        """
        return (
            self.refused is not None or self.engine.model.configuration.release.max_recovery is None
        )

    @property
    def counts(self) -> Counter[str]:
        """The number of tokens by the action on them, such as perturbed or kept."""
        return Counter(token.action for token in self.tokens)

    @property
    def epsilons(self) -> tuple[float, float] | None:
        """The smallest and the largest epsilon of a token, or None if no token has any epsilon."""
        paid = [token.epsilon for token in self.tokens if token.epsilon > 0]
        return (min(paid), max(paid)) if paid else None

    @property
    def words(self) -> list[str]:
        """The words in the vocabulary of the mechanism, in the order of their indices."""
        return [
            plain(self.engine.lexicon.tokens[row]) for row in self.engine.vocabulary.rows.tolist()
        ]

    def token(self, number: int | None) -> Token:
        """Return a token of the source text by its index.

        Raises:
            RequestError: if there is no token with this number.
        """
        if number is None or number >= len(self.tokens):
            raise RequestError("the text has no such token any more; choose another one")
        return self.tokens[number]

    def outcome(self, draw: int, token: int) -> str:
        """Return the text that one draw wrote in place of a source token. The text is empty if the
        token was dropped.
        """
        changes = self.draws[draw]
        each = len(changes.fates) // len(self.tokens)  # several sentences replace a unit
        start = int(changes.output_spans[token * each, 0])
        end = int(changes.output_spans[(token + 1) * each - 1, 1])
        return "" if start < 0 else changes.output[start:end]

    def detail(self, number: int | None) -> Detail:
        """Return the possible outcomes of a token, with their probabilities.

        Raises:
            RequestError: if there is no token with this number.
        """
        token = self.token(number)
        drawn = [
            (self.outcome(i, number or 0), draw.fates[number or 0])
            for i, draw in enumerate(self.draws)
        ]
        if isinstance(self.engine, SentenceEngine):
            likeliest = self.engine.likeliest(self.form.text, number or 0, token.epsilon, LIKELIEST)
            whole = sum(chance for _, chance in likeliest)
            basis = f"the likeliest of {self.engine.mechanism.size:,} sentences"
            basis += f", with a probability of {whole:.2%} in total"
            if not self.engine.mechanism.has_closed_form():
                basis += f", by {TRIED_DRAWS:,} draws"
            return Detail(number or 0, token, [], likeliest, basis, drawn)
        return self._detail_of_word(number or 0, drawn)

    def _detail_of_word(self, number: int, drawn: Sequence[tuple[str, Fate]]) -> Detail:
        token = self.tokens[number]
        words = self.words
        near = list[tuple[str, float]]()
        if token.word >= 0:
            vectors = self.engine.vocabulary.vectors
            query = vectors[token.word].astype(np.float64)[None]
            ids, distances = ExactSearch(vectors).nearest_k(query, min(SHOWN + 1, len(words)))
            pairs = zip(ids[0].tolist(), distances[0].tolist(), strict=True)
            near = [(words[i], distance) for i, distance in pairs if i != token.word][:SHOWN]
        counted = self._redrawn(token)
        becomes = [(words[word], n / OFTEN) for word, n in counted.most_common(SHOWN)]
        different = f"{len(counted):,} different word" + ("" if len(counted) == 1 else "s")
        unchanged = f"unchanged {counted[token.word] / OFTEN:.1%}"
        basis = f"of {OFTEN} draws, {different}; {unchanged}"
        return Detail(number, token, near, becomes, basis, drawn)

    def _redrawn(self, token: Token) -> Counter[int]:
        """Draw the replacement of a token ``OFTEN`` times, and count the drawn words, by their
        vocabulary indices. Nothing is counted if the token is not perturbed.
        """
        if token.action != Action.PERTURBED.name.lower():
            return Counter()
        mechanism = self.engine.prepared.mechanism
        assert isinstance(self.engine, WordEngine)
        instead = self.engine.instead
        # If an equal token before this one determines its replacement, return the outcomes of that
        # token.
        epsilon = token.epsilon or max(
            other.epsilon for other in self.tokens if other.word == token.word
        )
        ids = np.full(OFTEN, token.word)
        budgets = np.full(OFTEN, epsilon)
        rng = stream(self.form.seed, "explore", str(token.word))
        drawn = mechanism.replace(ids, budgets, mechanism.noise(budgets, rng))
        return Counter((drawn if instead is None else instead[drawn]).tolist())


@dataclass(frozen=True, slots=True, repr=False)
class Detail:
    """The possible outcomes of one token, with their probabilities.

    Attributes:
        neighbours: the nearest words in the vocabulary, and their distances.
        becomes: the possible outcomes and the share of each. For words, the shares are frequencies
            in ``OFTEN`` draws; for sentences, they are the probabilities of the mechanism.
        basis: sentence that says how the shares were obtained.
    """

    number: int
    token: Token
    neighbours: Sequence[tuple[str, float]]
    becomes: Sequence[tuple[str, float]]
    basis: str
    drawn: Sequence[tuple[str, Fate]]


@dataclass(slots=True)
class ExploreSession:
    """Session of one explore page, for one thread. The session keeps models, their mechanisms and
    the last drawing in memory.

    Attributes:
        default: the name of the model for requests that name no model.
    """

    default: str | None = None
    _models: dict[str, WarmModel] = field(default_factory=dict, repr=False)
    _last: tuple[Form, float | None, Drawing] | None = field(default=None, repr=False)

    def model(self, name: str) -> WarmModel:
        """Return the model with this name. The last ``MODELS`` models stay in memory."""
        if name not in self._models:
            while len(self._models) >= MODELS:
                self._models.pop(next(iter(self._models)))
            self._models[name] = WarmModel.find(self.name_of(name))
        return self._models[name]

    def name_of(self, name: str) -> str | None:
        """Return the name of the model that a form chooses, in the form that ``Model.load``
        takes.
        """
        return f"{self.default or ''}{name}" if name.startswith("+") else name or self.default

    def draw(self, form: Form, found: float | None = None, row: Row | None = None) -> Drawing:
        """Rewrite the text of a form several times (``form.draws``), as experiments.

        Args:
            found: epsilon of the protection level or of the recovery, if the form has one.
            row: the text and its position, for messages.

        Raises:
            NoSpacesError: if the text cannot be split into words.
            LexveilError: if the settings cannot be used.
        """
        form = form.of_all_tokens()
        if self._last is not None and self._last[:2] == (form, found):
            return self._last[2]
        model = self.model(form.model)
        settings = form.settings(model, found)
        model.require_checks(settings.of_words)
        engine = engine_of(settings, model)
        budget = document_budget(settings, model)
        counted, language = _counted(engine, row or Row(form.text))
        batch = Batch([[form.text]] * form.draws, [(str(number),) for number in range(form.draws)])
        done = engine.worker().draw(batch, budget)
        tally = Tally()
        vocabulary = engine.vocabulary if settings.sentences is None else None
        tally.add(done, batch.document, vocabulary)
        changes = done.changes(batch.texts, engine.lexicon)
        n = len(changes[0].fates)
        tokens = list(_tokens(done, changes[0], engine))
        numbers = np.full((form.draws, n), -1)
        if vocabulary is not None:
            known = done.rows.reshape(form.draws, n)
            numbers = np.where(known >= 0, vocabulary.number[known], -1)
        spent = float(done.token_epsilon[:n].sum())
        in_release = form.settings(model, found, is_release=True)
        refused = (
            None
            if model.configuration.release.max_recovery is not None
            else refusal(in_release, model)
        )
        drawing = Drawing(
            form,
            settings,
            engine,
            budget,
            tokens,
            form.text[int(changes[0].source_spans.max(initial=0)) :],
            changes,
            numbers.tolist(),
            spent,
            in_release,
            refused or beyond_cap(spent, budget, model.configuration.ledger),
            None if refused else stamp(in_release, model),
            language,
            draws_in_words(engine, counted, tally, one_epsilon=form.request.level is not None),
        )
        self._last = form, found, drawing
        return drawing


def load_kernels(model: str | None = None) -> None:
    """Load compiled code, so that later draws of any mechanism are faster. On a new machine, the
    code is compiled first.
    """
    session = ExploreSession(model)
    text = next(iter(SAMPLES.values()))
    # cover each kind of search
    for mechanism in ("tem", "madlib", "mahalanobis", "diffractor_tem", "diffractor_geometric"):
        session.draw(Form.of(text=text, mechanism=mechanism, epsilon="5"))
    # Near-word lists and products of 8 bits are used only after some draws, which one move of the
    # slider does not make.
    if has_written_bank(session.model("")):
        session.draw(Form.of(text=text, strategy="S5", epsilon="5"))
    for epsilon in ("1", "2", "20"):
        session.draw(Form.of(text=text, mechanism="tem", strategy="S1", epsilon=epsilon))
    session.draw(Form.of(text=f"{text}\n" * MANY, mechanism="madlib", epsilon="5"))


def _counted(engine: Engine, row: Row) -> tuple[BatchCounts, str | None]:
    """Count the tokens of a text, and return the counts and the warning about the text's language.
    The warning is None if the text may well be in the model's language.

    Raises:
        NoSpacesError: if the text cannot be split into words; the message is that of a release or
            an experiment.
    """
    check = LanguageCheck(engine.model, engine.lexicon, (row.column,))
    (whole,) = whole_chunks(Texts([row.text]))
    counted = engine.worker((row.column,)).count(batch_of(whole))
    check.add(replace(whole, first=row.number, file=row.file), counted)
    found = check.finding()
    return counted, None if found is None else found.sentence


def _tokens(done: Rewritten, changes: TextChanges, engine: Engine) -> list[Token]:
    """Return the tokens of the first text. If several sentences replace a unit (a text or a
    sentence), the unit is one token.
    """
    encoded = done.encoded
    labels = Action.labels(with_found=True)
    tokens = []
    end = 0
    for i, (start, stop) in enumerate(changes.source_spans.tolist()):
        if start < 0:
            continue
        row = int(encoded.rows[i])
        tokens.append(
            Token(
                changes.source[start:stop],
                changes.source[end:start],
                CLASSES[TokenClass(int(encoded.classes[i]))],
                labels[int(done.action[i])],
                1 if row < 0 else int(encoded.n_words[i]),
                int(engine.vocabulary.number[row]) if row >= 0 else -1,
                float(done.token_epsilon[i]),
            )
        )
        end = stop
    return tokens


def refusal(settings: Settings, model: Model) -> str | None:
    """Return the reason why a release with these settings would be refused, whatever the text, or
    None if it would not be refused.

    With ``release.max_recovery`` the call can take seconds.

    Args:
        settings: the settings of a release.
    """
    try:
        preconditions.check(settings, model)
        preconditions.require_named_subjects(model.configuration.ledger, has_subjects=False)
    except LexveilError as error:
        return str(error)
    return None


def beyond_cap(spent: float, budget: DocumentBudget, ledger: LedgerParams) -> str | None:
    """Return the reason why a release would withhold a text even if its subject had spent nothing
    before, or None if it would not withhold the text.

    Args:
        spent: epsilon that the text spends.
    """
    # the cap in the ledger is not known here
    if ledger.cap is None or ledger.cap == "unlimited":
        return None
    limit = cap_nano(ledger.cap)
    if not spent or int(costs(np.array([spent]), budget.total)[0]) <= limit:
        return None
    if ledger.on_exhausted == "refuse":
        return str(ExhaustedError.of(limit, (1, 1), (1, 1)))
    return (
        f"the cap of {limit / NANO:g} epsilon per subject (lexveil.toml: ledger.cap) is too "
        f"small for a text that spends {spent:.4g}, so the text would be withheld and "
        "listed (ledger.on_exhausted); choose a smaller budget"
    )


def stamp(settings: Settings, model: Model) -> str | None:
    """Return the reason why the name of an output must say that there is no guarantee. The result
    is None if there is a guarantee, or if a release would be refused.

    Args:
        settings: the settings of a release.
    """
    if not settings.without_guarantee:
        return None
    why = engine_of(settings, model).measurement().refusals
    if not why:
        return None
    return (
        f"no guarantee can be given, {'; '.join(why)}; lexveil.toml: "
        "release.without_guarantee permits the release nevertheless, and the output is "
        f"named OUT.{preconditions.STAMP}"
    )
