"""Others come between the statements of a function that PostgreSQL executes. All of this was one step, and kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from lost_update_lab import Result, worker
from lost_update_lab.scenarios.result import INCONCLUSIVE, KEPT
from lost_update_lab.servers.postgres.function_stops import Function, StopPlace, without_stops
from lost_update_lab.servers.postgres.plpgsql import Unreadable
from lost_update_lab.under_test.operations import STALLED, VIOLATED
from lost_update_lab.under_test.scenario import Mistake
from tests.lost_update_lab import generated_functions

Trial = Callable[..., Result]
TABLES = """
DROP TABLE IF EXISTS account, entry, held CASCADE;
CREATE TABLE account (id text PRIMARY KEY, balance int NOT NULL);
CREATE TABLE entry (id int GENERATED ALWAYS AS IDENTITY, account text, amount int);
CREATE TABLE held (account text, amount int);
INSERT INTO account VALUES ('a', 100), ('b', 100);
"""
TAKE, GIVE = (
    "UPDATE account SET balance = balance - 10 WHERE id = source",
    "UPDATE account SET balance = balance + 10 WHERE id = target",
)
LOCK_SOURCE, LOCK_TARGET = (
    f"PERFORM balance FROM account WHERE id = {which} FOR UPDATE" for which in ("source", "target")
)
LOCK_BOTH = "PERFORM balance FROM account WHERE id IN (source, target) ORDER BY id FOR UPDATE"


def transfers(*statements: str, language: str = "plpgsql") -> str:
    body = "; ".join(statements) + ";"
    text = f"AS $$ BEGIN {body} END $$" if language == "plpgsql" else f"AS $$ {body} $$"
    head = "CREATE OR REPLACE FUNCTION transfer(source text, target text) RETURNS void"
    return f"{head} LANGUAGE {language} {text};"


ATOMIC = f"""
CREATE OR REPLACE FUNCTION transfer(source text, target text) RETURNS void LANGUAGE sql
    BEGIN ATOMIC {TAKE}; {GIVE}; END;
"""
#: each entry posts itself
POSTS = """
CREATE OR REPLACE FUNCTION posts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE account SET balance = balance + NEW.amount WHERE id = NEW.account; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER posts AFTER INSERT ON entry DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION posts();
"""


def opened(schema: str) -> Callable[[], None]:
    def setup() -> None:
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            connection.execute(TABLES + schema)

    return setup


def transfer(source: str, target: str, sql: Any) -> None:
    sql.execute("SELECT transfer(%s, %s)", [source, target])


def enter(source: str, target: str, sql: Any) -> None:
    with sql.transaction():
        sql.execute("INSERT INTO entry (account, amount) VALUES (%s, -10)", [source])
        sql.execute("INSERT INTO entry (account, amount) VALUES (%s, 10)", [target])


def enter_both(source: str, target: str, sql: Any) -> None:
    sql.execute("INSERT INTO entry (account, amount) VALUES (%s, -10), (%s, 10)", [source, target])


def opposite(operation: Callable[..., None]) -> list[Any]:
    return [worker("Ann", operation, "a", "b"), worker("Bob", operation, "b", "a")]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("operation", "schema"),
    [
        (transfer, transfers(TAKE, GIVE)),
        (transfer, transfers(LOCK_SOURCE, LOCK_TARGET, TAKE, GIVE)),
        pytest.param(transfer, transfers(TAKE, GIVE, language="sql"), marks=pytest.mark.deep),
        (transfer, ATOMIC),
        pytest.param(enter, POSTS, marks=pytest.mark.deep),
        (enter_both, POSTS),
    ],
    ids=["updates", "locks", "sql", "atomic", "deferred-triggers", "deferred-triggers-of-one-command"],
)
def test_two_transfers_in_opposite_directions(
    trial: Trial, operation: Callable[..., None], schema: str
) -> None:
    result = trial(opposite(operation), setup=opened(schema))
    assert (result.verdict, "deadlock" in str(result)) == (STALLED, True), str(result)


def test_locks_in_one_order(trial: Trial) -> None:
    result = trial(opposite(transfer), setup=opened(transfers(LOCK_BOTH, TAKE, GIVE)))
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)


@pytest.mark.deep
def test_the_function_and_its_next_statement_are_named(trial: Trial) -> None:
    told = str(trial(opposite(transfer), setup=opened(transfers(TAKE, GIVE))))
    place = "transfer(text,text): UPDATE account SET balance = balance + 10 WHERE id = target"
    assert f"others can come before its next statement, in {place}" in told, told


HOLDS = """
CREATE OR REPLACE FUNCTION hold(wanted int) RETURNS bool LANGUAGE plpgsql AS $$ DECLARE free int; BEGIN
    {first}
    INSERT INTO held VALUES ('a', wanted);
    SELECT 100 - sum(amount) INTO free FROM held WHERE account = 'a';
    IF free < 0 THEN
        DELETE FROM held WHERE account = 'a' AND amount = wanted;
        RETURN false;
    END IF;
    RETURN true;
