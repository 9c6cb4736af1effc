"""Libraries of the extra ``graph``, which projects need. Privatizing with a packaged model does not
need them.
"""

from __future__ import annotations

import importlib.util

from lexveil.base.errors import RequestError

# Import names of the packages of the extra in pyproject.toml, and the install names that differ
# from them.
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
    """Return an error about a package that cannot be imported; None if it does not belong to the
    extra.
    """
    if package not in PACKAGES:
        return None
    return RequestError(
        f"this needs {INSTALLED_AS.get(package, package)}, which is not installed; `pip "
        "install 'lexveil[graph]'` "
        "brings it and all else that a project needs"
    )


def require(*packages: str) -> None:
    """Check that packages of the extra are installed, without importing them, before anything is
    changed or started.

    Raises:
        RequestError: with the command that installs them, if one is missing.
    """
    for package in packages:
        if importlib.util.find_spec(package) is None and (error := lacking(package)):
            raise error
