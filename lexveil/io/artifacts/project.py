"""Folder that a rewriting works in: the folder of a project, or outside of projects the user's data
folder with default parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from lexveil.base import paths
from lexveil.base.errors import option
from lexveil.base.logs import logger
from lexveil.base.runtime.project import root_around
from lexveil.io.config import Configuration, Params, load_configuration, load_params, parse_params

LOG = logger(__name__)

NO_PROJECT = (
    "%s is ignored, because this folder is no project: it has neither dvc.yaml nor "
    "artifacts/; `lexveil init DIR` makes a project"
)
DEFAULT_SEED = 20261  # seed of experiments outside of projects, as in the packaged params.yaml
# Paths in the user's data folder. The names are short because the folder has no other content, and
# nothing in it is committed.
LEDGER = "ledger"
ANCHOR = "ledger-anchor.json"
WORK = "work"
AUDITS = Path("audits")
RECOVERY = Path("recovery")


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with parameters, settings, ledger, temporary files and audits.

    Attributes:
        folder: the project's folder, ``Path()`` if it is the current folder; outside of projects,
            the user's data folder.
        params: parameters of the experiment, from the project's params.yaml; outside of projects,
            the defaults.
        configuration: settings, from the project's lexveil.toml; outside of projects, the defaults.
        is_project: whether the folder belongs to a project, not to the user.
    """

    folder: Path
    params: Params
    configuration: Configuration
    is_project: bool

    @classmethod
    def find(cls, project: Path | str | None = None) -> Self:
        """Return the project in a folder. By default, return the project around the current folder,
        or the user's data folder if there is no such project.

        Raises:
            ParameterError: if the project has no params.yaml, or if params.yaml or lexveil.toml is
                not valid.
        """
        advice = (
            [] if project is None else [f"{option('project')} must name the folder of a project"]
        )
        if project is None:
            here = Path.cwd()
            # A folder with copied artifacts but without their graph is a project too.
            is_copy = (here / paths.PARAMS).is_file() and (here / paths.ARTIFACTS).is_dir()
            root = here if is_copy else root_around(here)
            if root is None:
                for name in (paths.PARAMS, paths.CONFIGURATION):
                    if (here / name).is_file():
                        LOG.warning(NO_PROJECT, name)
                return cls.of_user()
            project = Path() if root == here else root
        folder = Path(project)
        params = load_params(folder / paths.PARAMS, *advice)
        configuration = load_configuration(folder / paths.CONFIGURATION)
        configuration.require_segmentation(params)
        return cls(folder, params, configuration, is_project=True)

    @classmethod
    def of_user(cls) -> Self:
        """Return the user's data folder, which takes the place of a project outside of projects."""
        configuration = Configuration().changed(
            ledger={"folder": LEDGER, "anchor": ANCHOR}, machine={"temp_directory": WORK}
        )
        return cls(
            paths.user_data(), parse_params({"seed": DEFAULT_SEED}), configuration, is_project=False
        )

    def path(self, relative: Path | str) -> Path:
        """Return a path inside the folder.

        Args:
            relative: a relative path of the settings or of ``lexveil.base.paths``.
        """
        return self.folder / relative

    @property
    def audits(self) -> Path:
        """Folder with the results of audits, which privacy records may cite."""
        return self.path(paths.AUDITS if self.is_project else AUDITS)

    @property
    def recovery(self) -> Path:
        """Folder with cached computations of the expected recovery by adversaries."""
        return self.path(paths.RECOVERY if self.is_project else RECOVERY)
