"""What must hold: Great Expectations suites, declarative, over numbers that SQL has aggregated."""

import os

# Read by Great Expectations when it is imported; nobody who uses this room can import it without passing here.
os.environ["GX_ANALYTICS_ENABLED"] = "false"
os.environ["DO_NOT_TRACK"] = "1"
