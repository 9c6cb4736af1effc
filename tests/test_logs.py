"""Messages of the library: by ``logging``, and without those of a thread that asked for quiet."""

import logging
from concurrent.futures import ThreadPoolExecutor

from lexveil.base.logs import logger, messages_on_stderr, messages_to, quiet

LOG = logger("lexveil.made_for_this_test")


def test_a_message_is_a_record_of_the_library(caplog):
    LOG.warning("a caution")
    assert caplog.record_tuples == [("lexveil.made_for_this_test", logging.WARNING, "a caution")]


def test_a_block_takes_its_messages():
    taken = []
    with messages_to(taken.append):
        LOG.info("one")
        LOG.info("two")
    assert [record.getMessage() for record in taken] == ["one", "two"]


def test_quiet_is_of_one_thread(caplog):
    """The other thread logs while this one is quiet."""
    with quiet(), ThreadPoolExecutor(1) as other:
        LOG.warning("from here")
        other.submit(LOG.warning, "from there").result()
    assert caplog.messages == ["from there"]


def test_lines_on_standard_error_stand_once(capsys):
    with messages_on_stderr(), messages_on_stderr():
        LOG.info("a line")
    assert capsys.readouterr().err == "a line\n"
