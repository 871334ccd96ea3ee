"""Who may ask the owner of a book: the socket's file, the secret, the sizes."""

from __future__ import annotations

import os
import select
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from ledger.books import open_book
from ledger.models import BookOwner, Entry
from ledger.writer import Owner, address, wire

pytestmark = pytest.mark.usefixtures("committed_db")


def order() -> bytes:
    """An order of its own: 10 to A."""
    return wire.frame((token_hex(12), [("k", "f" * 32, [("A", 10)])]))


@pytest.fixture(params=["", "127.0.0.1"], ids=["unix", "tcp"])
def owner(request: pytest.FixtureRequest, settings: Any) -> Iterator[Owner]:
    settings.OWNER_LISTEN = request.param
    owner = Owner(open_book("single-writer", [("A", 100, 0)]), 60.0)
    assert owner.take_over()
    yield owner
    owner.let_go()


def said(owner: Owner, *messages: bytes) -> bytes:
    """Send `messages` one by one, and return what the owner answers: b"" when it hangs up."""
    with address.connect(owner.address, 5.0) as connection:
        for message in messages:
            try:
                connection.sendall(message)
            except OSError:  # it has hung up already
                break
            owner.hear(0.05)
        while not select.select([connection], [], [], 0)[0]:
            owner.serve(0.05)
        try:
            return connection.recv(1000)
        except ConnectionResetError:
            return b""


def hello(owner: Owner, secret: str = "") -> bytes:
    assert owner.clients is not None
    return wire.frame(wire.Hello(secret or owner.clients.secret, "test"))


def test_the_right_secret_is_answered(owner: Owner) -> None:
    answer = said(owner, hello(owner) + order())
    assert wire.read_answers(answer[wire.HEADER :]) == [[110]]
    assert BookOwner.objects.get(book=owner.book).secret != ""


def test_a_message_may_come_in_pieces(owner: Owner) -> None:
    whole = hello(owner) + order()
    answer = said(owner, *(whole[n : n + 40] for n in range(0, len(whole), 40)))
    assert wire.read_answers(answer[wire.HEADER :]) == [[110]]


@pytest.mark.parametrize(
    "messages",
    [
        [wire.frame(wire.Hello("wrong", "test")), order()],
        [wire.frame(wire.Hello("", "test")) + order()],
        [order()],
        [b"GET / HTTP/1.1\r\n\r\n"],
        [(10_000).to_bytes(4, "big") + b"x" * 2000],
        [b"\xff" * 4],
        [b"\x00\x00\x00\x00"],
    ],
    ids=["wrong", "empty", "none", "http", "long", "longest", "nothing"],
)
def test_without_the_secret_nothing_is_heard(owner: Owner, messages: list[bytes]) -> None:
    assert said(owner, *messages) == b""
    assert owner.clients is not None
    assert not owner.clients.asked
    assert not Entry.objects.filter(book=owner.book).exists()


@pytest.mark.parametrize(
    "wrong",
    [
        ("0" * 24, [("k" * 101, "f" * 32, [("A", 1)])]),
        ("0" * 23 + "'", [("k", "f" * 32, [("A", 1)])]),
        ("0" * 24, [("k", "f", [("A", 1)])]),
        ("0" * 24, [("k", "f" * 32, [("A", 1.5)])]),
        {"window": "0" * 24},
    ],
)
def test_what_is_no_order_ends_the_connection(owner: Owner, wrong: object) -> None:
    assert said(owner, hello(owner), wire.frame(wrong)) == b""
    assert not Entry.objects.filter(book=owner.book).exists()


def test_a_connection_that_never_introduces_itself_is_closed(
    owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert owner.clients is not None
    with address.connect(owner.address, 5.0) as silent:
        while not owner.clients.anonymous:
            owner.hear(1)
        monkeypatch.setattr("ledger.writer.clients.INTRODUCTION", 0.0)
        with address.connect(owner.address, 5.0):
            while len(owner.clients.connected) != 1 or not silent_is_gone(silent):
                owner.hear(0.05)


def silent_is_gone(connection: socket.socket) -> bool:
    connection.settimeout(0.05)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False


def test_only_this_user_opens_the_socket() -> None:
    listener, where = address.listen()
    with listener:
        path = Path(where.removeprefix("unix:"))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    address.remove(where)
    assert not path.exists()


def test_a_folder_that_others_may_open_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"ledger-{os.getuid()}"
    folder.mkdir(mode=0o755)
    with pytest.raises(PermissionError, match="0700"):
        address.listen()


def test_the_file_of_a_dead_process_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    child = os.fork()
    if child == 0:
        try:
            address.listen()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    (left,) = (tmp_path / f"ledger-{os.getuid()}").iterdir()
    assert left.name.startswith(f"{child}-")
    listener, where = address.listen()
    listener.close()
    assert not left.exists()
    address.remove(where)
