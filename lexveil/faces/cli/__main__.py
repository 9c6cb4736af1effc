"""Entry point of `python -m lexveil.faces.cli`, which runs the command `lexveil`."""

import sys

from lexveil.faces.cli.main import main

sys.exit(main())
