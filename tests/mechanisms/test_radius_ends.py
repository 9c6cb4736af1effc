"""The ends of MADLIB's radius, as docs/proofs/madlib.md states them: NumPy's own sampler at its
extreme inputs."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from randomgen import UserBitGenerator
from scipy.special import gammainc, gammaincc
from scipy.stats import norm

PAGE = (Path(__file__).parents[2] / "docs/proofs/madlib.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.e-]+) \| ([\d.e-]+) \|$", re.MULTILINE)
# of NumPy's ziggurat
TAIL = 3.6541528853610087963519472518
INVERSE = 0.27366123732975827203338247596
MOST = 2**53 - 1


def generator(words):
    """A generator whose 64-bit words are those given."""
    left = list(words)
    return np.random.Generator(UserBitGenerator(lambda _: left.pop(0), 64))


def tail(k):
    """Return the distance of a normal number beyond the ziggurat's last layer, from a uniform
    number k / 2^53.
    """
    return -INVERSE * math.log1p(-k * 2.0**-53)


def farthest():
    """The largest k that the tail's second uniform number can accept."""
    low = 0
    high = MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high)
            if tail(middle) ** 2 < -2 * math.log1p(-MOST * 2.0**-53)
            else (low, middle)
        )
    return low


def words(k, positive):
    """Return random words that lead the ziggurat to its tail with k there: first its layer beyond
    the edge, then two uniforms.
    """
    magnitude = 2**52 - 1 if not positive else (2**52 - 1) ^ (1 << 8)
    return [magnitude << 9, k << 11, MOST << 11]


def test_the_farthest_normal_number():
    k = farthest()
    most = TAIL + tail(k)
    assert f"{most:.14f}" in PAGE
    for positive in (True, False):
        assert generator(words(k, positive)).standard_normal() == (most if positive else -most)
    # One step farther is refused, so the generator goes on to the next words.
    beyond = generator([*words(k + 1, positive=True), 0, 1 << 11])
    assert abs(beyond.standard_normal()) < TAIL + 1
    assert f"{2 * norm.sf(most):.1e}" in PAGE and f"{300 * 2 * norm.sf(most):.1e}" in PAGE


@pytest.mark.parametrize("row", ROW.findall(PAGE), ids=lambda row: row[0])
def test_the_ends_of_the_radius(row):
    p, smallest, largest, below, above = (float(value) for value in row)
    accepted = [0]  # ln 0 is below everything
    ends = [
        generator([*words(farthest(), positive), *accepted]).gamma(p, 1.0)
        for positive in (False, True)
    ]
    assert ends == pytest.approx([smallest, largest], rel=1e-4)
    assert below + above + 4096 * 2 * norm.sf(TAIL + tail(farthest())) < 1e-30  # as records say
    assert (below, above) == pytest.approx((gammainc(p, ends[0]), gammaincc(p, ends[1])), rel=0.02)


def test_the_dimensions_in_use_and_where_steps_of_the_uniform_numbers_show():
    assert [int(row[0]) for row in ROW.findall(PAGE)] == [50, 100, 200, 300]
    beyond = 9.9 - TAIL
    assert 2.0**-53 * (math.exp(beyond**2 / 2) + math.exp(TAIL * beyond)) < 1e-6
    assert f"{2 * norm.sf(9.9):.1e}" in PAGE