END $$;
"""


def hold(amount: int, sql: Any) -> bool:
    (held,) = sql.execute("SELECT hold(%s)", [amount]).fetchone()
    return bool(held)


def not_too_much(ann: bool, bob: bool) -> bool:
    return not (ann and bob)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("first", "word"),
    [("", VIOLATED), ("PERFORM 1 FROM account WHERE id = 'a' FOR UPDATE;", KEPT)],
    ids=["no-lock", "lock"],
)
def test_a_function_that_writes_first_and_looks_then(trial: Trial, first: str, word: str) -> None:
    workers = [worker("Ann", hold, 60), worker("Bob", hold, 70)]
    schema = HOLDS.format(first=first)
    result = trial(workers, setup=opened(schema), invariant=(not_too_much, "held too much"))
    assert (result.verdict, result.exhausted or word == VIOLATED) == (word, True), str(result)


def run(url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        cursor = connection.execute(query)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def url(scenario_urls: tuple[str, str]) -> Iterator[str]:
    """The database, for what explore() did not make, and will not drop."""
    yield scenario_urls[0]
    run(
        scenario_urls[0],
        """DROP TABLE IF EXISTS account, entry, held CASCADE;
        DROP FUNCTION IF EXISTS report(), transfer(text, text), bal(text), "Bal of"(text)""",
    )


DEFINITION = "SELECT pg_get_functiondef('transfer'::regproc)"


@pytest.mark.deep
def test_functions_are_left_as_they_were_found(trial: Trial, url: str) -> None:
    """Also one which a run that was killed had left with stops."""
    run(url, TABLES + transfers(TAKE, GIVE))
    before = run(url, DEFINITION)
    left = transfers(TAKE, f"IF explorer.stop(7, 'account') THEN END IF; {GIVE}")
    result = trial(opposite(transfer), setup=opened(left))
    assert result.verdict == STALLED, str(result)
    assert run(url, DEFINITION) == before


#: as a search leaves it that is killed: PostgreSQL has read it, and writes it anew
LEFT_IN_ATOMIC = f"""
CREATE SCHEMA IF NOT EXISTS explorer;
CREATE OR REPLACE FUNCTION explorer.stop(place int, plain text) RETURNS bool LANGUAGE sql AS 'SELECT false';
{ATOMIC.replace(f"{TAKE};", f"{TAKE}; SELECT explorer.stop(7, 'account');")}
"""


def add(sql: Any) -> None:
    sql.execute("UPDATE account SET balance = balance + 1 WHERE id = 'a'")


@pytest.mark.deep
@pytest.mark.parametrize("operation", [transfer, add], ids=["with-functions", "without"])
def test_a_function_that_a_killed_search_left_is_not_lost(
    trial: Trial, url: str, operation: Callable[..., None]
) -> None:
    """The schema of the stops is dropped in the end, and took a function along that needed one."""
    run(url, TABLES + ATOMIC)
    before = run(url, DEFINITION)
    run(url, LEFT_IN_ATOMIC)
    assert run(url, DEFINITION) != before
    trial(opposite(transfer) if operation is transfer else [add, add], control=False)
    assert run(url, DEFINITION) == before


NOBODY_CHANGES_IT = """
CREATE OR REPLACE FUNCTION nobody_changes_it() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
    IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity LIKE '%transfer%') THEN
        RAISE EXCEPTION 'nobody changes it';
    END IF;
