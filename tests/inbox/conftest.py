from pathlib import Path

import pytest
from toy_inbox import Inbox


@pytest.fixture
def inbox(project: Path) -> Inbox:
    return Inbox(project)
