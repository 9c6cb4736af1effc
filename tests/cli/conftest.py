"""The command line is tried on the scratch project of the flows."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "flows"))

from tests.flows.conftest import project, template  # noqa: F401
