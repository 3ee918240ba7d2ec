"""`python -m rewardfree` is the command `rewardfree`."""

import sys

from rewardfree.cli import main

sys.exit(main())
