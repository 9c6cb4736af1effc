"""Variants of a mechanism in one grid: their names, and what each is built with."""

import pytest

from lexveil import ParameterError
from lexveil.core.mechanisms.variants import base_of, changed_parameters
from lexveil.io.config import parse_params
from tests.config.test_params import changed


def with_mechanisms(*names):
    return parse_params(changed("grid.mechanisms", [*names]), "params.yaml")


@pytest.mark.parametrize(
    "name, base, parameters",
    [
        pytest.param("tem", "tem", {}, id="the mechanism itself"),
        pytest.param("vickrey-t0.25", "vickrey", {"t": 0.25}, id="a number"),
        pytest.param("vickrey-t.5", "vickrey", {"t": 0.5}, id="a number without a zero"),
        pytest.param(
            "diffractor_geometric-listsL1", "diffractor_geometric", {"lists": "L1"}, id="a name"
        ),
        pytest.param(
            "vickrey-t1-exclude_inputtrue", "vickrey", {"t": 1, "exclude_input": True}, id="two"
        ),
        pytest.param("mahalanobis-lambda0.5", "mahalanobis", {"lambda": 0.5}, id="a reserved word"),
    ],
)
def test_a_name_says_the_parameters_that_differ(name, base, parameters):
    section = getattr(with_mechanisms(name).mechanisms.of_variant(name), base)
    assert base_of(name) == base
    dumped = section.model_dump(by_alias=True)
    assert {key: dumped[key] for key in parameters} == parameters


def test_other_parameters_are_those_of_the_mechanism():
    params = parse_params(changed("mechanisms.tem.beta", 0.01), "params.yaml")
    section = params.mechanisms.of_variant("tem-length_penalty0").tem
    assert (section.beta, section.length_penalty) == (0.01, 0)


def test_the_longest_name_of_a_parameter_counts():
    assert changed_parameters("m-kk2", ["k", "kk"]) == {"kk": 2}


@pytest.mark.parametrize(
    "names, message",
    [
        pytest.param(["vickry-t0.25"], r"must be one of .*nearest: vickrey", id="no mechanism"),
        pytest.param(
            ["vickrey-s0.25"],
            r"s0.25 does not begin with a parameter of vickrey; it has t, k",
            id="no parameter",
        ),
        pytest.param(
            ["vickrey-t"], r"t has no value for t; write, for example, t0.5", id="no value"
        ),
        pytest.param(["vickrey-t0.25-t0.5"], r"contains t twice", id="twice"),
        pytest.param(["mahalanobis-lambda1"], r"lambda", id="out of range"),
        pytest.param(["madlib-t1"], r"it has none", id="none to change"),
        pytest.param(
            ["vickrey-t0.5", "vickrey-t.5"],
            r"vickrey-t0.5 and vickrey-t.5, which have the same",
            id="written twice",
        ),
        pytest.param(
            ["vickrey", "vickrey-t0.75"],
            r"vickrey and vickrey-t0.75, which have the same",
            id="the default",
        ),
        pytest.param(["vickrey-t0.5/../x"], r"no value", id="no name of a file"),
    ],
)
def test_a_variant_that_cannot_be_is_refused(names, message):
    with pytest.raises(ParameterError, match=message):
        with_mechanisms(*names)
