"""When things run, and how people ask for them: Prefect and the command line. No logic of the method."""

import os

# What these libraries would send home stays here. Set before any of them is imported, where the user said nothing.
QUIET = {
    "DO_NOT_TRACK": "1",
    "DVC_NO_ANALYTICS": "1",
    "GX_ANALYTICS_ENABLED": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
}

for _name, _value in QUIET.items():
    os.environ.setdefault(_name, _value)
