"""The loss that is reported is the one that is trained: against a plain loop."""

import numpy as np
import pytest

from lexveil.embeddings.training import Probe, Word2VecSettings, draw_probe

pytestmark = pytest.mark.slow


def settings(window: int, negative: int) -> Word2VecSettings:
    return Word2VecSettings(
        dimensions=4, window=window, min_count=1, epochs=1, negative=negative, skip_gram=True, workers=1, seed=2
    )


@pytest.mark.parametrize("skip_gram", [True, False])
def test_loss_by_hand(skip_gram: bool) -> None:
    rng = np.random.default_rng(1)
    vectors, outputs = rng.normal(size=(2, 9, 4)).astype(np.float32)
    n = 2500  # more than are measured at a time
    inputs = rng.integers(0, 9, size=(n, 1 if skip_gram else 6))
    if not skip_gram:
        inputs[rng.random(inputs.shape) < 0.4] = -1
        inputs[:, 0] = 3
    probe = Probe(inputs, rng.integers(0, 9, size=n), rng.integers(0, 9, size=(n, 3)))
    expected = 0.0
    for around, target, noise in zip(inputs, probe.targets, probe.noise, strict=True):
        h = np.mean([vectors[i] for i in around if i >= 0], axis=0)
        scores = [-h @ outputs[target], *(h @ outputs[word] for word in noise if word != target)]
        expected += np.log1p(np.exp(scores)).sum()
    assert probe.loss(vectors, outputs) == pytest.approx(expected / n, rel=1e-6)
    assert Probe(inputs[:0], probe.targets[:0], probe.noise[:0]).loss(vectors, outputs) is None


def test_examples_are_drawn_as_gensim_draws_them() -> None:
    """Windows of uniform width, words thinned out, noise by count to the power 3/4."""
    counts = np.array([4000, 256, 81, 16])
    sentences = [["a", "?", "b", "c", "d"]] * 6000
    row_of = {"a": 0, "b": 1, "c": 2, "d": 3}
    probe = draw_probe(sentences, row_of, counts, np.array([0.5, 1, 1, 1]), settings(2, 3), 20_000)
    pairs = np.zeros((4, 4))
    np.add.at(pairs, (probe.targets, probe.inputs[:, 0]), 1)
    pairs /= pairs[1, 2]  # b and c are always neighbours
    # a is there in half of the sentences; d is two away from b, which a window of width 1 does not see.
    assert pairs[0, 1] == pytest.approx(0.5, abs=0.05)
    assert pairs[1, 3] == pytest.approx(0.5, abs=0.05)
    assert pairs[0, 3] == 0 and np.trace(pairs) == 0
    assert len(probe.targets) == 20_000
    weight = counts**0.75 / (counts**0.75).sum()
    assert np.allclose(np.bincount(probe.noise.ravel(), minlength=4) / probe.noise.size, weight, atol=0.01)
