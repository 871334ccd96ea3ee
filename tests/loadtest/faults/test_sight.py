"""What the judge sees of a lock is what holds it, wherever it lies; and what a network of a hazard is proved by."""

from types import SimpleNamespace
from typing import Any

import pytest

from ledger import lock_tables
from ledger.books import open_book
from ledger.strategies import STRATEGIES
from loadtest.faults.cell import Cell
from loadtest.faults.hazards import ADVERSARIES
from loadtest.faults.hazards.partition import Partition, SlowNetwork
from loadtest.faults.scene import sight
from loadtest.servers import Valkey
from loadtest.trials.availability import missing
from locks import build
from locks.file_lock import FileLock

NOTHING = "it holds no lock that can be seen"


def held(book: str) -> str:
    site: Any = SimpleNamespace(valkeys=list, nodes_in_zookeeper=lambda book: [])
    return sight.held(site, book, None)


@pytest.mark.parametrize(
    "slug", ["insert-lock", "lock-table", "centre-lock", "segmented-lock", "segmented-lock-mended"]
)
def test_a_row_of_a_lock_table_is_seen_while_it_locks(slug: str, committed_db: None) -> None:
    book = str(open_book(slug, [("A0001", 0, None)]).pk)
    lock = build(lock_tables.LOCK_TABLES[slug], f"{book}:A0001", sql="default")
    assert held(book) == NOTHING
    assert lock.acquire(5)
    assert "row " in held(book)
    lock.release()
    assert held(book) == NOTHING


def test_a_file_is_seen_while_it_is_locked(committed_db: None) -> None:
    lock = FileLock("book-of-this-test:A0001")
    assert lock.acquire(5)
    assert held("book-of-this-test") == "held: file of book:A0001"
    lock.release()
    assert held("book-of-this-test") == NOTHING


def test_whatever_keeps_its_balances_in_postgresql_can_be_cut_off() -> None:
    for slug, found in STRATEGIES.items():
        if "postgres" in found.stores:
            assert Partition().not_applicable(slug, "postgres") is None, slug


@pytest.mark.parametrize("delayed", [0, 3])
def test_a_slow_network_is_proved_by_what_it_slowed_down(
    delayed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    proofs: list[str] = []
    adversary = SlowNetwork()
    monkeypatch.setattr(adversary, "way", lambda scene: {})
    adversary.proxies = [SimpleNamespace(delay=0.0, delayed=delayed)]  # type: ignore[list-item]
    scene: Any = SimpleNamespace(
        lease=0.0,
        hire=lambda env: "victim",
        victim=lambda worker: worker,
        held=lambda victim: "held",
        rush=list,
        wait=lambda workers, seconds: True,
        go_on=lambda victim: None,
        fault=lambda told: None,
        prove=proofs.append,
    )
    adversary.strike(scene)
    assert len(proofs) == (delayed > 0)


def test_a_cell_that_is_run_again_leaves_the_whole_matrix_as_it_is() -> None:
    command = Cell("token", ADVERSARIES["pause"]).command
    assert " --output report/again " in command
    assert command.endswith("--hazard pause --strategy token")


def test_a_run_on_servers_of_its_own_offers_no_address(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    from loadtest.trials import availability

    settings.ZOOKEEPER_HOSTS = ""
    name, there, _, address = availability.SERVERS["zookeeper"]
    lacking = (name, there, lambda: "install zookeeper", address)
    monkeypatch.setitem(availability.SERVERS, "zookeeper", lacking)
    assert missing("zookeeper", "postgres", private=True) == (
        "no ZooKeeper: install zookeeper",
        "apt-get install zookeeper",
    )
    assert "ZOOKEEPER_HOSTS" in (missing("zookeeper", "postgres") or ("", ""))[1]


def test_the_judge_connects_once_to_each_server_and_again_to_one_that_was_restarted() -> None:
    with Valkey(persistence="always") as server:
        site: Any = SimpleNamespace(valkeys=lambda: [server])
        with server.client() as client:
            client.set("book:A0001", "mine")
            assert sight.keys(site, "book") == {"book:A0001": "mine, PTTL -1 ms"}
            connected = server.info("stats")["total_connections_received"]
            for _ in range(5):
                sight.keys(site, "book")
            assert server.info("stats")["total_connections_received"] == connected + 1  # this question's own
        server.kill()
        assert sight.keys(site, "book") == {}
        server.start()
        assert sight.keys(site, "book") == {"book:A0001": "mine, PTTL -1 ms"}
