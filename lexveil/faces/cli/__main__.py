"""`python -m lexveil.faces.cli` is the command `lexveil`."""

import sys

from lexveil.faces.cli.main import main

sys.exit(main())
