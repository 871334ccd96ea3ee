#!/usr/bin/env python
"""Django's command line: `python manage.py help`."""

import os
import select
import signal
import sys

STDOUT = 1


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ledger.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError as error:
        sys.exit(f"{error}: this Python has no Django. `make install`, then `. .venv/bin/activate`.")
    try:
        try:
            execute_from_command_line(sys.argv)
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except BrokenPipeError:
        if not reader_has_gone():
            raise  # of a server
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)  # for what Python still wants to write
        sys.exit(128 + signal.SIGPIPE)


def reader_has_gone() -> bool:
    """Has the other end of the pipe been closed, as in `manage.py … | head`?"""
    asked = select.poll()
    asked.register(STDOUT, 0)
    return any(event & select.POLLERR for _, event in asked.poll(0))


if __name__ == "__main__":
    main()
