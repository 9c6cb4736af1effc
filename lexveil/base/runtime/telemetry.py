"""Turn off the telemetry of other libraries in Lexveil's own processes."""

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
    """Turn telemetry off, unless the user has set its variable. Call this in a process of Lexveil's
    own, before importing any library that sends usage data.
    """
    for name, value in SWITCHES.items():
        os.environ.setdefault(name, value)
