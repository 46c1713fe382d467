"""``python -m numpyro_rankings``."""

import sys

from numpyro_rankings.cli.program import main

if __name__ == "__main__":
    sys.exit(main())
