"""Prefect flows that run the DVC pipeline, the privacy audit and the release of new texts, on
demand or on a schedule.
"""

from lexveil.base.absent import take_process
from lexveil.base.runtime.telemetry import turn_telemetry_off

take_process()
turn_telemetry_off()  # set before a module of this package imports Prefect
