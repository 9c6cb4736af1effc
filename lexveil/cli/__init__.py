"""The command line: one module per verb, whose options are its signature."""

import lexveil.runtime.telemetry  # before Prefect, DVC and Great Expectations  # noqa: F401
