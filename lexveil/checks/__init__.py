"""Great Expectations suites for numbers that SQL aggregated from the artifacts."""

import os

# Great Expectations reads these variables at import, so they are set before a module of this
# package imports it.
os.environ["GX_ANALYTICS_ENABLED"] = "false"
os.environ["DO_NOT_TRACK"] = "1"
