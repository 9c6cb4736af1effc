"""The libraries of the extra ``graph``: what a project needs and privatizing by a packaged model does not."""

from __future__ import annotations

import importlib.util

from lexveil.errors import RequestError

# The package that each is imported as, and the name that it is installed by: those of the extra in pyproject.toml.
LIBRARIES = {
    "prefect": "prefect",
    "dvc": "dvc",
    "duckdb": "duckdb",
    "gensim": "gensim",
    "pandas": "pandas",
    "pynndescent": "pynndescent",
    "great_expectations": "great-expectations",
    "sklearn": "scikit-learn",
    "threadpoolctl": "threadpoolctl",
    "floret": "floret",
    "jinja2": "jinja2",
    "fsspec": "fsspec",
    "httpx": "httpx",
    "openlineage": "openlineage-python",
    "fastapi": "fastapi",
    "sqlalchemy": "sqlalchemy",
}


def lacking(package: str | None) -> RequestError | None:
    """What to say where ``package`` cannot be imported; None if it is none of the extra."""
    if package not in LIBRARIES:
        return None
    return RequestError(
        f"this needs {LIBRARIES[package]}, which is not installed; `pip install 'lexveil[graph]'` brings it and "
        "all else that a project needs"
    )


def require(*packages: str) -> None:
    """See that packages of the extra are there, without importing them: before anything is changed or started.

    Raises:
        RequestError: naming the command that installs them, if one is not.
    """
    for package in packages:
        if importlib.util.find_spec(package) is None and (error := lacking(package)):
            raise error
