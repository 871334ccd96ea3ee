"""`make serve`: servers, web workers, background workers and the admin, until Ctrl-C.

What is killed is started again: web workers by gunicorn, gunicorn and the background workers by this process, the
servers by their keeper (loadtest/servers/keeper.py). Without the keeper it all ends: nothing would come back.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import time
from contextlib import ExitStack

from loadtest.commandline.arguments import typed
from loadtest.commandline.program import end_as_ctrl_c
from loadtest.demo import SERVE_PORT
from loadtest.servers import ServerError
from loadtest.servers.embedded import migrate, using, what_is_left
from loadtest.servers.lab import Lab
from loadtest.servers.supervisor import Supervisor

BACKGROUND_WORKERS = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="make serve", description=__doc__)
    parser.add_argument("--port", type=_port, default=os.environ.get("PORT") or str(SERVE_PORT))
    port = parser.parse_args().port
    end_as_ctrl_c()
    try:
        with ExitStack() as stack:
            serve(stack, port)
    except ServerError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\nEnded. {what_is_left()}")
    return 0


def serve(stack: ExitStack, port: int) -> None:
    """Start everything in `stack`, say where it is, and start again what ends."""
    stack.enter_context(using())
    migrate()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ledger.settings")
    import django  # only now: the settings read the addresses of the servers when they are imported

    django.setup()
    from loadtest.demo.login import demo_login
    from loadtest.servers.background import BackgroundWorker
    from loadtest.servers.webserver import WebServer

    free = _free(port)
    web = stack.enter_context(WebServer(port=port if free else 0))
    workers = [
        stack.enter_context(BackgroundWorker(number=number)) for number in range(1, BACKGROUND_WORKERS + 1)
    ]
    name, password = demo_login()
    if not free:
        print(f"Port {port} is taken (by another `make serve`?), so it is another one; PORT=… chooses.")
    print(
        f"The lab:     {web.url}/   (no login: a lost update live, the evidence, /play)\n"
        f"The ledger:  {web.url}/admin/   login {name}, password {password}\n"
        f"Load test:   .venv/bin/locust -f loadtest/swarm/locustfile.py --host {web.url} --web-host 127.0.0.1\n"
        f"Ctrl-C ends all of it.",
        flush=True,
    )
    supervisor = Supervisor(lambda told: print(told, file=sys.stderr, flush=True))
    supervisor.watch((web, *workers))
    lab = Lab()
    kept = bool(lab.live_state())  # not if the environment names all servers
    while not kept or lab.live_state():
        supervisor.look()
        time.sleep(0.2)
    raise ServerError(
        "The servers are gone, and their keeper with them (servers down --force?): start it again."
    )


@typed
def _port(text: str) -> int:
    """Return a port. Raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit() and int(text) < 65536):
        raise ValueError(f"{text!r} is no port: write PORT=8000, a number up to 65535")
    return int(text)


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