END $$;
DROP EVENT TRIGGER IF EXISTS nobody_changes_it;
CREATE EVENT TRIGGER nobody_changes_it ON ddl_command_end WHEN tag IN ('CREATE FUNCTION')
    EXECUTE FUNCTION nobody_changes_it();
"""


@pytest.mark.deep
@pytest.mark.parametrize(
    ("statements", "word"), [((LOCK_SOURCE, LOCK_TARGET), INCONCLUSIVE), ((TAKE,), KEPT)]
)
def test_a_function_into_which_no_stop_can_be_written(
    trial: Trial, url: str, statements: tuple[str, ...], word: str
) -> None:
    schema = transfers(*statements) + NOBODY_CHANGES_IT
    try:
        result = trial(opposite(transfer), setup=opened(schema), control=False)
    finally:
        run(url, "DROP EVENT TRIGGER IF EXISTS nobody_changes_it")
    assert result.verdict == word, str(result)
    told = " ".join(str(result).split())
    assert ("no schedule comes between its statements (transfer(text,text))" in told) is (
        word == INCONCLUSIVE
    )


#: with these seeds they deadlock, which no schedule showed as long as a function was one step
DEADLOCK = (5, 8, 13, 19, 48)


@pytest.mark.deep
@pytest.mark.parametrize("seed", sorted(range(60), key=lambda seed: seed not in DEADLOCK))
def test_a_function_comes_to_what_its_statements_come_to(scenario_urls: tuple[str, str], seed: int) -> None:
    where = {"database": scenario_urls[0], "redis": scenario_urls[1], "disposable": True, "budget": 240}
    programs = generated_functions.pair(seed)
    statements, expected = generated_functions.outcomes(programs, generated_functions.one_by_one, **where)
    function, found = generated_functions.outcomes(programs, generated_functions.as_a_function, **where)
    assert (statements.exhausted, function.exhausted) == (True, True), f"{statements}{function}"
    assert found == expected, programs
    assert ("Deadlock" in str(found)) is (seed in DEADLOCK)


HELPERS = """
CREATE OR REPLACE FUNCTION bal(which text) RETURNS int LANGUAGE plpgsql AS $$ DECLARE b int; BEGIN
    SELECT balance INTO b FROM account WHERE id = which; RETURN b; END $$;
