"""Switch off the usage reporting (telemetry) of other libraries in processes that Lexveil
started.
"""

import os

SWITCHES = {
    "DO_NOT_TRACK": "1",
    "DVC_NO_ANALYTICS": "1",
    "GX_ANALYTICS_ENABLED": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
}


def turn_telemetry_off() -> None:
    """Set the environment variables that switch off the telemetry of other libraries, except those
    that the user has set. Call this function in a process that Lexveil started, before importing
    any library that sends usage data.
    """
    for name, value in SWITCHES.items():
        os.environ.setdefault(name, value)
