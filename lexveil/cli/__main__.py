"""`python -m lexveil.cli` is the command `lexveil`."""

import sys

from lexveil.cli.main import main

sys.exit(main())
