"""The command line: one module per verb, whose options are its signature."""

import lexveil.runtime.telemetry  # noqa: F401  # before Prefect, DVC and Great Expectations
