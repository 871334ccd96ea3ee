"""Every lock through the same cases, on real servers.

A case is a function `case(arena, lock)` that raises Broken when the lock breaks the promise it is about. What a
lock is expected to break stands in its own file (`fails`), and so does what cannot be put to it
(`not_applicable`). An unexpected pass fails the tests as an unexpected break does.

    arena.py      the servers
    site.py       where they are, and locks built on clients of their own
    party.py      one who wants the lock
    fight.py      several parties and processes around one name
    promises.py   what a case demands
    gates.py      a client that can be stopped before any of its commands, and killed there
    quiet.py      fair-lock with a quiet question, and all that the cases are put to
    workers.py    processes that take locks: to be stopped, killed, interrupted
    cases_*.py    the cases
    controls.py   locks made to break what no lock of the catalogue breaks: each case is seen to fail
"""
