"""Pairs as scenarios: a file of tests for pytest, each with what its own test had sent before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from lost_update_lab.suggest.literals import IMPORTED_NAME
from lost_update_lab.suggest.pairs import Pair, RecordedOperation
from lost_update_lab.suggest.recording import RecordedCommand
from lost_update_lab.telling.narrative import shortened

_CHANGES = re.compile(
    r"\s*(?:UPDATE|INSERT|DELETE|MERGE|REPLACE|CREATE|ALTER|DROP|TRUNCATE)\b", re.IGNORECASE
)
_NEVER = re.compile(
    r"\s*(?:CREATE|DROP|ALTER)\s+DATABASE|.*\b(?:django_session|django_migrations)\b", re.IGNORECASE
)
POSTGRES, MARIADB = "postgres", "mariadb"
#: a sequence gives the number again that it gave in the recorded test, in which others had drawn some before
NUMBERED = "SELECT setval(pg_get_serial_sequence(%s, %s), %s, false)"
_STANDARD = (
    "import datetime  # noqa: F401",
    "import os",
    "from decimal import Decimal  # noqa: F401",
    "from uuid import UUID  # noqa: F401",
    "from zoneinfo import ZoneInfo  # noqa: F401",
)
HEAD = '''"""Written by `lost-update-lab suggest`: pairs of operations that touch the same rows or keys."""

from __future__ import annotations

{imports}
'''
#: by the server that keeps the rows: imports, what sends the commands of a setup, what connects
IMPORTS = {
    POSTGRES: ["import psycopg"],
    MARIADB: [
        "import pymysql",
        "from pymysql.constants import ER",
        "",
        "from lost_update_lab.under_test import mariadb",
    ],
}
SENT = {
    POSTGRES: '''
def sent(*commands):
    """What the recorded test had sent to its servers when it called the operations."""
    sql = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    keys = redis.Redis.from_url(os.environ["REDIS_URL"])
    with sql, keys:
        for text, values in commands:
            if text is None:
                keys.execute_command(*values)
                continue
            try:
                sql.execute(text, values)
            except (
                psycopg.errors.DuplicateTable,
                psycopg.errors.DuplicateObject,
                psycopg.errors.UniqueViolation,
            ):
                pass  # it is there already: a fixture of this session has put it there, too
            except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedObject):
                if not text.upper().startswith(("DROP", "TRUNCATE")):
                    raise  # else there is nothing to take away
''',
    MARIADB: '''
def sent(*commands):
    """What the recorded test had sent to its servers when it called the operations."""
    sql = mariadb.connect(os.environ["DATABASE_URL"])
    keys = redis.Redis.from_url(os.environ["REDIS_URL"])
    with sql, keys, sql.cursor() as cursor:
        for text, values in commands:
            if text is None:
                keys.execute_command(*values)
                continue
            try:
                cursor.execute(text, values)
            except pymysql.MySQLError as error:
                if error.args[0] in (ER.TABLE_EXISTS_ERROR, ER.DUP_KEYNAME, ER.DUP_ENTRY):
                    continue  # it is there already: a fixture of this session has put it there, too
                if error.args[0] not in (ER.BAD_TABLE_ERROR, ER.NO_SUCH_TABLE) or not text.upper().startswith(
                    ("DROP", "TRUNCATE")
                ):
                    raise  # else there is nothing to take away
''',
}
CONNECT = '''
def connect():
    """A connection of SQLAlchemy's to the explorer's server."""
    return {}(os.environ["DATABASE_URL"])
'''

#: what stands in a call → a function that the file needs for it
HELPERS = {
    "call(": '''
def call(operation, /, **given):
    """As its caller does it: what it was given is committed, and closed."""
    result = operation(**given)
    for each in given.values():
        if hasattr(each, "commit"):
            each.commit()
            each.close()
    return result
''',
    "request(": """
def request(method, path, body, content_type, user=None):
    from django.contrib.auth.models import AnonymousUser
    from django.test import RequestFactory

    made = RequestFactory().generic(method, path, body, content_type)
    made.user = user or AnonymousUser()
    return made
""",
}


def why_not(pair: Pair) -> str:
    """Why no scenario can be written for it. "": one can."""
    for each in (pair.first, pair.second):
        if each.why_not:
            return each.why_not
        if bad := next((command for command in _changes(each) if command.values is None), None):
            what = shortened(bad.text, 80)
            return f"{each.title}: what {each.test} had sent before holds a value that cannot be written down ({what})"
    return ""


def name_of(pair: Pair) -> str:
    names = [each.title.replace(".", "_") for each in (pair.first, pair.second)]
    return f"test_{names[0]}_beside_{names[1] if names[0] != names[1] else 'itself'}"


def source(pairs: Iterable[Pair], django: bool) -> str:
    """The source of the file. `django`: the tests run in Django's test database."""
    pairs = list(pairs)
    commands = [
        each for pair in pairs for of in (pair.first, pair.second) for each in (*of.before, *of.commands)
    ]
    database = MARIADB if any(each.server == MARIADB for each in commands) else POSTGRES
    calls = [str(each.call) for pair in pairs for each in (pair.first, pair.second)]
    calls += [str(each.values) for pair in pairs for each in _together(pair)]
    modules = sorted({module for call in calls for module, _ in IMPORTED_NAME.findall(call)})
    lines = [*_STANDARD, "", *IMPORTS[database], *["import pytest"] * django, "import redis"]
    lines += ["from django.apps import apps  # noqa: F401"] * django
    lines += ["", *(f"import {each}" for each in modules)]
    helpers = [text for name, text in HELPERS.items() if any(f"{name}" in call for call in calls)]
    if any("creator=connect" in call for call in calls):
        helpers.append(CONNECT.format("psycopg.connect" if database == POSTGRES else "mariadb.connect"))
    head = HEAD.format(imports="\n".join(lines))
    text = [head, SENT[database], *helpers, *(_test(pair, django) for pair in pairs)]
    return IMPORTED_NAME.sub(r"\1.\2", "\n\n".join(text))


def _test(pair: Pair, django: bool) -> str:
    names = [each.title for each in (pair.first, pair.second)]
    if names[0] == names[1]:
        names = [f"{names[0]} 1", f"{names[1]} 2"]
    made = ["@pytest.mark.django_db(transaction=True)"] * django
    made += [
        f"def {name_of(pair)}(race):",
        f'    """{pair.why}',
        "",
        f"    From {pair.first.test}.",
        '    """',
    ]
    if changes := _together(pair):
        made += ["    race.setup(", "        lambda: sent("]
        for each in changes:
            text = each.text if each.server != "redis" else None
            if each.drew:
                made.append(f"            ({NUMBERED!r}, {tuple(each.drew)!r}),")
            made.append(f"            ({text!r}, {each.values}),")
        made += ["        )", "    )"]
    for name, operation in zip(names, (pair.first, pair.second), strict=True):
        made.append(f"    race.worker({name!r}, lambda: {operation.call})")
    return "\n".join([*made, "    race.explore(crashes=1)", ""])


def _together(pair: Pair) -> Sequence[RecordedCommand]:
    """What has to exist for both operations: in one test, what existed for the first; of two tests, the longer one."""
    beginnings = [list(_changes(each)) for each in (pair.first, pair.second)]
    return (min if pair.first.test == pair.second.test else max)(beginnings, key=len)


def _changes(operation: RecordedOperation) -> Iterator[RecordedCommand]:
    for each in operation.before:
        if each.server == "redis" or (_CHANGES.match(each.text) and not _NEVER.match(each.text)):
            yield each
