"""Turns telemetry off unless the user has set it. Import this before any library that sends usage
data.
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

for _name, _value in SWITCHES.items():
    os.environ.setdefault(_name, _value)
