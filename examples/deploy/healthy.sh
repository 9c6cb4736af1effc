#!/bin/sh
# Whether the service is ready to answer, for a container's health check: healthy.sh [ADDRESS]
set -eu
exec python3 - "${1:-http://127.0.0.1:8750/v1/ready}" <<'PYTHON'
import sys
import urllib.request

try:
    urllib.request.urlopen(sys.argv[1], timeout=5).close()
except OSError as error:
    sys.exit(f"not ready: {error}")
PYTHON
