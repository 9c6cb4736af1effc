"""Levels of protection with the model that ships, and one command without a number."""

import io
import math
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from asking import command, privatize_file

from lexveil import MECHANISMS, Model, RequestError
from lexveil.core.accounting.budgets import MOST_TOKENS, DocumentBudget, PerToken, Policy
from lexveil.core.accounting.statement import statement
from lexveil.core.protection import DEFAULT, LEVELS, MeasuredLevel
from lexveil.io.artifacts.levels import level_of, measured_levels, spending_at
from lexveil.io.artifacts.packaged_model import PackagedModel
from lexveil.io.request import Request
from lexveil.readers import public_words as public_recovery
from lexveil.readers.calibration import recovered
from lexveil.readers.public_words import PublicWords
from lexveil.readers.stored_curve import StoredCurve
from lexveil.release.engine.engine import WordEngine
from lexveil.release.ledger.caps import TIMES
from lexveil.release.settings import BY_WORD, resolve_settings
from tests.conftest import estimate_quickly, stand_outside

SHORT = "The soup was cold."
LONG = "The waiter brought cold soup and warm beer to the table. " * 60
EN = Path(__file__).parents[2] / "lexveil/models/en"


@pytest.mark.parametrize("name", ["en", "en+sentiment=1"])
def test_the_levels_that_ship_are_of_the_model_that_ships_and_keep_what_they_say(name):
    levels = measured_levels(str(Model.load(name=name).sha256))
    assert {level.level for level in levels} == set(LEVELS)
    for level in levels:
        assert (
            level.mechanism in MECHANISMS
            and level.strategy in ("S1", "S2", "S3", "S4")
            and level.epsilon > 0
        )
        wanted = LEVELS[level.level]
        assert 0 < level.content <= wanted.content and 0 <= level.rare <= wanted.rare
    request = Request()
    by_level = [
        level_of(levels, request.mechanism, request.strategy, name)
        for name in ("strong", "balanced", "light")
    ]
    epsilons = [one.epsilon for one in by_level if one is not None]
    assert len(epsilons) == len(LEVELS) and epsilons == sorted(epsilons)
    assert not measured_levels("0" * 64)


@dataclass(frozen=True)
class Released:
    """Output of a release, and its file."""

    out: str
    err: str
    file: Path

    def epsilons(self, row):
        """The different ε of the tokens of a row."""
        log = pq.read_table(f"{self.file}.tokens.parquet", filters=[("row", "=", row)])
        return sorted({*log.column("epsilon").to_pylist()})


@pytest.fixture(scope="module")
def released(packaged, tmp_path_factory):
    """A release without any option, of a short text and of a long one; for reading alone."""
    rows = f"id,topic_id,body\n1,On soup,{SHORT}\n2,On soup,{LONG}\n"
    out = io.StringIO()
    err = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        estimate_quickly(patch, tmp_path_factory.getbasetemp() / "figures")
        folder = stand_outside(packaged, tmp_path_factory.mktemp("released"), patch)
        (folder / "in.csv").write_text(rows, encoding="utf-8")
        assert command("privatize", "in.csv", "-o", "out.csv") == 0
    return Released(out.getvalue(), err.getvalue(), folder / "out.csv")


@pytest.fixture
def default_level():
    """The level that ships for a request without options."""
    level = level_of(measured_levels(PackagedModel(EN).hash), Request().mechanism, "S1", DEFAULT)
    assert level is not None
    return level


def test_a_release_without_a_number_says_what_its_level_means(released, default_level):
    level, linkage, files, *_ = released.out.splitlines()
    words = "a reader who knows the method is expected to name "
    assert level.startswith(f"protection {DEFAULT}: {words}")
    assert f"{100 * default_level.content:.0f} of 100 content words" in level
    assert "whoever has the original text among 1,000" in linkage
    assert "out.csv.record.json" in files


