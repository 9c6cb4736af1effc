"""The place of a rewriting: a project, or outside of projects the user's data folder with the
default parameters.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from lexveil import paths
from lexveil.config import Params, load_params, parse_params
from lexveil.errors import option
from lexveil.runtime.project import root_around

NO_PROJECT = (
    f"{paths.PARAMS} is ignored: this folder is no project, since it has neither dvc.yaml nor "
    "artifacts/; "
    "`lexveil init DIR` makes one"
)
SEED = 20261  # of experiments outside a project, as in the params.yaml that ships
# Of a user rather than of a project: short names in a folder of their own, and nothing that is to
# be committed.
LEDGER, ANCHOR, WORK, AUDITS, RECOVERY = (
    "ledger",
    "ledger-anchor.json",
    "work",
    Path("audits"),
    Path("recovery"),
)


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with its parameters, ledger, temporary files and audits.

    Attributes:
        folder: of the project, ``Path()`` if it is the current one; or the user's data folder.
        params: the project's params.yaml; else the defaults.
        is_project: whether it is a project's.
    """

    folder: Path
    params: Params
    is_project: bool

    @classmethod
    def find(cls, project: Path | str | None = None) -> Self:
        """The place of a project's folder; by default of the project around the current folder,
        else of the user.

        Raises:
            ParameterError: if the project has no params.yaml, or it is not valid.
        """
        advice = [] if project is None else [f"{option('project')} must be the folder of a project"]
        if project is None:
            here = Path.cwd()
            # Artifacts that were copied without their graph are a project's too.
            is_copy = (here / paths.PARAMS).is_file() and (here / paths.ARTIFACTS).is_dir()
            root = here if is_copy else root_around(here)
            if root is None:
                if (here / paths.PARAMS).is_file():
                    print(NO_PROJECT, file=sys.stderr)
                return cls.of_user()
            project = Path() if root == here else root
        folder = Path(project)
        return cls(folder, load_params(folder / paths.PARAMS, *advice), True)

    @classmethod
    def of_user(cls) -> Self:
        """The place outside all projects."""
        params = parse_params({"seed": SEED})
        ledger = params.ledger.model_copy(update={"folder": LEDGER, "anchor": ANCHOR})
        machine = params.machine.model_copy(update={"temp_directory": WORK})
        return cls(
            paths.user_data(),
            params.model_copy(update={"ledger": ledger, "machine": machine}),
            False,
        )

    def path(self, relative: Path | str) -> Path:
        """A path of the place, as the parameters and ``lexveil.paths`` give it."""
        return self.folder / relative

    @property
    def audits(self) -> Path:
        """The folder with the results of audits that records may rely on."""
        return self.path(paths.AUDITS if self.is_project else AUDITS)

    @property
    def recovery(self) -> Path:
        """The folder with what readers are expected to get back, as far as it was computed here."""
        return self.path(paths.RECOVERY if self.is_project else RECOVERY)