CREATE OR REPLACE FUNCTION "Bal of"(which text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN bal(which); END $$;
"""
A, B = (f"(SELECT balance FROM account WHERE id = '{which}')" for which in "ab")
#: in each of them others can come between the two looks
TWO_LOOKS = {
    "statements": f"x int; BEGIN x := {A}; RETURN x + {B};",
    "declarations": f"x int := {A}; y int := {B}; BEGIN RETURN x + y;",
    "one expression": "x int; BEGIN RETURN bal('a') + bal('b');",
    "without a SELECT": f"x int; BEGIN x := balance FROM account WHERE id = 'a'; RETURN x + {B};",
    "names in quotes": """x int; BEGIN x := "Bal of"('a'); RETURN x + "Bal of"('b');""",
    "a cursor": f"c CURSOR FOR {B[1:-1]}; x int := {A}; BEGIN FOR r IN c LOOP x := x + r.balance; END LOOP; RETURN x;",
    "ELSIF": f"BEGIN IF {A} = 90 THEN RETURN 200; ELSIF {B} = 110 THEN RETURN -1; END IF; RETURN 200;",
    "WHILE": f"x int := {A}; n int := 2; BEGIN WHILE (x > 0 AND {B} = 100 AND n > 0) LOOP n := n - 1; END LOOP; "
    f"RETURN CASE n WHEN 1 THEN 1 ELSE 200 END;",
    "a label": f"r record; x int := {A}; BEGIN <<each>> FOR r IN {B[1:-1]} LOOP x := x + r.balance; END LOOP each; "
    "RETURN x;",
    "CONTINUE": f"x int := {A}; n int := 2; BEGIN <<each>> WHILE {B} = 100 AND n > 0 LOOP n := n - 1; "
    "LOOP CONTINUE each; END LOOP; END LOOP; RETURN CASE n WHEN 1 THEN 1 ELSE 200 END;",
    "a cursor in quotes": f'"Of b" CURSOR FOR {B[1:-1]}; x int := {A}; BEGIN FOR r IN "Of b" LOOP '
    "x := x + r.balance; END LOOP; RETURN x;",
    "a name that is a word": f"x int := {A}; BEGIN IF 1 = (SELECT 1 AS case) THEN x := x + {B}; END IF; RETURN x;",
    "comments": f"x int; BEGIN x := {A}; /* was: /* SELECT 1; */ it's */ RETURN x + {B}; /* it's */",
    "names with a dollar": f"x$t$ int; y$t$ int; BEGIN SELECT {A} INTO x$t$; SELECT {B} INTO y$t$; RETURN x$t$ + y$t$;",
    "blocks": f"x int := {A}; BEGIN <<inner>> DECLARE y int := {B}; BEGIN RETURN x + y; END inner; RETURN 0;",
    "a later WHEN": f"BEGIN CASE WHEN {A} = 90 THEN RETURN 200; WHEN {B} = 110 THEN RETURN -1; "
    "ELSE RETURN 200; END CASE;",
}


def report(body: str) -> str:
    declares = "" if body.startswith("BEGIN") else "DECLARE "
    head = "CREATE OR REPLACE FUNCTION report() RETURNS int LANGUAGE plpgsql"
    return f"{HELPERS}{head} AS $report$ {declares}{body} END $report$;"


def reports(sql: Any) -> int:
    [(total,)] = sql.execute("SELECT report()").fetchall()
    return int(total)


def moves(sql: Any) -> None:
    sql.execute("UPDATE account SET balance = balance + CASE id WHEN 'a' THEN -10 ELSE 10 END")


@pytest.mark.deep
@pytest.mark.parametrize("how", TWO_LOOKS)
def test_two_looks_of_one_function_see_two_states(trial: Trial, how: str) -> None:
    """Most of them were kept when a function had a stop before some of its statements only."""
    workers = [worker("Ann", reports), worker("Bob", moves)]
    law = (lambda ann, bob: ann == 200, "the report is wrong")
    result = trial(workers, setup=opened(report(TWO_LOOKS[how])), invariant=law, control=False)
    assert result.verdict == (INCONCLUSIVE if how == "a later WHEN" else VIOLATED), str(result)


@pytest.mark.deep
def test_a_view_that_calls_a_function(trial: Trial) -> None:
    """A SELECT of it was one step: it only reads."""

    def reads(sql: Any) -> int:
        [(total,)] = sql.execute("SELECT total FROM reported").fetchall()
        return int(total)

    schema = report(TWO_LOOKS["statements"]) + "CREATE OR REPLACE VIEW reported AS SELECT report() AS total;"
    law = (lambda ann, bob: ann == 200, "the report is wrong")
    workers = [worker("Ann", reads), worker("Bob", moves)]
    result = trial(workers, setup=opened(schema), invariant=law, control=False)
    assert result.verdict == VIOLATED, str(result)


@pytest.mark.deep
def test_an_operator_that_calls_a_function(trial: Trial) -> None:
    def moves_by_an_operator(source: str, target: str, sql: Any) -> None:
        sql.execute("SELECT %s::text ### %s::text", [source, target])

    operator = "CREATE OPERATOR ### (FUNCTION = transfer, LEFTARG = text, RIGHTARG = text);"
    schema = f"DROP OPERATOR IF EXISTS ### (text, text); {transfers(TAKE, GIVE)} {operator}"
    result = trial(opposite(moves_by_an_operator), setup=opened(schema))
    assert result.verdict == STALLED, str(result)


@pytest.mark.parametrize("how", TWO_LOOKS)
def test_what_was_written_into_a_function_is_taken_out_again(url: str, how: str) -> None:
    run(url, TABLES + report(TWO_LOOKS[how]))
    query = "SELECT prosrc, pg_get_functiondef(oid) FROM pg_proc WHERE oid = 'report'::regproc"
    [(body, definition)] = run(url, query)
    row = ("report()", "report", "plpgsql", body, definition, "", "f", "t")
    before, places = Function.of(row), [StopPlace()]
    if how == "a later WHEN":
        with pytest.raises(Unreadable):
            before.with_stops({"BAL", "BAL OF"}, places)
        return
    after = before.with_stops({"BAL", "BAL OF"}, places)
    assert len(places) > 1
    assert (without_stops(after), after.count("\n")) == (before.definition, before.definition.count("\n"))


@pytest.mark.deep
@pytest.mark.parametrize(
    ("which", "word"),
    [("OTHERS", INCONCLUSIVE), ("deadlock_detected", INCONCLUSIVE), ("unique_violation", STALLED)],
)
def test_a_deadlock_that_a_function_would_catch(trial: Trial, which: str, word: str) -> None:
    """The explorer ends a deadlock by a cancellation, which no clause catches: what follows was never explored."""
    caught = f"BEGIN {GIVE}; EXCEPTION WHEN {which} THEN NULL; END"
    result = trial(opposite(transfer), setup=opened(transfers(TAKE, caught)), control=False)
    assert result.verdict == word, str(result)
    assert ("goes on after an error" in result.cause) is (word == INCONCLUSIVE)


@pytest.mark.deep
def test_a_deadlock_that_a_deferred_trigger_would_catch(trial: Trial) -> None:
    posts = POSTS.replace("RETURN NULL;", "RETURN NULL; EXCEPTION WHEN deadlock_detected THEN RETURN NULL;")
    result = trial(opposite(enter), setup=opened(posts), control=False)
    assert (result.verdict, "goes on after an error" in result.cause) == (INCONCLUSIVE, True), str(result)


def test_a_time_limit_of_a_function_is_not_judged(trial: Trial) -> None:
    schema = transfers("PERFORM set_config('lock_timeout', '5ms', true)", TAKE, GIVE)
    with pytest.raises(Mistake, match="a function sets a time limit of its own"):
        trial(opposite(transfer), setup=opened(schema))


@pytest.mark.deep
def test_a_function_finds_its_session_as_it_is(trial: Trial) -> None:
    """The name of the application, FOUND and ROW_COUNT; under a role that may call nothing it was not granted."""
    schema = """
    CREATE TABLE IF NOT EXISTS seen (what text);
    TRUNCATE seen;
    CREATE OR REPLACE FUNCTION notes() RETURNS void LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN
        UPDATE account SET balance = balance + 1 WHERE id = 'nobody';
        IF FOUND THEN RAISE 'found'; END IF;
        UPDATE account SET balance = balance + 1;
        GET DIAGNOSTICS n = ROW_COUNT;
        INSERT INTO seen VALUES (current_setting('application_name') || ' ' || n);
    END $$;
    DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'clerk') THEN CREATE ROLE clerk; END IF; END $$;
    GRANT ALL ON account, seen TO clerk;
    ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
    """

    def operation(sql: Any) -> None:
        with sql.transaction():
            sql.execute("SET LOCAL ROLE clerk")
            sql.execute("SET LOCAL application_name = 'payments'")
            sql.execute("SELECT notes()")

    def all_is_well() -> bool:
        return {what for (what,) in run(os.environ["DATABASE_URL"], "SELECT what FROM seen")} <= {
            "payments 2"
        }

    try:
        result = trial([operation] * 2, setup=opened(schema), invariant=all_is_well, control=False)
    finally:
        url = trial.keywords["database"]
        run(url, "ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC; DROP TABLE IF EXISTS seen")
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)


@pytest.mark.deep
def test_a_function_that_nothing_calls_may_be_unreadable(trial: Trial) -> None:
    body = "DELETE FROM gone; SELECT count(*) FROM gone"
    broken = f"CREATE OR REPLACE FUNCTION idle() RETURNS bigint LANGUAGE sql AS '{body}';"
    unread = report(TWO_LOOKS["a later WHEN"])
    schema = f"SET check_function_bodies = off; {broken} {unread} {transfers(LOCK_BOTH, TAKE, GIVE)}"
    result = trial(opposite(transfer), setup=opened(schema), control=False)
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)


ASKS = """
CREATE TABLE IF NOT EXISTS flag (open bool);
CREATE TABLE IF NOT EXISTS reported (balance int);
TRUNCATE flag, reported;
INSERT INTO flag VALUES (true);
CREATE OR REPLACE FUNCTION is_open() RETURNS bool LANGUAGE plpgsql STABLE AS $$ BEGIN
    RETURN (SELECT open FROM flag); END $$;