def test_a_release_says_which_columns_are_texts_and_which_stay(released):
    assert "the texts are in column `body`, according to its name;" in released.err
    assert "published unchanged, with any names in them: `id`, `topic_id`;" in released.err
    rows = released.file.read_text(encoding="utf-8").splitlines()
    assert rows[1].startswith("1,On soup,")
    assert SHORT not in rows[1]


def test_a_level_is_the_same_epsilon_for_tokens_of_short_and_long_texts(released, default_level):
    short = released.epsilons(1)
    assert short == [0.0, pytest.approx(default_level.epsilon, rel=1e-9)]
    assert released.epsilons(2) == short


def test_the_cap_of_a_new_ledger_is_that_of_ten_texts_of_ordinary_length(released, default_level):
    """The longest text of the release does not raise the cap."""
    words = PackagedModel(EN).card.average_words
    cap = f"{TIMES * words * default_level.epsilon:g} epsilon per subject over all releases"
    assert f"{cap}, enough for {TIMES} of a text of" in released.err
    assert f"a text of {words:.0f} words" in released.err


@pytest.mark.parametrize(("most", "cap"), [(math.inf, 8.0), (3.0, 3.0)])
def test_the_lookup_of_a_level_makes_the_budget_of_a_document(most, cap):
    measured = [MeasuredLevel("tem", "S1", "light", 8.0, 0.4, 0.05)]
    protection, spending = spending_at(measured, ("tem", "S1", "light"), most, lambda: 200.0)
    assert protection.content == 0.4
    assert spending.document == DocumentBudget(cap * MOST_TOKENS, cap, ordinary_words=200.0)
    assert spending_at(measured, ("tem", "S1", "strong"), most, lambda: 200.0) is None


def test_a_limit_of_the_operator_and_another_policy_hold(outside):
    using = Model.load(name="en")
    usual = resolve_settings(Request(protection="light"), using)
    limited = resolve_settings(Request(protection="light", max_token_epsilon=3.0), using)
    assert limited.spending == PerToken.of(3.0, using.average_words()) != usual.spending
    assert usual.protection is not None and "measured" in usual.protection.reader


@pytest.mark.parametrize("has_bigrams", [True, False])
def test_a_model_without_figures_is_calibrated(project, tmp_path, monkeypatch, has_bigrams):
    """The calibration is in context if the model has bigram counts; otherwise it is by single words
    at a lower level, with a message.
    """
    monkeypatch.setattr(public_recovery, "WORDS_OF_A_BAND", 300)
    if not has_bigrams:
        monkeypatch.setattr("lexveil.io.artifacts.model.Model.bigram_files", lambda *_: {})
    (tmp_path / "in.jsonl").write_text('{"text": "the door was open"}\n', encoding="utf-8")
    done = privatize_file(
        tmp_path / "in.jsonl",
        tmp_path / "out.jsonl",
        mechanism="tem",
        protection="light",
        seed=1,
        project=project,
    )
    said = done.record.protection
    assert said is not None and said.level == "light"
    assert ("in context" in said.reader, "by single words alone" in said.reader) == (
        has_bigrams,
        not has_bigrams,
    )
    blind = (
        1.5
        * StoredCurve(Model.load(project), "tem", "S1", Policy("keep", "keep", "sample")).blind[
            "content"
        ]
    )
    assert (
        said.content <= max(LEVELS["light"].content * (1 if has_bigrams else BY_WORD), blind) + 1e-9
    )
    assert statement(done.record)[0] == said.sentence
    meaning = StoredCurve(
        Model.load(project), "tem", "S1", Policy("keep", "keep", "sample")
    ).meaning(1.0, 1.0)
    assert meaning.at[0].in_context == has_bigrams
    assert ("by single words alone" in meaning.sentences[0]) != has_bigrams


