"""The command line: one parser, one call per verb."""

import lexveil.runtime.telemetry  # noqa: F401  # before Prefect, DVC and Great Expectations
