#!/usr/bin/env python
"""Django's command line: `python manage.py help`."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ledger.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError as error:
        sys.exit(f"{error}: this Python has no Django. `make install`, then `. .venv/bin/activate`.")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
