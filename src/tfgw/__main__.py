"""``python -m tfgw``."""

import sys

from tfgw.cli import main

if __name__ == "__main__":
    sys.exit(main())
