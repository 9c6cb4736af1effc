"""Stages of the DVC pipeline. Each module directly in this package is one stage of dvc.yaml, run as
``python -m tasks.NAME``.
"""

from lexveil.base.absent import take_process
from lexveil.base.runtime.telemetry import turn_telemetry_off

take_process()
turn_telemetry_off()  # set before a stage imports a library that sends usage data
