"""Great Expectations suites over numbers that SQL has aggregated."""

import os

# Great Expectations reads these at import, so they are set before any module of this room imports
# it.
os.environ["GX_ANALYTICS_ENABLED"] = "false"
os.environ["DO_NOT_TRACK"] = "1"
