"""A caller's connection to the owner of a book."""

from __future__ import annotations

from select import POLLIN, poll
from socket import SO_SNDTIMEO, SOL_SOCKET, socket
from struct import Struct

from ledger.posting import worker
from ledger.writer import address, wire
from ledger.writer.candidates import FormerOwner

TIMEVAL = Struct("@ll")  # seconds and µs, as the kernel has them


class Connection:
    """One thread's connection to one owner. The thread gives it away while it is in use: otherwise a late answer
    could be taken for the answer to the next question."""

    def __init__(self, found: FormerOwner, timeout: float) -> None:
        self.found = found
        self.greeting = wire.frame(wire.Hello(found.secret, worker()))
        self.received: bytes | bytearray = b""
        self.socket: socket = address.connect(found.address, timeout)
        self.socket.settimeout(None)  # Python's own time-out costs one more system call each time
        self.arrived = poll()
        self.arrived.register(self.socket, POLLIN)
        self.patience = 0.0

    def wait(self, timeout: float) -> None:
        """From now on, give up after `timeout` seconds."""
        if timeout != self.patience:
            whole, micro = divmod(max(1, round(timeout * 1_000_000)), 1_000_000)
            self.socket.setsockopt(SOL_SOCKET, SO_SNDTIMEO, TIMEVAL.pack(whole, micro))
            self.patience = timeout

    def ask(self, message: bytes, timeout: float) -> bytes | bytearray | None:
        """Send an order, and return the answer. None: there was none in `timeout` seconds, see `receive`."""
        try:
            self.wait(timeout)
            self.socket.sendall(self.greeting + message if self.greeting else message)
        except OSError:
            self.close()
            return None
        self.greeting = self.received = b""
        return self.receive()

    def receive(self) -> bytes | bytearray | None:
        """Return the answer. None: none arrived in time, or none will, and the connection is closed.

        `recv` on a socket file also wakes when the other side has read, and then waits again. `poll` wakes only for the
        answer.
        """
        try:
            while self.arrived.poll(self.patience * 1000):
                if not (received := self.socket.recv(wire.RECEIVE)):
                    break
                self.received = self.received + received if self.received else received
                body, _ = wire.cut(self.received)
                if body is not None:
                    return body
            else:
                return None  # the time is over
        except (OSError, wire.TooLong):
            pass
        self.close()
        return None

    def close(self) -> None:
        self.socket.close()

    @property
    def closed(self) -> bool:
        return self.socket.fileno() < 0
