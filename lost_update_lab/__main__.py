"""`python -m lost_update_lab` is the command `lost-update-lab`."""

import sys

from lost_update_lab.command.main import main

if __name__ == "__main__":
    sys.exit(main())
