"""A row that its check allowed once may be refused when it is put back.

    CHECK (starts > now())            the time has passed since
    CHECK (is_known(currency))        the function looks at a table that is put back later

So where a check refuses a row of the opening state, that is put back once more with the checks out of force. PostgreSQL
reads no checks of a table which, by its catalogue, has none. Only the transaction that restores sees that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import psycopg
from psycopg.pq import DiagnosticField
from psycopg.pq.abc import PGconn, PGresult

_REFUSED = str(psycopg.errors.CheckViolation.sqlstate).encode()
_OUT = "BEGIN; UPDATE pg_class SET relchecks = 0 WHERE relchecks > 0 AND oid = ANY ('{{{oids}}}'::oid[])"
_IN_FORCE = """
UPDATE pg_class c SET relchecks = found.checks FROM (
    SELECT conrelid, count(*) AS checks FROM pg_constraint WHERE contype = 'c' GROUP BY conrelid) AS found
WHERE conrelid = c.oid AND c.oid = ANY ('{{{oids}}}'::oid[]); COMMIT
"""


def past_checks(session: PGconn, tables: Collection[int], run: Callable[[], PGresult]) -> PGresult:
    """The result of `run`, which fills these tables: of a second time without their checks, if one refuses a row.
    `tables`: their oids."""
    done = run()
    if done.error_field(DiagnosticField.SQLSTATE) != _REFUSED:
        return done
    oids = ",".join(map(str, tables))
    session.exec_(_OUT.format(oids=oids).encode())
    done = run()
    session.exec_(b"ROLLBACK" if done.error_message else _IN_FORCE.format(oids=oids).encode())
    return done
