"""`python -m primus_hydra` is the same program as the console script `primus-hydra`."""

import sys

try:
    from primus_hydra.cli import main
except KeyboardInterrupt:  # while loading, before the program listens to signals itself
    sys.exit(130)

sys.exit(main())
