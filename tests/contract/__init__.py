"""Puts every lock through the same cases, on real servers.

A case is a function `case(arena, lock)` that raises Broken if the lock breaks the promise that the case tests. A lock's
own file says which cases it is expected to break (`fails`), and which do not apply to it (`not_applicable`). An
unexpected pass fails the tests, just as an unexpected break does.

    arena.py      the servers
    site.py       where the servers are, and locks built on their own clients
    party.py      one client that wants the lock
    fight.py      several parties and processes that want one lock
    promises.py   what a case demands
    gates.py      a client that can be stopped before any of its commands, and killed there
    quiet.py      fair-lock with a quiet question, and all locks that go through the cases
    workers.py    processes that take locks: to be stopped, killed, interrupted
    cases_*.py    the cases
    controls.py   locks made to break what no lock of the catalogue breaks, so that each case is seen to fail
"""
