"""Prefect flows that run the graph of dvc.yaml, the audit and the release, on demand or on a
schedule.
"""

import lexveil.runtime.telemetry  # before Prefect  # noqa: F401
