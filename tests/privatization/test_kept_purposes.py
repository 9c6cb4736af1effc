"""Texts are rewritten in a metric that keeps a purpose: what comes out, what is said of it, and
what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

import lexveil
from lexveil import Model, RequestError
from lexveil.auditing.audit import audit, read_space
from lexveil.auditing.request import AuditRequest
from lexveil.base import paths
from lexveil.base.runtime.hashes import sha256
from lexveil.core.accounting.budgets import Policy
from lexveil.core.embeddings.purposes import with_axes
from lexveil.core.mechanisms.noise.streams import stream
from lexveil.io.artifacts.user_lists import find_purpose, write_purpose

HOW = {
    "mechanism": "tem",
    "strategy": "S1",
    "epsilon": 6.0,
    "max_token_epsilon": 6.0,
}


@pytest.fixture
def scale(outside):
    """A public scale over words of the toy model, a third of them on either side."""
    tokens = [token for token in Model.load(name="toy").embedding("S1").tokens if token.isalpha()]
    sides = {token: (1.0, -1.0, 0.0)[number % 3] for number, token in enumerate(tokens)}
    write_purpose(
        {token: side for token, side in sides.items() if side},
        "a toy",
        is_public=True,
        file=outside / "toy.tsv",
    )
    return outside / "toy.tsv"


def test_words_of_a_side_come_out_as_words_of_that_side(scale):
    """More of them than without the axis, at the same epsilon; how many is said, and holds of other
    draws."""
    using = Model.load(name="toy+toy.tsv=3")
    plain = Model.load(name="toy")
    purpose = using.purposes[0]
    policy = Policy("perturb", "keep", "sample")
    scores = purpose.of(using.embedding("S1").tokens)
    kept = []
    for model in (plain, using):
        made = model.mechanism("tem", "S1", policy)
        of_words = scores[made.vocabulary.rows]
        words = np.repeat(np.flatnonzero(of_words), 4)
        budgets = np.full(len(words), 6.0)
        drawn = made.mechanism.replace(
            words, budgets, made.mechanism.noise(budgets, stream(1, "test"))
        )
        kept.append(float((of_words[drawn] == of_words[words]).mean()))
    assert kept[1] > kept[0] + 0.1


def test_the_record_names_the_purpose_and_says_what_is_less_hidden(scale):
    done = lexveil.privatize(["It was a good day for a fire."], **HOW, model="toy+toy.tsv=2")
    record = done.record.to_dict()
    assert record["model"]["name"] == "toy+toy=2"
    assert record["model"]["sha256"] != Model.load(name="toy").reference("S1").sha256
    assert record["made_with"]["purposes/toy=2"] == find_purpose("toy.tsv").sha256
    (at,) = record["meaning"]["at"]
    told = at["purposes"]["toy=2"]
    assert (
        0 < told["share_of_words"] <= 1
        and 0.5 < told["auc"] <= 1
        and 0 <= told["recovered"] <= told["side"] <= 1
    )
    assert [
        line
        for line in record["meaning"]["sentences"]
        if line.startswith("Less hidden, by the purpose toy=2: of")
    ]
    without = lexveil.privatize(
        ["It was a good day for a fire."], **HOW, model="toy"
    ).record.to_dict()
    assert "purposes" not in without["meaning"]["at"][0]


@pytest.mark.parametrize("strategy", ["S1", "S3"])
def test_an_audit_reads_the_axes_by_itself(scale, strategy):
    using = Model.load(name="toy+toy.tsv=2")
    made = using.mechanism("tem", strategy, Policy("perturb", "keep", "sample"))
    space = read_space(using, made, AuditRequest(mechanism="tem", epsilon=1.0, strategy=strategy))
    np.testing.assert_allclose(space.vectors, made.vocabulary.vectors, atol=1e-6)


def test_a_longer_axis_than_is_said_is_a_violation(scale, monkeypatch):
    """The audit works the axes out anew, so a mechanism of another metric than the stated one is
    caught."""
    longer = lambda space, purposes: with_axes(  # noqa: E731
        space, [replace(one, weight=10 * one.weight) for one in purposes]
    )
    monkeypatch.setattr("lexveil.io.artifacts.model.with_axes", longer)
    monkeypatch.setattr("lexveil.auditing.audit.SHAPES", ())  # it shows in the words of the model
    monkeypatch.setattr("lexveil.auditing.audit.audit_releases", lambda *_: [])
    request = AuditRequest(
        mechanism="tem", epsilon=3.0, strategy="S1", words=12, samples=200, mode="experiment"
    )
    assert audit(request, model="toy+toy.tsv=1").violation


def test_a_scale_that_is_not_said_to_be_public_is_for_experiments(scale):
    scale.write_text(scale.read_text("utf-8").replace("# public\n", ""), encoding="utf-8")
    with pytest.raises(
        RequestError, match="nothing is released: the scale of purpose toy is not declared public"
    ):
        lexveil.privatize(["A good day."], **HOW, model="toy+toy.tsv")
    lexveil.privatize(["A good day."], **HOW, model="toy+toy.tsv", mode="experiment", seed=1)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("toy+other", "there is no purpose other; choose from sentiment"),
        ("toy+toy.tsv=0", "the weight is 0, but it must be a number from 0.01 to 10"),
        ("toy+toy.tsv=nan", "the weight is nan"),
        ("toy+toy.tsv+toy.tsv=2", "a purpose is repeated"),
        ("toy+absent.tsv", "the file absent.tsv does not exist"),
        ("toy+To Y.tsv", "the name of the file is the name of the purpose"),
    ],
)
@pytest.mark.usefixtures("scale")
def test_names_that_are_refused(model, said):
    with pytest.raises(RequestError, match=said):
        lexveil.privatize(["A good day."], **HOW, model=model)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (b"good\t1\nbad\n", "line 2: the line must be a word, a tab and a score"),
        (b"good\tnan\n", "line 1: the line must be"),
        (b"good\t1.5\n", "line 1: the line must be"),
        (b"good\t1\nGood\t0.5\n", "line 2: the word is a duplicate"),
        (b"# nothing\n", "every word has the score 0"),
        (b"xqzzy\t1\n", "all words of the model have the same score"),
        (b"\xff\xfe", "is not a text file in UTF-8"),
    ],
)
def test_files_that_are_refused(outside, lines, said):
    (outside / "s.tsv").write_bytes(lines)
    with pytest.raises(RequestError, match=said):
        Model.load(name="toy+s.tsv")


@pytest.mark.usefixtures("scale")
def test_a_mechanism_on_lists_is_refused():
    with pytest.raises(
        RequestError, match="works on an order of the words, which no purpose changes"
    ):
        lexveil.privatize(
            ["A good day."],
            mechanism="diffractor_geometric",
            strategy="S1",
            epsilon=1.0,
            model="toy+toy.tsv",
        )


def made_with(strategies, made, named):
    """Make a project whose embedding says with which purposes it was made, and whose params.yaml
    names purposes.
    """
    meta = paths.embedding(strategies) / "meta.json"
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {"purposes": made}))
    params = yaml.safe_load(Path("params.yaml").read_text("utf-8"))
    params["embeddings"]["purposes"] = named
    Path("params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")


def write_scale(name, *, public, score=1.0):
    """A scale in the current folder; how params.yaml names it, and its hash."""
    file = Path(f"{name}.tsv")
    write_purpose({"fire": score, "water": -1.0}, "a toy", public, file)
    digest = sha256(file)
    return f"{file}@{digest[:12]}", digest


@pytest.mark.parametrize("segmentation", ["word", "gst"])
@pytest.mark.parametrize(
    ("made", "named", "said"),
    [
        ({"secret=1": "own"}, {}, "have secret=1, but .* names no purpose"),
        ({"secret=1": "own"}, {"secret": 0.5}, "have secret=1, but .* names secret=0.5"),
        ({"secret=1": "own"}, {"secret": 1.0000000001}, "names secret=1.0000000001"),
        ({"secret=1": "0" * 64}, {"secret": 1.0}, "have another content of the scale secret=1"),
        ({}, {"secret": 1.0}, "have no purpose, but .* names secret=1"),
        ({"secret=1": "own"}, {"open": 1.0}, "have secret=1, but .* names open=1"),
        ({"secret=1": "own", "open=1": "open"}, {"open": 1.0}, "have open=1, secret=1, but"),
        ({"secret=1": "own"}, {"secret": 1.0}, "the scale of purpose secret is not declared"),
    ],
)
def test_a_private_purpose_stays_private_whatever_params_say_afterwards(
    project,
    segmentation,
    made,
    named,
    said,
):
    """The purposes with which the vectors were made decide; nothing is released, and nothing is
    charged.
    """
    secret = write_scale("secret", public=False)
    open_ = write_scale("open", public=True)
    hashes = {"own": secret[1], "open": open_[1]}
    files = {"secret": secret[0], "open": open_[0]}
    made_with(
        segmentation,
        {name: hashes.get(digest, digest) for name, digest in made.items()},
        {files[name]: weight for name, weight in named.items()},
    )
    strategy = "S1" if segmentation == "word" else "S3"
    how = HOW | {"strategy": strategy}
    with pytest.raises(RequestError, match=said):
        lexveil.privatize(["The fire."], **how, project=project, model="own")
    assert not (project / "artifacts" / "ledger").exists()


def test_a_public_purpose_that_the_vectors_were_made_with_is_released(project):
    named, digest = write_scale("open", public=True)
    made_with("word", {"open=0.3333333333333333": digest}, {named: 1 / 3})
    assert [str(one) for one in Model.load(Path(), "own").kept_purposes("S1")] == [
        "open=0.3333333333333333"
    ]
    done = lexveil.privatize(["The fire."], **HOW, project=project, model="own")
    assert done.record.release is not None


def test_two_weights_never_share_a_name_or_a_hash(scale):
    weights = ["1", "1.0000000001", "0.1", "0.1000000000000001", "0.3333333", "0.33333333", "10"]
    models = [Model.load(name=f"toy+toy.tsv={weight}") for weight in weights]
    assert [model.name for model in models] == [f"toy+toy={weight}" for weight in weights]
    assert len({model.sha256 for model in models}) == len(weights)
    assert str(find_purpose("toy.tsv=1.0")) == str(find_purpose("toy.tsv")) == "toy=1"


@pytest.mark.parametrize(
    "weight", ["1e-300", "0.0099", "0", "-1", "nan", "inf", "10.0001", "1e300", "x", "1e-2000"]
)
def test_weights_that_are_refused(scale, weight):
    with pytest.raises(RequestError, match=r"the weight is .*, but it must be .* from 0\.01 to 10"):
        find_purpose(f"toy.tsv={weight}")


def test_a_purpose_is_named_in_python_and_the_wait_for_it_is_explained(scale, capsys):
    """Python names a purpose as ``--purpose`` does; once a figure is kept nobody waits for it."""
    texts = ["It was a good day for a fire."]
    named = lexveil.privatize(texts, **HOW, seed=1, model="toy", purpose="toy.tsv=1.7")
    said = capsys.readouterr().err
    assert "computing the expected recovery with the model toy+toy=1.7 by tem S1" in said
    assert "only the first call" in said and said.count("the result is cached") == 1
    joined = lexveil.privatize(texts, **HOW, seed=1, model="toy+toy.tsv=1.7")
    assert "computing" not in capsys.readouterr().err
    assert named.values == joined.values and named.record.model == joined.record.model
    several = lexveil.privatize(texts, **HOW, seed=1, model="toy", purpose=["toy.tsv=1.7"])
    assert several.values == named.values
    with pytest.raises(RequestError, match="there is no purpose nothing"):
        lexveil.privatize(texts, **HOW, model="toy", purpose="nothing")
