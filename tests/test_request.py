"""The one request: each face has its options, and calls them in its own way in messages."""

import dataclasses
import inspect
import re

import numpy as np
import pytest

import lexveil
from lexveil.faces.cli.options import NAMES, Fixed, Looking, Rewriting, option_name
from lexveil.faces.service.bodies import LEFT_OUT, SettingsBody
from lexveil.io.request import FileRequest, Request

TEXTS = ["The bank of the river was quiet."]
HOW = {"mechanism": "madlib", "strategy": "S1", "epsilon": 2.0}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            {"document_budget": 9.0},
            r"^give one of protection \(a level\), epsilon \(base .*, document_budget .* and ",
        ),
        ({"mechanism": "laplace"}, "^mechanism is 'laplace'; it must be one of none, "),
        ({"mechanism": None}, "^mechanism is None; it must be one of none, [a-z_, ]+$"),
        ({"max_token_epsilon": "none"}, r"^max_token_epsilon none: .*, or add mode experiment$"),
        (
            {"types": {"PERSON": "drop"}},
            "^types has no effect without a detector; add detector, protect or spans$",
        ),
        (
            {"types": {"PERSON": "melt"}, "spans": [[]]},
            "^types.PERSON is 'melt'; it must be one of perturb",
        ),
        ({"protect": "absent.txt"}, "^protect"),
        ({"text_column": "x"}, "^unknown option text_column; did you mean column"),
        ({"level": "balanced"}, r"^unknown option level; did you mean protection\?$"),
        (
            {"project": "nowhere"},
            "the file does not exist; project must name the folder of a project$",
        ),
        (
            {"model": "own"},
            r"^model own is the model that a project's run made, .* make one by `lexveil init DIR`",
        ),
    ],
)
def test_privatize_names_arguments(outside, wrong, says):
    with pytest.raises(lexveil.RequestError, match=says) as caught:
        lexveil.privatize(TEXTS, **{**HOW, **wrong})
    assert "--" not in re.sub("`[^`]*`", "", str(caught.value))


def test_files_and_audits_name_arguments_too(outside):
    with pytest.raises(lexveil.RequestError, match=r"^samples is 10; it must be at least 200"):
        lexveil.audit("madlib", 2.0, samples=10)
    (outside / "in.jsonl").write_text('{"label": "quiet"}\n', encoding="utf-8")
    with pytest.raises(
        lexveil.RequestError, match=r"no column `text` among its 1: `label`.*with text_column"
    ):
        lexveil.inspect(outside / "in.jsonl", **HOW)
    with pytest.raises(lexveil.RequestError, match="choose one with spans_column"):
        lexveil.inspect(outside / "in.jsonl", text_column="label", spans_column="found", **HOW)


def fields(dataclass):
    return {field.name for field in dataclasses.fields(dataclass)}


def parameters(function):
    return set(inspect.signature(function).parameters)


OPTIONS = set(Request.model_fields)
FILE_OPTIONS = set(FileRequest.model_fields)
OF_PYTHON = OPTIONS - {"spans_column"}


def test_the_command_line_has_the_options_of_the_request():
    assert fields(Rewriting) == FILE_OPTIONS
    assert fields(Looking) < FILE_OPTIONS
    assert fields(Fixed) < OPTIONS
    assert {name: option_name(name) for name in NAMES} == {
        name: f"--{other}" for name, other in NAMES.items()
    }


def test_the_service_has_the_options_of_the_request_but_those_that_it_leaves_out():
    assert set(SettingsBody.model_fields) == OPTIONS - LEFT_OUT


def test_python_has_the_options_of_the_request_and_explains_them():
    assert parameters(lexveil.privatize) >= OF_PYTHON
    assert parameters(lexveil.inspect) >= FILE_OPTIONS
    explained = re.findall(r"(\w+): ", str(lexveil.privatize.__doc__))
    assert set(explained) >= OF_PYTHON


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"epsilon": 0}, r"epsilon is 0; it must lie between 1e-09 and 1e\+09"),
        ({"epsilon": "5"}, "epsilon is '5'; it must be a number"),
        ({"epsilon": float("nan")}, "epsilon is nan; it must lie between"),
        ({"seed": 1.5}, "seed is 1.5; it must be a whole number"),
        ({"seed": 2**63}, "seed is 9223372036854775808; it must lie between 0 and"),
        ({"mechanism": "none"}, "set both to 'none'"),
        ({"mechanism": "none", "strategy": "none"}, "mechanism 'none' spends no epsilon"),
        ({"average_words": "some"}, "average_words is 'some'; it must be a number, or be data"),
        ({"average_words": "data"}, "average_words data: the average of the texts"),
        ({"seed": 1, "mode": "release"}, "a seed makes an experiment"),
        ({"keep_layout": 1}, "keep_layout is 1; it must be true or false"),
        ({"text_column": "a", "spans_column": "a"}, "spans_column is also a text column"),
        ({"epsilom": 1.0}, "unknown key epsilom; did you mean epsilon?"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(wrong, says):
    with pytest.raises(lexveil.RequestError, match=says):
        FileRequest.of(HOW | wrong)


def test_numbers_are_taken_as_libraries_have_them_and_as_they_are_written():
    of_numpy = Request.of(HOW | {"epsilon": np.float32(2), "seed": np.int64(7)})
    assert (of_numpy.epsilon, of_numpy.seed, of_numpy.is_release) == (2.0, 7, False)
    written = Request.of(
        {"mechanism": "tem", "strategy": "S1", "epsilon": "2", "seed": "7"}, written=True
    )
    assert (written.epsilon, written.seed) == (2.0, 7)
