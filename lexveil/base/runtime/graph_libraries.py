"""Check for the libraries of the optional extra ``graph``. A project needs them; privatizing with a
packaged model does not.
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
    """Return an error that asks the user to install a package of the extra ``graph``; return None
    if the package is not part of the extra.
    """
    if package not in PACKAGES:
        return None
    return RequestError(
        f"this needs {INSTALLED_AS.get(package, package)}, which is not installed; `pip "
        "install 'lexveil[graph]'` installs it and everything else that a project needs"
    )


def require(*packages: str) -> None:
    """Raise an error if one of the given packages of the extra ``graph`` is not installed. Call
    this before anything is changed or started; the packages are not imported.

    Raises:
        RequestError: naming the command that installs a missing package.
    """
    for package in packages:
        if importlib.util.find_spec(package) is None and (error := lacking(package)):
            raise error