CREATE OR REPLACE FUNCTION pays(allowed bool DEFAULT is_open()) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    UPDATE account SET balance = balance - 10 WHERE id = 'a' AND allowed; END $$;
"""


def closes(sql: Any) -> None:
    """Once it is closed, nobody pays any more: so the report stays right."""
    sql.execute("UPDATE flag SET open = false")
    with sql.transaction():
        [(balance,)] = sql.execute("SELECT balance FROM account WHERE id = 'a' FOR UPDATE").fetchall()
        sql.execute("INSERT INTO reported VALUES (%s)", [balance])


def the_report_is_right() -> bool:
    query = "SELECT balance = (SELECT balance FROM account WHERE id = 'a') FROM reported"
    return run(os.environ["DATABASE_URL"], query) in ([], [(True,)])


@pytest.mark.deep
@pytest.mark.parametrize("call", ["pays(is_open())", "pays()", "pays(true) WHERE is_open()"])
def test_what_the_arguments_look_at_is_looked_at_before(trial: Trial, call: str) -> None:
    """The first stop of a function was passed where something else had looked already: kept."""

    def pay(sql: Any) -> None:
        sql.execute(f"SELECT {call}")

    law = (the_report_is_right, "the report is wrong")
    workers = [worker("Ann", pay), worker("Bob", closes)]
    result = trial(workers, setup=opened(ASKS), invariant=law, control=False)
    assert result.verdict == VIOLATED, str(result)


@pytest.mark.deep
def test_what_a_wait_and_a_stop_leave_behind_is_not_the_same(trial: Trial) -> None:
    """In memory, one was taken for the other: "came to something else than executed"."""
    body = "PERFORM 1 FROM account WHERE id = source FOR UPDATE", TAKE, "INSERT INTO held VALUES (source, 1)"
    workers = [worker("Ann", transfer, "a", "b"), worker("Bob", transfer, "a", "b")]
    law = (lambda: True, "all is well")
    result = trial(
        workers, setup=opened(transfers(*body)), invariant=law, control=False, lost_replies=1, crashes=2
    )
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)
