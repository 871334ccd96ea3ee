"""What a look at the contents does not show: other tables, and functions that use them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

from lost_update_lab.model.errors import Broken
from lost_update_lab.servers.compound import names_one, with_naming, words_of
from lost_update_lab.servers.filled_columns import FilledColumns
from lost_update_lab.servers.numbers import IN_A_ROW, NUMBER
from lost_update_lab.servers.postgres.hidden_clocks import CLOCK_QUESTIONS, HiddenClocks
from lost_update_lab.servers.postgres.transactions import lasts_inside
from lost_update_lab.snapshot.catalogue import OF_THE_USER, OWN
from lost_update_lab.telling.narrative import shortened

RELATIONS = (
    "SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace "  # noqa: S608  (names of our own)
    f"WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND {OF_THE_USER}"
)
FUNCTIONS = (
    "SELECT proname, prosrc FROM pg_proc JOIN pg_namespace n ON n.oid = pronamespace "  # noqa: S608  (names of our own)
    f"WHERE {OF_THE_USER}"
)
#: an insert into one of these draws a number from a sequence, or may do so through a trigger
COUNTING = (
    "SELECT DISTINCT relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
    "LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum WHERE a.attidentity <> '' "
    "OR pg_get_expr(d.adbin, d.adrelid) LIKE '%(%' "
    "OR EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal "
    "AND tgname !~ '^explorer_looks')"
)
#: what may ask for the clock where no gate sees it: functions and views, with their texts
SOURCES = (
    "SELECT proname, concat(coalesce(pg_get_function_sqlbody(p.oid), prosrc), ' ', pg_get_expr(proargdefaults, 0)) "  # noqa: S608  (names of our own)
    f"FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE {OF_THE_USER} "
    "UNION ALL SELECT viewname, definition FROM pg_views WHERE schemaname !~ '^(pg_|information_schema)'"
)
#: a table whose rows lie in those above it, or go with theirs
_TAKES_ALONG = """
SELECT inhrelid AS below, inhparent AS oid FROM pg_inherits
UNION SELECT conrelid, confrelid FROM pg_constraint
WHERE contype = 'f' AND (confdeltype IN ('c', 'n', 'd') OR confupdtype IN ('c', 'n', 'd'))
"""
#: the users' functions … that are, or are not, of this kind
_FUNCTIONS = """
SELECT p.oid FROM pg_proc p JOIN pg_language l ON l.oid = prolang
WHERE lanname NOT IN ('internal', 'c') AND p.oid >= 16384 AND provolatile"""
#: functions that may look at tables, and what calls functions where no text shows it: casts and domains; views; tables
#: with triggers, with rules, with policies, with a column of such a type, or with constraints or defaults that call
#: one; a table whose partition is one of these; and one whose rows take those of such a table with them. No part
#: depends on the row of another: asked for each table, it took 130 ms in a database of 145 tables, and takes 4 (psql's
#: \timing). And partitioned tables: a command that meets a row which is about to move to another partition fails
CALLED_IN_POSTGRES = f"""
WITH RECURSIVE calls AS (
    SELECT objid, classid FROM pg_depend WHERE refclassid = 'pg_proc'::regclass AND refobjid >= 16384
    AND refobjid NOT IN (
        SELECT p.oid FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = '{OWN[0]}')
), checks AS (
    SELECT conrelid, contypid FROM pg_constraint JOIN calls ON objid = oid AND classid = 'pg_constraint'::regclass
), types (oid) AS (
    SELECT contypid FROM checks UNION SELECT casttarget FROM pg_cast WHERE castfunc >= 16384
), above AS (
    {_TAKES_ALONG}
), calling AS (
    SELECT tgrelid FROM pg_trigger WHERE NOT tgisinternal AND tgname !~ '^explorer_looks'
    UNION SELECT adrelid FROM pg_attrdef d JOIN calls ON objid = d.oid AND classid = 'pg_attrdef'::regclass
    UNION SELECT conrelid FROM checks
    UNION SELECT attrelid FROM types JOIN pg_attribute ON atttypid = types.oid WHERE NOT attisdropped
), functions AS (
    {_FUNCTIONS} <> 'i'
), found (oid) AS (
    SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    WHERE {OF_THE_USER}
    AND (relkind = 'p' OR relhasrules OR relrowsecurity OR c.oid IN (SELECT tgrelid FROM calling))
    UNION SELECT above.oid FROM above JOIN found ON below = found.oid
)
SELECT proname FROM pg_proc p JOIN pg_language l ON l.oid = prolang JOIN pg_namespace n ON n.oid = pronamespace
WHERE lanname NOT IN ('internal', 'c') AND provolatile <> 'i' AND {OF_THE_USER}
UNION SELECT relname FROM pg_class JOIN found USING (oid)
UNION SELECT typname FROM pg_type JOIN types USING (oid)
UNION SELECT oprname FROM pg_operator JOIN functions f ON oprcode = f.oid
UNION SELECT a.proname FROM pg_aggregate JOIN pg_proc a ON a.oid = aggfnoid JOIN functions f ON aggtransfn = f.oid
"""  # noqa: S608  (a part of our own)
#: views, operators, casts and domains by which a SELECT calls a function that is VOLATILE
CALLING = f"""
WITH RECURSIVE calls AS (
    {_FUNCTIONS} = 'v'
), views (oid) AS (
    SELECT ev_class FROM pg_depend d JOIN pg_rewrite r ON r.oid = objid JOIN calls ON calls.oid = refobjid
    WHERE d.classid = 'pg_rewrite'::regclass AND refclassid = 'pg_proc'::regclass
    UNION SELECT ev_class FROM pg_depend d JOIN pg_rewrite r ON r.oid = objid JOIN views ON views.oid = refobjid
    WHERE d.classid = 'pg_rewrite'::regclass AND refclassid = 'pg_class'::regclass
)
SELECT relname FROM pg_class JOIN views USING (oid)
UNION SELECT oprname FROM pg_operator JOIN calls ON oprcode = calls.oid
UNION SELECT typname FROM pg_type t JOIN pg_cast ON casttarget = t.oid JOIN calls ON castfunc = calls.oid
UNION SELECT typname FROM pg_type t JOIN pg_constraint k ON contypid = t.oid JOIN pg_depend d ON d.objid = k.oid
JOIN calls ON calls.oid = refobjid WHERE classid = 'pg_constraint'::regclass AND refclassid = 'pg_proc'::regclass
"""  # noqa: S608  (names of our own)
SEQUENCES = RELATIONS.replace("'r', 'p', 'v', 'm', 'f'", "'S'")
#: tables with a trigger that is executed by COMMIT
DEFERRED = (
    "SELECT relname FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid "
    "WHERE tginitdeferred AND NOT tgisinternal AND tgenabled <> 'D'"
)
#: and with one that SET CONSTRAINTS may leave to COMMIT
DEFERRABLE = DEFERRED.replace("tginitdeferred", "tgdeferrable")
#: what writes to a table, or calls a function, where no text shows it: the table of rows that take others with them, a
#: partitioned table, a view, a table with a rule or a trigger; and that table, or that function
ABOVE = f"""
SELECT p.relname, c.relname FROM ({_TAKES_ALONG}) t JOIN pg_class p USING (oid) JOIN pg_class c ON c.oid = below
UNION SELECT v.relname, t.relname FROM pg_depend d JOIN pg_rewrite r ON r.oid = objid
JOIN pg_class v ON v.oid = ev_class JOIN pg_class t ON t.oid = refobjid
WHERE d.classid = 'pg_rewrite'::regclass AND refclassid = 'pg_class'::regclass AND v.oid >= 16384
UNION SELECT t.relname, proname FROM pg_trigger JOIN pg_class t ON t.oid = tgrelid JOIN pg_proc p ON p.oid = tgfoid
WHERE NOT tgisinternal AND tgname !~ '^explorer_looks'
"""  # noqa: S608  (names of our own)
QUESTIONS = {
    b"relations": RELATIONS,
    b"functions": FUNCTIONS,
    b"counting": COUNTING,
    b"sources": SOURCES,
    b"called": CALLED_IN_POSTGRES,
    b"calling": CALLING,
    b"sequences": SEQUENCES,
    b"deferred": DEFERRED,
    b"deferrable": DEFERRABLE,
    b"above": ABOVE,
    **CLOCK_QUESTIONS,
}
_LITERAL = re.compile(r"'(?:''|[^'])*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
#: a column of each table: it shows whose transaction has locked the row, which may be open
_LOCKER = "xmax"
_NUMBERS = re.compile(r"\b(?:setval|pg_sequence_last_value)\s*\(|\bpg_sequences\b", re.IGNORECASE)
#: what shows who is at work, and what they hold: PostgreSQL's views, and the functions behind them
_AT_WORK = re.compile(
    r"\bpg_(?:locks|lock_status|(?:safe_snapshot_)?blocking_pids|prepared_xacts?|stat_\w+|statio_\w+)\b",
    re.IGNORECASE,
)
WHO_IS_AT_WORK = "a command asks PostgreSQL who is at work, or what they have locked, which is in no row"
BY_THE_LOCK = (
    "ask by trying to take that lock, and give it back: pg_try_advisory_xact_lock, SELECT … FOR UPDATE NOWAIT or SKIP "
    "LOCKED. Or note in a row who is at work"
)
_READ = re.compile(r"\b(?:FROM|JOIN|TABLE)\s+(?:ONLY\s+)?(?:\"?\w+\"?\s*\.\s*)?\"?(\w+)", re.IGNORECASE)
_DEFERS = re.compile(r"\bSET\s+CONSTRAINTS\b[^;]*\bDEFERRED\b", re.IGNORECASE)


class HiddenOnPostgres:
    """`shown`: the query for the contents. `ask`: one round trip beside the gates. Once a command writes what is not
    shown, answers depend on more than is known of the server."""

    def __init__(self, ask: Callable[[bytes], list[Any]], shown: str) -> None:
        self.ask, self.shown = ask, words_of(shown)
        self._names: set[str] | None = None
        self._written: dict[str, bool] = {}
        self._calls: dict[str, bool] = {}
        self._numbers: dict[str, bool] = {}
        self._workers: dict[str, bool] = {}
        self.clocks = HiddenClocks(self.ask, lambda: self._sources, self._with_above)

    def told_by_default(self, text: str) -> str:
        """As FilledColumns.told_in, for times by the server's own clock."""
        return self.clocks.filled.told_in(text)

    def seen_of(self, columns: set[tuple[str, str]]) -> FilledColumns:
        """As HiddenClocks.seen_of."""
        return self.clocks.seen_of(columns)

    def named_in(self, text: str) -> bool:
        """Does this command, without its values, name any of it?"""
        statement = text.partition(" ← ")[0]
        if statement not in self._written:
            self._written[statement] = not self.names.isdisjoint(words_of(statement))
        return self._written[statement]

    def _texts(self, question: bytes) -> list[tuple[str, str]]:
        return [((name or b"").decode().lower(), (text or b"").decode()) for name, text in self.ask(question)]

    def defers(self, text: str) -> bool:
        """Does this command name a table with a deferred trigger, or what writes to one unseen? Or defer a trigger?"""
        statement = text.partition(" ← ")[0]
        if _DEFERS.search(statement):
            return bool(self._deferrable)
        return bool(self._deferred) and not self._deferred.isdisjoint(words_of(statement))

    def number_in(self, text: str) -> Broken | None:
        """Does this command read, or set, the number of a sequence, or by a function, a view or a trigger?"""
        statement = text.partition(" ← ")[0]
        if statement not in self._numbers:
            bare = _LITERAL.sub("''", statement)
            self._numbers[statement] = self._numbered(bare) or self._uses(bare, self._by_number)
        return Broken(f"{NUMBER} ({shortened(text, 80)})", IN_A_ROW) if self._numbers[statement] else None

    def _uses(self, statement: str, names: set[str]) -> bool:
        """Does it name one of these views, or call one of these functions?"""
        return any(
            name not in self.functions or re.search(rf"\b{re.escape(name)}\W*\(", statement, re.IGNORECASE)
            for name in names & words_of(statement)
        )

    def at_work_in(self, text: str) -> Broken | None:
        """Does this command ask, by itself or by a function or a view, who is at work? What is committed does not show
        that, so two such looks would be told the same whatever others do in between."""
        statement = text.partition(" ← ")[0]
        if statement not in self._workers:
            bare = _LITERAL.sub("''", statement)
            self._workers[statement] = bool(_AT_WORK.search(bare)) or self._uses(bare, self._by_who_works)
        if not self._workers[statement]:
            return None
        return Broken(f"{WHO_IS_AT_WORK} ({shortened(text, 80)})", BY_THE_LOCK)

    def _numbered(self, text: str) -> bool:
        read = {name.lower() for name in _READ.findall(text)}
        return bool(_NUMBERS.search(text)) or not self._sequences.isdisjoint(read)

    @cached_property
    def _sequences(self) -> set[str]:
        return self.names_of(b"sequences")

    @cached_property
    def _by_number(self) -> set[str]:
        """Functions and views that do so, and what calls them."""
        return self._with_above({name for name, text in self._sources if self._numbered(text)})

    @cached_property
    def _by_who_works(self) -> set[str]:
        """Functions and views that ask it, and what calls them."""
        return self._with_above({name for name, text in self._sources if _AT_WORK.search(text)})

    def calls(self, text: str) -> bool:
        """Does this SELECT call a function of a user's, also one that is named as one of PostgreSQL's own? Or one that
        may write, or look several times, through a view or an operator? Or does it see what is not committed?"""
        statement = text.partition(" ← ")[0]
        if statement not in self._calls:
            self._calls[statement] = names_one(statement, self._calling)
        return self._calls[statement]

    @cached_property
    def _calling(self) -> set[str]:
        return {*self.names_of(b"calling"), *self.functions, _LOCKER}

    def names_of(self, question: bytes) -> set[str]:
        return {(name or b"").decode().lower() for (name,) in self.ask(question)}

    def keeps(self, text: str) -> bool:
        """Does it call a function that changes what the session remembers?"""
        return bool(self._keeping) and names_one(text, self._keeping)

    @cached_property
    def _keeping(self) -> set[str]:
        return self._with_above({name for name, text in self._functions if lasts_inside(text)})

    @cached_property
    def _deferrable(self) -> set[str]:
        return self.names_of(b"deferrable")

    @cached_property
    def _sources(self) -> list[tuple[str, str]]:
        """Functions and views, with their texts."""
        return self._texts(b"sources")

    @cached_property
    def _functions(self) -> list[tuple[str, str]]:
        return self._texts(b"functions")

    @cached_property
    def beside(self) -> set[str]:
        """Functions of the user, and tables and views of which a write may write to other tables, too."""
        return {*self.functions, *(name for name, _ in self._texts(b"above"))}

    @cached_property
    def functions(self) -> set[str]:
        """Their names, in lower case."""
        return {name for name, _ in self._functions}

    @cached_property
    def _deferred(self) -> set[str]:
        tables = self.names_of(b"deferred")
        if any(_DEFERS.search(text) for _, text in self._functions):
            tables |= self._deferrable
        return self._with_above(tables)

    def _with_above(self, names: set[str]) -> set[str]:
        """These, and what writes to such a table, or calls such a function, unseen."""
        above = [(name, below.lower()) for name, below in self._texts(b"above")] if names else []
        found, more = set[str](), names
        while found != more:
            found = more
            more = self._with_functions(found) | {name for name, below in above if below in found}
        return found

    def _with_functions(self, found: set[str]) -> set[str]:
        """These names, and those of the functions that use one."""
        return with_naming(found, self._functions)

    @property
    def names(self) -> set[str]:
        if self._names is None:
            found = {name.decode().lower() for (name,) in self.ask(b"relations")} - self.shown
            self._names = self._with_functions(found)
        return self._names