def test_a_mechanism_that_context_sees_through_is_refused_where_no_epsilon_helps(
    outside,
):
    """The few words that an output of a list can come from are told apart by what stands beside
    them."""
    using = Model.load(name="en")
    with pytest.raises(
        RequestError, match=r"no epsilon of diffractor_geometric S1 is known.*choose mechanism tem"
    ):
        resolve_settings(Request(mechanism="diffractor_geometric", protection="strong"), using)


@pytest.mark.parametrize(
    ("name", "mechanism", "said"),
    [
        ("en+sentiment=1", "diffractor_tem", "works on an order of the words, which no"),
        ("en", "truncated_gumbel", "covers an epsilon of more than 269"),
    ],
)
def test_what_a_mechanism_itself_refuses_is_said_once(name, mechanism, said, outside):
    with pytest.raises(RequestError, match=said) as raised:
        resolve_settings(Request(mechanism=mechanism), Model.load(name=name))
    assert str(raised.value).count("mechanism tem") == 1


def test_what_is_expected_is_by_the_strongest_reader(monkeypatch):
    """By the word alone, an adversary names .07 of the content words after the diffractor here, and
    .198 of public texts in context.

    There are 300 words in each band: the standard error is .02.
    """
    monkeypatch.setattr(public_recovery, "WORDS_OF_A_BAND", 300)
    policy = Policy("keep", "keep", "sample")
    words = PublicWords.of(Model.load(name="en"), "diffractor_geometric", "S1", policy)
    assert recovered(words.expected(0.00457), "content") == pytest.approx(0.23, abs=0.06)


def test_the_figures_that_ship_are_those_that_are_computed(monkeypatch):
    """The figures of the default at its levels ship, so nobody computes them, not even a
    service.
    """
    monkeypatch.setattr(public_recovery, "WORDS_OF_A_BAND", 1_000)  # as outside of tests
    model = replace(Model.load(name="en"), cache_only=True)
    for name in LEVELS:
        settings = resolve_settings(Request(protection=name), model)
        engine = WordEngine(settings, model)
        epsilon = settings.base_epsilon
        assert engine.meaning(epsilon, epsilon) is not None
    curve = engine.recovery_curve()
    number = curve.number(epsilon)
    words = PublicWords.of(
        model, settings.mechanism, settings.strategy, settings.policy, engine.prepared
    )
    computed = words.expected(curve.epsilon(number))
    shipped = curve.point(number)
    for band in ("content", "rare"):
        assert recovered(shipped, band) == pytest.approx(recovered(computed, band), abs=1e-3)
    assert shipped.in_context


@pytest.mark.parametrize(
    ("content", "name", "says"),
    [
        ("id,text,body\n1,a b c d e f,a b c d e f g h\n", "text", ""),
        ("id,body,language\n1,a,a b c d e f\n", "body", "column `body`, according to its name;"),
        ("id,body\n1,a b c d e f g\n", "body", "column `body`, according to its name;"),
    ],
)
def test_the_column_of_texts_is_found(outside, cli, content, name, says):
    (outside / "in.csv").write_text(content, encoding="utf-8")
    err = cli("privatize", "in.csv", "-o", "out.csv", "--seed", "1").err
    assert says in err and ("the texts are in column" in err) == (name != "text")
    log = pq.read_table("out.csv.tokens.parquet")
    assert set(log.column("column").to_pylist()) == {name} if "column" in log.column_names else True


@pytest.mark.parametrize("first", [SHORT, "Cold soup", "refund"])
def test_a_row_in_place_of_a_header_is_taken_for_no_column(outside, cli, first):
    """A row that is taken for a header would be published unchanged."""
    (outside / "in.csv").write_text(f"1,{first}\n2,{SHORT}\n", encoding="utf-8")
    said = cli("privatize", "in.csv", "-o", "out.csv", code=2, told=r"using the model.*\n").err
    assert "its first line looks like a row, not like a header" in said
    assert first not in said and not (outside / "out.csv").exists()
