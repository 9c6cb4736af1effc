"""The libraries of the extra ``graph``: what a project needs and privatizing by a packaged model
does not.
"""

from __future__ import annotations

import importlib.util

from lexveil.errors import RequestError

# The packages of the extra in pyproject.toml by which they are imported, and those that are
# installed by another name.
PACKAGES = frozenset(
    "prefect dvc duckdb gensim pandas pynndescent great_expectations sklearn threadpoolctl floret "
    "fsspec httpx openlineage fastapi sqlalchemy".split()
)
INSTALLED_AS = {
    "great_expectations": "great-expectations",
    "sklearn": "scikit-learn",
    "openlineage": "openlineage-python",
}


def lacking(package: str | None) -> RequestError | None:
    """What to say where ``package`` cannot be imported; None if it is none of the extra."""
    if package not in PACKAGES:
        return None
    return RequestError(
        f"this needs {INSTALLED_AS.get(package, package)}, which is not installed; `pip "
        "install 'lexveil[graph]'` "
        "brings it and all else that a project needs"
    )


def require(*packages: str) -> None:
    """See that packages of the extra are there, without importing them: before anything is changed
    or started.

    Raises:
        RequestError: naming the command that installs them, if one is not.
    """
    for package in packages:
        if importlib.util.find_spec(package) is None and (error := lacking(package)):
            raise error
