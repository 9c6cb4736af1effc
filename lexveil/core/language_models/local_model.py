"""Loading of neural models from local folders and optional libraries: offline, and on one
thread.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lexveil.base.errors import RequestError

NEURAL = "neural"  # the extra of pyproject.toml that installs a deep-learning framework

# The libraries read these variables on import: they then download no model and send no telemetry.
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def load(module: str, what: str, chosen_by: str = "evaluation") -> Any:
    """Import ``module`` offline: the module downloads nothing and sends no telemetry.

    Args:
        module: name of the module.
        what: the feature that needs the module, for the error message.
        chosen_by: the parameter that chose the back end, for the message.

    Raises:
        RequestError: naming the command that installs the module, if it is not installed.
    """
    os.environ.update(OFFLINE)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise _not_installed(error.name, what, chosen_by) from None


def package_folder(module: str, what: str, chosen_by: str = "evaluation") -> str:
    """Return the folder of an installed package without running the package's code.

    Args:
        module: name of the package.
        what: the feature that needs files of the package, for the error message.
        chosen_by: the parameter that chose the back end, for the message.

    Raises:
        RequestError: naming the command that installs the package, if it is not installed.
    """
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise _not_installed(module, what, chosen_by)
    return spec.submodule_search_locations[0]


def _not_installed(module: str | None, what: str, chosen_by: str) -> RequestError:
    return RequestError(
        f"{what} needs the package that provides {module}, which is not installed; run `uv sync "
        f"--extra {NEURAL}`, or choose another back end in params.yaml: {chosen_by}"
    )


@contextmanager
def one_thread() -> Iterator[None]:
    """Context manager in which PyTorch runs on one thread. Several threads would split sums, so
    that rounding would depend on their number.

    Runs of the experiment pipeline then use one thread per worker, and give the same results for
    any number of workers.
    """
    torch = importlib.import_module("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def load_transformers(what: str, chosen_by: str = "evaluation") -> Any:
    """Import the library transformers without its warnings and progress bars.

    Args:
        what: the feature that needs the library, for the error message.
        chosen_by: the parameter that chose the back end, for the message.

    Raises:
        RequestError: naming the command that installs transformers, if it is not installed.
    """
    transformers = load("transformers", what, chosen_by)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


def read_model(
    kind: str, folder: str, parameter: str, what: str, **settings: Any
) -> tuple[Any, Any]:
    """Load a tokenizer and a model from a local folder, with float32 weights, on the CPU. Nothing
    is downloaded, and no code from the folder is run.

    Weights are read from safetensors only: the older form is a pickle, which can run any code.

    Args:
        kind: the class of transformers that reads the model.
        folder: folder with config.json, model.safetensors and the tokenizer's files.
        parameter: parameter of section ``evaluation`` that named the folder.
        what: the feature that needs the model, for error messages.
        settings: further settings of the model.

    Raises:
        RequestError: if the libraries are not installed, or the folder does not contain such a
            model.
    """
    transformers = load_transformers(what)
    torch = load("torch", what)
    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        # The library would look up a name that is not a folder in the model hub.
        if not os.path.isdir(folder):  # noqa: PTH112
            raise OSError
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **local)
        reader = getattr(transformers, kind)
        model = reader.from_pretrained(
            folder, use_safetensors=True, dtype=torch.float32, **local, **settings
        )
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise RequestError(
            f"{folder} (params.yaml: evaluation.{parameter}): {what} cannot read a model of "
            "this folder "
            f"({type(error).__name__}); it must hold config.json, model.safetensors and "
            "tokenizer.json, as "
            "save_pretrained of transformers writes them"
        ) from None
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        raise RequestError(
            f"{folder} (params.yaml: evaluation.{parameter}): the tokenizer has "
            f"{len(tokenizer):,} tokens, the model "
            f"{model.get_input_embeddings().num_embeddings:,}; they do not belong together"
        )
    return tokenizer, model
