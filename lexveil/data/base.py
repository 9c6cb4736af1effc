"""The base of a project's training, as a command sets it: one line of params.yaml; all others stay as they are."""

from __future__ import annotations

import re
from pathlib import Path

from lexveil import paths
from lexveil.artifacts.base_model import find_base
from lexveil.artifacts.external_embeddings import DIGITS
from lexveil.artifacts.model_store import find
from lexveil.config import load_params
from lexveil.errors import RequestError
from lexveil.runtime.tables import atomic_file

_LINE = re.compile(r"(?m)^(embeddings:[^\n]*\n(?:(?:[ \t#][^\n]*)?\n)*?  base:[ \t]*)([^\s#]+)")


def named(model: str) -> str:
    """How params.yaml names a model: one that ships by its name, one of the user's with its hash.

    Raises:
        RequestError: if there is no such model.
    """
    found = find(model)
    return model if found.folder.parent == paths.MODELS else f"{model}@{found.hash[:DIGITS]}"


def set_base(root: Path, base: str) -> bool:
    """Write ``base`` into params.yaml; False if it stands there already.

    Raises:
        RequestError: if the line is not where the template has it, or the model does not go with other parameters.
    """
    file = root / paths.PARAMS
    settings = load_params(file).embeddings
    find_base(settings.model_copy(update={"base": base}))
    if settings.base == base:
        return False
    text = file.read_text(encoding="utf-8")
    changed = _LINE.sub(lambda match: match[1] + base, text, count=1)
    with atomic_file(file) as partial:
        partial.write_text(changed, encoding="utf-8", newline="\n")
        if load_params(partial).embeddings.base != base:
            raise RequestError(f"{file}: there is no line `base:` in section embeddings; write `base: {base}` there")
    return True
