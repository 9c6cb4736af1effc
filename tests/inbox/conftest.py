import pytest
from toy_inbox import Inbox


@pytest.fixture
def inbox(project):
    return Inbox(project)
