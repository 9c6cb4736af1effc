"""Libraries that are not installed by default: imported offline, on one thread."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lexveil.errors import RequestError

NEURAL = "neural"  # the extra of pyproject.toml that brings a deep-learning framework

# Read by these libraries when they are imported: no model is looked for elsewhere, and nothing is told to anybody.
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def load(module: str, what: str, extra: str = NEURAL) -> Any:
    """Import ``module``, which ``what`` needs, so that it fetches and tells nothing.

    Raises:
        RequestError: naming the command that installs it, if it is not installed.
    """
    os.environ.update(OFFLINE)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise RequestError(
            f"{what} needs the package of {error.name}, which is not installed; run `uv sync --extra {extra}`, "
            "or choose another in params.yaml: evaluation"
        ) from None


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch on one thread meanwhile: sums that several threads cut up are rounded differently by each number of them.

    Runs of the graph are then as fast as there are workers, and give the same whatever their number.
    """
    torch = importlib.import_module("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
