"""Products on a device: PyTorch's own processor device stands for one."""

import subprocess
import sys

import numpy as np
import pytest

from lexveil.embeddings import device_screen, exact_search
from lexveil.embeddings.device_screen import DeviceScreen
from lexveil.embeddings.exact_search import ExactSearch
from tests.embeddings.test_screen import VECTORS, check_any_length, queries_of
from tests.embeddings.test_search import far_queries, near_ties, scan_k, wide_words


@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(device_screen, "graphics_device", lambda: "cpu")
    monkeypatch.setattr(exact_search, "DEVICE_WORK", 1)
    monkeypatch.setattr(exact_search, "worth_kernels", lambda _: True)


@pytest.mark.parametrize("k", [1, 8])
@pytest.mark.parametrize("name", VECTORS)
def test_answers_are_those_of_this_processor(on_device: None, name: str, k: int) -> None:
    vectors = np.ascontiguousarray(VECTORS[name]())
    queries, search = queries_of(vectors), ExactSearch(vectors)
    ids, distances = search.nearest_k(queries, k)
    assert search._on_device is not None
    few, squares = search._few(queries, min(k, len(vectors)))
    np.testing.assert_array_equal(ids, few)
    np.testing.assert_array_equal(distances, np.sqrt(squares))


def test_queries_of_any_length(on_device: None) -> None:
    check_any_length(wide_words(133))


def test_it_computes_in_full_single_precision(on_device: None) -> None:
    """Whatever the process chose for its networks, and leaves that choice as it was."""
    import torch

    vectors = near_ties(3)
    queries = far_queries(vectors, 40, 1.0)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        assert (ExactSearch(vectors).nearest(queries) == scan_k(vectors, queries, 1)[0][:, 0]).all()
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_batches_are_what_memory_holds(on_device: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Smaller ones where it runs out, and none where even those do not fit."""
    import torch

    vectors = wide_words(133)
    queries = far_queries(vectors, 300, 5.0)
    made = DeviceScreen(vectors, ExactSearch(vectors).half_norms, "cpu")
    assert made.batch() > 1000
    monkeypatch.setattr(DeviceScreen, "batch", lambda self: 256)
    near, sizes = DeviceScreen._near, []

    def full(self: DeviceScreen, queries: np.ndarray, k: int, slack: np.ndarray) -> object:
        sizes.append(len(queries))
        if len(queries) > most:
            raise torch.OutOfMemoryError
        return near(self, queries, k, slack)

    monkeypatch.setattr(DeviceScreen, "_near", full)
    slack = ExactSearch(vectors)._slack(queries)
    for most, wanted in ((100, [256, 128, 64, 64, 64, 64, 44]), (10, [256, 128, 64])):
        sizes.clear()
        answered = made.nearest_k(queries, 1, slack)[2]
        assert sizes == wanted
        assert answered.all() == (most == 100)
    search = ExactSearch(vectors)
    assert (search.nearest(queries) == scan_k(vectors, queries, 1)[0][:, 0]).all()


def test_a_device_that_takes_no_words_is_left_alone(on_device: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def full(self: DeviceScreen, *_: object) -> None:
        raise torch.OutOfMemoryError("full")

    monkeypatch.setattr(DeviceScreen, "__init__", full)
    vectors = wide_words(133)
    search, queries = ExactSearch(vectors), far_queries(vectors, 5, 5.0)
    assert (search.nearest(queries) == scan_k(vectors, queries, 1)[0][:, 0]).all()
    assert search._on_device is None


def test_without_pytorch_there_is_no_device() -> None:
    code = """if 1:
        import sys; sys.modules["torch"] = None
        from lexveil.embeddings.device_screen import graphics_device
        print(graphics_device())
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"
