"""`python -m primus_hydra` is the same program as the console script `primus-hydra`."""

import sys

from primus_hydra.cli import main

sys.exit(main())
