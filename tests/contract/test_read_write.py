"""read-write: readers together, a writer alone, and no writer starves. As a writer it goes through the cases, too."""

from __future__ import annotations

from locks import LOCKS
from tests.contract.arena import Arena
from tests.contract.promises import wait_until
from tests.contract.site import UNHURRIED

READ_WRITE = LOCKS["read-write"]
#: seconds: a refused writer keeps new readers out for three times as long
LONG = 10.0


def test_readers_share_and_a_writer_is_alone(arena: Arena) -> None:
    with arena.fight(READ_WRITE, lease=UNHURRIED) as fight:
        readers = [fight.holder(shared=True) for _ in range(3)]
        writer = fight.party(poll=0.001)
        for reader in readers:
            assert not writer.gets_in()
            reader.lock.release()
        assert writer.takes()
        assert not fight.party(shared=True).gets_in()
        assert not fight.party().gets_in()
        writer.lock.release()
        late = fight.party(shared=True)
        wait_until(late.gets_in)  # as soon as the wish of the writer that was refused is over


def test_a_writer_that_waits_keeps_new_readers_out(arena: Arena) -> None:
    with arena.fight(READ_WRITE, lease=UNHURRIED, poll=LONG) as fight:
        inside, writer = fight.holder(shared=True), fight.party()
        assert not writer.gets_in()
        assert not fight.party(shared=True).gets_in(), "it would starve the writer"
        inside.lock.release()
        assert fight.party().takes(), "another writer may go first"


def test_a_writer_that_gave_up_blocks_others_only_briefly(arena: Arena) -> None:
    with arena.fight(READ_WRITE, lease=UNHURRIED, poll=0.01) as fight:
        fight.holder(shared=True)
        assert not fight.party().gets_in()
        wait_until(lambda: fight.party(shared=True).gets_in())


def test_a_dead_readers_place_ends_with_its_lease_and_no_other(arena: Arena) -> None:
    with arena.fight(READ_WRITE, lease=UNHURRIED) as fight:
        living, dead = fight.holder(shared=True), fight.holder(shared=True, lease=0.05)
        dead.gate.kill()
        assert living.lock.held
        writer = fight.party(poll=0.001)
        assert not writer.gets_in()
        living.lock.release()
        wait_until(writer.gets_in)
