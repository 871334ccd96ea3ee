"""`lost-update-lab suggest`: what is recorded, which pairs it makes, what is written, what stays after --confirm."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from lost_update_lab.command.main import main
from lost_update_lab.embedded import mariadb
from lost_update_lab.gates.patch import Patches
from lost_update_lab.suggest.keys import Keys
from lost_update_lab.suggest.pairs import BLINDLY, BY_WHAT_IT_READ, IN_ONE, ONLY_READS, operations, pairs
from lost_update_lab.suggest.recording import CommandRecorder, RecordedCommand, written
from lost_update_lab.suggest.touching import uses
from lost_update_lab.suggest.writing import name_of

ROOT = Path(__file__).resolve().parents[3]
SHOP = """
import os
import psycopg
import redis

def connect():
    return psycopg.connect(os.environ["DATABASE_URL"])

def redeem(code, customer):
    with connect() as db:
        (left,) = db.execute("SELECT uses FROM voucher WHERE code = %s", [code]).fetchone()
        if left > 0:
            db.execute("UPDATE voucher SET uses = %s WHERE code = %s", [left - 1, code])
        return left > 0

def refund(code):
    with connect() as db:
        db.execute("UPDATE voucher SET uses = uses + 1 WHERE code = %s", [code])

def sell(item):
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as keys:
        keys.set(item, int(keys.get(item)) - 1)
"""
TESTS = """
import os
import redis
import shop

def test_redeem():
    with shop.connect() as db:
        db.execute("DROP TABLE IF EXISTS voucher")
        db.execute("CREATE TABLE voucher (code text PRIMARY KEY, uses int)")
        db.execute("INSERT INTO voucher VALUES (%s, 1)", ["XMAS"])
    assert shop.redeem("XMAS", customer=1)
    shop.refund("XMAS")

def test_sell():
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as keys:
        keys.set("apple", 5)
    shop.sell("apple")
"""
SETTINGS = """[pytest]
lost_update_lab_servers = embedded
addopts = -p lost_update_lab.pytest_plugin -p no:cacheprovider
"""


def sent(
    text: str, operation: str = "shop:redeem", number: int = 1, server: str = "postgres"
) -> RecordedCommand:
    return RecordedCommand("test_shop.py::test", server, text, "None", "shop.py:1", operation, number, "")


def test_two_functions_of_one_name() -> None:
    """Of their scenarios, which had one name, Python kept the last one. Its verdict was told for all of them."""
    takes = ["SELECT left_ FROM stock", "UPDATE stock SET left_ = 1"]
    commands = [
        sent(text, f"{module}:take", number)
        for number, module in enumerate(("old", "new"), 1)
        for text in takes
    ]
    found = pairs(operations(commands))
    assert sorted(each.title for each in found) == [
        "new.take + new.take",
        "old.take + new.take",
        "old.take + old.take",
    ]
    assert len({name_of(each) for each in found}) == 3


@pytest.mark.parametrize(
    ("texts", "danger"),
    [
        (["SELECT uses FROM voucher", "UPDATE voucher SET uses = 1"], BY_WHAT_IT_READ),
        (['SELECT "voucher"."uses" FROM "voucher" FOR UPDATE', 'UPDATE "voucher" SET "uses" = 1'], IN_ONE),
        (["UPDATE voucher SET uses = uses - 1"], IN_ONE),
        (["UPDATE voucher SET uses = 1"], BLINDLY),
        (["INSERT INTO voucher VALUES (1)"], IN_ONE),
        (["SELECT count(*) FROM voucher", "INSERT INTO voucher VALUES (1)"], BY_WHAT_IT_READ),
        (["SELECT uses FROM voucher"], ONLY_READS),
        (["SELECT `uses` FROM `voucher` LOCK IN SHARE MODE", "UPDATE `voucher` SET `uses` = 1"], IN_ONE),
        (["UPDATE `voucher` SET `uses` = (`voucher`.`uses` - %s)"], IN_ONE),
        (["REPLACE INTO `voucher` VALUES (1)"], BLINDLY),
    ],
)
def test_how_dangerous_an_operation_is(texts: list[str], danger: int) -> None:
    (operation,) = operations([sent(text) for text in texts])
    assert operation.touches["voucher"].danger == danger


def test_pairs_touch_the_same_and_one_writes() -> None:
    commands = [
        sent("SELECT a FROM t", "shop:read", 1),
        sent("SELECT a FROM t", "shop:change", 2),
        sent("UPDATE t SET a = 2", "shop:change", 2),
        sent("UPDATE other SET a = 2", "shop:elsewhere", 3),
        sent("CREATE TABLE t ()", "shop:makes_tables", 4),
    ]
    assert [pair.title for pair in pairs(operations(commands))] == [
        "change + change",
        "elsewhere + elsewhere",
        "read + change",
    ]


@pytest.mark.parametrize(
    ("text", "values", "row"),
    [
        ("SELECT uses FROM voucher WHERE code = %s FOR UPDATE", "['XMAS']", {"code": "'XMAS'"}),
        ('UPDATE "voucher" SET "uses" = %s WHERE "voucher"."id" = %s', "(1, 7)", {"id": "7"}),
        (
            "DELETE FROM voucher WHERE id = %(id)s AND kind = 'gift'",
            "{'id': 7}",
            {"id": "7", "kind": "'gift'"},
        ),
        ("INSERT INTO voucher (code, uses) VALUES (%s, 1)", "['XMAS']", {"code": "'XMAS'", "uses": "1"}),
        ("SELECT uses FROM voucher WHERE id = %s", "[UUID('a')]", {"id": "UUID('a')"}),
        ("SELECT uses FROM voucher WHERE id = %s OR code = 'XMAS'", "[7]", {}),
        ("SELECT uses FROM voucher WHERE id > %s", "[7]", {}),
        ("SELECT v.uses FROM voucher v JOIN shop s ON s.id = v.shop WHERE s.id = %s", "[7]", {}),
        ("INSERT INTO voucher (code) VALUES (%s), (%s)", "['A', 'B']", {}),
    ],
)
def test_the_row_that_a_command_names(text: str, values: str, row: dict[str, str]) -> None:
    found = uses(replace(sent(text), values=values))
    assert all(use.row == row for use in found)
    assert found


def test_what_is_written_and_what_is_only_read() -> None:
    for text in (
        "INSERT INTO log SELECT * FROM voucher",
        "WITH old AS (DELETE FROM log RETURNING *) SELECT 1 FROM voucher",
        "UPDATE log SET a = b.a FROM voucher b",
    ):
        kinds = {use.thing: use.kind for use in uses(sent(text))}
        assert kinds["voucher"] == "reads", text
        assert kinds["log"] in ("writes", "at once"), text
    (locked,) = uses(sent("SELECT a FROM voucher FOR NO KEY UPDATE NOWAIT"))
    assert (locked.thing, locked.kind) == ("voucher", "locks")


def test_pairs_that_meet_at_a_row_come_first() -> None:
    read, write = "SELECT a FROM setting WHERE name = %s", "UPDATE setting SET a = 1 WHERE name = %s"
    commands = [
        replace(sent(read, "shop:rate", 1), values="['rate']"),
        replace(sent(write, "shop:rate", 1), values="['rate']"),
        replace(sent(write, "shop:limit", 2), values="['limit']"),
        replace(sent(write, "shop:rate_too", 3), values="['rate']"),
    ]
    found = pairs(operations(commands))
    assert [(pair.title, pair.meet) for pair in found] == [
        ("rate + rate", True),
        ("rate + rate_too", True),
        ("limit + limit", True),
        ("rate_too + rate_too", True),
        ("rate + limit", False),
        ("limit + rate_too", False),
    ]
    assert found[-1].why.startswith("setting, other rows: limit writes it")
    assert found[0].why.startswith("setting: rate reads it without a lock")


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ("GET a", "a reads"),
        ("MGET a b", "a reads, b reads"),
        ("MSET a 1 b 2", "a writes, b writes"),
        ("DEL a b", "a writes, b writes"),
        ("SET a 1", "a writes"),
        ("SET a 1 NX", "a at once"),
        ("EVAL x 2 a b arg", "a at once, b at once"),
        ("EVAL x 0 a", ""),
        ("HSET h field 1", "h writes"),
        ("HINCRBY h field 1", "h at once"),
        ("XREADGROUP GROUP g me STREAMS s t > >", "s at once, t at once"),
        ("COPY a b", "a reads, b writes"),
        ("PUBLISH news a", ""),
    ],
)
def test_the_keys_of_a_redis_command(scenario_urls: tuple[str, str], words: str, keys: str) -> None:
    asked = Keys()
    with redis.Redis.from_url(scenario_urls[1]) as client:
        connection = client.connection_pool.get_connection()
        assert ", ".join(map(" ".join, asked.of(connection, words.split()))) == keys
    asked.close()


def test_operations_meet_at_the_second_key(scenario_urls: tuple[str, str], tmp_path: Path) -> None:
    """They were told apart by the word after the command's name."""
    recorder, patches = CommandRecorder(tmp_path / "commands"), Patches()
    recorder.install(patches)
    patches.apply()
    try:
        with redis.Redis.from_url(scenario_urls[1]) as client:
            recorder.begin("test_it")
            client.mset({"stock:a": 1, "stock:b": 1})
            client.eval("return redis.call('DEL', KEYS[1])", 1, "stock:b")
            client.mget("stock:c", "stock:b")
            recorder.begin("")
    finally:
        patches.undo()
    assert [[use.thing for use in uses(each)] for each in recorder.commands] == [
        ["key stock:a", "key stock:b"],
        ["key stock:b"],
        ["key stock:c", "key stock:b"],
    ]


@pytest.mark.parametrize(
    ("value", "source"),
    [(1, "1"), ("a", "'a'"), ([1, None], "[1, None]"), (object(), None), ([object()], None), (0.5, "0.5")],
)
def test_values_as_python(value: object, source: str | None) -> None:
    assert written(value) == source


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in {"shop.py": SHOP, "test_shop.py": TESTS, "pytest.ini": SETTINGS}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def on_mariadb(text: str) -> str:
    """The same project through PyMySQL."""
    text = text.replace(
        "import psycopg\n", "import pymysql\nfrom lost_update_lab.under_test.mariadb import parameters\n"
    )
    text = text.replace(
        'psycopg.connect(os.environ["DATABASE_URL"])',
        'pymysql.connect(**parameters(os.environ["DATABASE_URL"]))',
    )
    text = re.sub(r"with (\S*)connect\(\) as db:", r"with \1connect() as link, link.cursor() as db:", text)
    text = re.sub(r"\(left,\) = (.*)\.fetchone\(\)", r"\1; (left,) = db.fetchone()", text)
    text = re.sub(r"( +)(return left > 0)", r"\1link.commit()\n\1\2", text)
    text = re.sub(r"( +)(db.execute\(.*(?:uses \+ 1|VALUES).*\))", r"\1\2; link.commit()", text)
    return text.replace("code text", "code varchar(9)").replace("= embedded", "= mariadb")


def on_aiomysql(text: str) -> str:
    """The same through aiomysql; the tests themselves use PyMySQL."""
    if "def redeem" not in text:
        text = on_mariadb(text).replace("shop.connect()", "mariadb.connect(os.environ['DATABASE_URL'])")
        text = text.replace(
            "import shop", "import asyncio, shop\nfrom lost_update_lab.under_test import mariadb"
        )
        return re.sub(r"(shop\.re\w+\(.*\))", r"asyncio.run(\1)", text)
    text = on_mariadb(text).replace("pymysql.connect(**parameters", "await (connect_async")
    text = text.replace("import pymysql\n", "").replace("import parameters", "import connect_async")
    text = re.sub(r"def (con|re)", r"async def \1", text).replace(
        "with connect()", "async with await connect()"
    )
    return re.sub(r"\b(db\.(?:execute|fetchone)|link\.commit)\(", r"await \1(", text)


def on_asyncio(text: str) -> str:
    """The same through psycopg's AsyncConnection and redis.asyncio; the tests themselves use the others."""
    if "def redeem" not in text:
        text = text.replace("shop.connect()", "psycopg.connect(os.environ['DATABASE_URL'])")
        text = text.replace("import shop", "import asyncio, psycopg, shop")
        return re.sub(r"(shop\.(?:re|se)\w+\(.*\))", r"asyncio.run(\1)", text)
    text = text.replace("import redis\n", "from redis import asyncio as redis\n")
    text = text.replace("psycopg.connect", "await psycopg.AsyncConnection.connect")
    text = text.replace("with connect()", "with await connect()")
    text = re.sub(r"\b(def|with) ", r"async \1 ", text)
    text = re.sub(r"\b(db\.execute\(.*\))(?=\.fetchone)", r"(await \1)", text)
    text = text.replace("= (await", "= await (await")
    return re.sub(r"(?<!await )\b(db\.execute|keys\.[gs]et)\(", r"await \1(", text)


def suggested(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """`lost-update-lab suggest` there, with servers of its own."""
    own = (
        "DATABASE_URL",
        "REDIS_URL",
        "PYTEST_XDIST_WORKER",
        "DJANGO_SETTINGS_MODULE",
        "INITDB_TEMPLATE",
        "PYTEST_ADDOPTS",
    )
    clean = {name: value for name, value in os.environ.items() if name not in own}
    command = [sys.executable, "-m", "lost_update_lab.command.main", "suggest", *options]
    return subprocess.run(
        command,
        cwd=project,
        env={**clean, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.deep
@pytest.mark.parametrize("database", ["postgres", "asyncio", "mariadb", "aiomysql"])
def test_a_test_suite_becomes_scenarios_of_what_is_broken(project: Path, database: str) -> None:
    if database in ("mariadb", "aiomysql") and (reason := mariadb.available()):
        pytest.skip(reason)
    if database == "aiomysql":
        pytest.importorskip("aiomysql")
    through = {"asyncio": on_asyncio, "mariadb": on_mariadb, "aiomysql": on_aiomysql}.get(database, str)
    for each in project.iterdir():
        each.write_text(through(each.read_text()))
    done = suggested(project, "--confirm", "--json")
    assert done.returncode == 1, done.stderr
    rows = json.loads(done.stdout)["pairs"]
    assert {row["pair"]: row["verdict"] for row in rows} == {
        "redeem + redeem": "violated",
        "sell + sell": "violated",
        "redeem + refund": "violated",
        "refund + refund": "kept",
    }
    assert rows[0]["why"].startswith("voucher: redeem reads it without a lock, and then writes it (shop.py:1")
    source = (project / "test_races.py").read_text()
    assert source.count("\ndef test_") == 3
    assert "race.worker('redeem 2', lambda: shop.redeem(code='XMAS', customer=1))" in source


PLACED = """
import shop

class Order:
    voucher = None

    def place(self):
        if self.voucher:
            shop.redeem(self.voucher, customer=1)
        else:
            shop.refund("XMAS")
"""
ARRANGED = """
import orders
import shop

def test_place():
    with shop.connect() as db:
        db.execute("DROP TABLE IF EXISTS voucher")
        db.execute("CREATE TABLE voucher (code text PRIMARY KEY, uses int)")
        db.execute("INSERT INTO voucher VALUES ('XMAS', 1)")
    orders.Order.voucher = "XMAS"
    orders.Order().place()
"""


@pytest.mark.deep
def test_a_scenario_that_has_lost_what_the_test_arranged(project: Path) -> None:
    """The order without its voucher was kept, and that was told of the one with it."""
    refund = SHOP.replace(
        "UPDATE voucher SET uses = uses + 1 WHERE code = %s", "DELETE FROM voucher WHERE code = %s"
    )
    (project / "shop.py").write_text(refund)
    (project / "orders.py").write_text(PLACED)
    (project / "test_shop.py").write_text(ARRANGED)
    done = suggested(project, "--confirm", "--json")
    (row,) = json.loads(done.stdout)["pairs"]
    assert (row["verdict"], done.returncode) == ("inconclusive", 3), done.stderr
    assert "no UPDATE voucher, DELETE voucher besides. What that test had arranged" in row["sentence"]


APART = """
import shop

def test_two_vouchers():
    with shop.connect() as db:
        db.execute("DROP TABLE IF EXISTS voucher")
        db.execute("CREATE TABLE voucher (code text PRIMARY KEY, uses int)")
        db.execute("INSERT INTO voucher VALUES ('XMAS', 1), ('EASTER', 1)")
    assert shop.redeem("XMAS", customer=1)
    shop.refund("EASTER")
"""


@pytest.mark.deep
def test_pairs_that_the_tests_called_for_other_rows_are_named_and_left_out(project: Path) -> None:
    (project / "test_shop.py").write_text(APART)
    done = suggested(project)
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert told.startswith(
        "2 pairs of operations touch the same rows or keys, one of them writing: 1. redeem + redeem"
    )
    assert "1 more touch the same table, and your tests called them for other rows" in told
    assert "redeem + refund (voucher)" in told
    assert (project / "test_races.py").read_text().count("\ndef test_") == 2


@pytest.mark.deep
def test_all_pairs_are_named_where_that_is_asked_for(project: Path) -> None:
    (project / "test_shop.py").write_text(APART)
    done = suggested(project, "--all", "--output", "test_all.py")
    assert "3. redeem + refund voucher, other rows:" in " ".join(done.stdout.split())
    assert (project / "test_all.py").read_text().count("\ndef test_") == 3


ORDERS = """
import os
import psycopg

def connect():
    return psycopg.connect(os.environ["DATABASE_URL"])

def pay(number):
    with connect() as db:
        (paid,) = db.execute("SELECT paid FROM invoice WHERE id = %s", [number]).fetchone()
        db.execute("UPDATE invoice SET paid = %s WHERE id = %s", [paid + 1, number])
"""
NUMBERS = """
import orders

def test_pay():
    with orders.connect() as db:
        db.execute("DROP TABLE IF EXISTS line, invoice")
        db.execute("CREATE TABLE invoice (id serial PRIMARY KEY, paid int)")
        db.execute("CREATE TABLE line (invoice int REFERENCES invoice)")
    with orders.connect() as db:
        db.execute("SELECT nextval('invoice_id_seq')")  # another test has drawn it, and was rolled back
        (number,) = db.execute('INSERT INTO invoice (paid) VALUES (0) RETURNING "invoice"."id"').fetchone()
        db.execute("INSERT INTO line VALUES (%s)", [number])
    orders.pay(number)
"""


@pytest.mark.deep
def test_numbers_of_sequences_are_those_of_the_recorded_test(project: Path) -> None:
    """The setup names them: the rows of other tables refer to them, and so do the operations' arguments."""
    for name in ("shop.py", "test_shop.py"):
        (project / name).unlink()
    (project / "orders.py").write_text(ORDERS)
    (project / "test_orders.py").write_text(NUMBERS)
    done = suggested(project, "--confirm", "--json")
    assert done.returncode == 1, done.stderr
    assert [row["verdict"] for row in json.loads(done.stdout)["pairs"]] == ["violated"]


OF_A_MODULE = """
import pytest
import shop

@pytest.fixture(scope="module", autouse=True)
def vouchers():
    with shop.connect() as db:
        db.execute("CREATE TABLE voucher (code text PRIMARY KEY, uses int)")
        db.execute("INSERT INTO voucher VALUES ('XMAS', 1)")
    yield
    with shop.connect() as db:
        db.execute("DROP TABLE voucher")

class TestRefund:
    @classmethod
    def setup_class(cls):
        with shop.connect() as db:
            db.execute("INSERT INTO voucher VALUES ('EASTER', 1)")

    def test_that_comes_first(self):
        pass

    def test_refund(self):
        shop.refund("EASTER")

def test_redeem():
    shop.redeem("XMAS", customer=1)
"""
CREATES = "('CREATE TABLE voucher (code text PRIMARY KEY, uses int)', None)"
XMAS, EASTER = (f"(\"INSERT INTO voucher VALUES ('{code}', 1)\", None)" for code in ("XMAS", "EASTER"))


def setups(project: Path) -> dict[str, list[str]]:
    """By the test that was written: the lines of its setup."""
    parts = (project / "test_races.py").read_text().split("\ndef test_")[1:]
    lines = {
        each.partition("(")[0]: [line.strip().rstrip(",") for line in each.splitlines()] for each in parts
    }
    return {name: [line for line in each if line.startswith("(")] for name, each in lines.items()}


@pytest.mark.deep
def test_what_wider_fixtures_send_belongs_to_each_of_their_tests(project: Path) -> None:
    """It belonged to the first test. The others' scenarios had no rows: they were mistakes, or, of an UPDATE that hit
    no row, kept."""
    (project / "test_shop.py").write_text(OF_A_MODULE)
    done = suggested(project, "--all")
    assert done.returncode == 0, done.stderr
    assert setups(project) == {
        "redeem_beside_itself": [CREATES, XMAS],
        "refund_beside_redeem": [CREATES, XMAS, EASTER],
        "refund_beside_itself": [CREATES, XMAS, EASTER],
    }


OF_THE_SESSION = """
import pytest
import shop

@pytest.fixture(scope="session", autouse=True)
def vouchers():
    with shop.connect() as db:
        db.execute("CREATE TABLE voucher (code text PRIMARY KEY, uses int)")
        db.execute("INSERT INTO voucher VALUES ('XMAS', 1)")
"""


@pytest.mark.deep
def test_a_fixture_that_the_written_tests_have_too(project: Path) -> None:
    """Its rows were there already when their setup put them there: a mistake."""
    (project / "conftest.py").write_text(OF_THE_SESSION)
    (project / "test_shop.py").write_text("import shop\n\ndef test_redeem():\n    shop.redeem('XMAS', 1)\n")
    done = suggested(project, "--confirm", "--json")
    assert [row["verdict"] for row in json.loads(done.stdout)["pairs"]] == ["violated"], done.stderr


OF_DJANGO = """
import os
from psycopg.conninfo import conninfo_to_dict

INSTALLED_APPS = ["stock"]
of = conninfo_to_dict(os.environ["DATABASE_URL"])
names = {name.upper(): name for name in ("user", "password", "host", "port")} | {"NAME": "dbname"}
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql"} | {n: of.get(k, "") for n, k in names.items()}}
"""
STOCK = """
from django.db import models

class Item(models.Model):
    name = models.CharField(max_length=9)
    left = models.IntegerField(default=5)

def sell(number):
    item = Item.objects.get(pk=number)
    item.left -= 1
    item.save()
"""
CASES = """
from django.test import TestCase
from stock import models

class TestSell(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.item = models.Item.objects.create(name="apple")

    def test_that_comes_first(self):
        assert self.item.left == 5

    def test_that_sells(self):
        models.sell(self.item.pk)
"""


@pytest.mark.deep
def test_what_a_class_of_djangos_sets_up_belongs_to_each_of_its_tests(project: Path) -> None:
    """A suite of nothing but such classes was not even taken for one of Django's: its scenarios had no tables."""
    (project / "test_shop.py").write_text(CASES)
    (project / "settings.py").write_text(OF_DJANGO)
    (project / "stock").mkdir()
    (project / "stock" / "models.py").write_text(STOCK)
    (project / "pytest.ini").write_text(
        f"{SETTINGS} --nomigrations\nDJANGO_SETTINGS_MODULE = settings\npythonpath = ."
    )
    done = suggested(project, "--confirm", "--json")
    assert done.returncode == 1, done.stderr
    assert [row["verdict"] for row in json.loads(done.stdout)["pairs"]] == ["violated"]
    assert "@pytest.mark.django_db(transaction=True)" in (project / "test_races.py").read_text()


HITS_NO_ROW = """
import shop

def test_refund():
    with shop.connect() as db:
        db.execute("CREATE TABLE IF NOT EXISTS voucher (code text PRIMARY KEY, uses int)")
    shop.refund("XMAS")
"""


@pytest.mark.deep
def test_a_pair_that_changes_nothing_is_undecided(project: Path) -> None:
    """It was kept, whatever it does to a row that is there: pytest alone told that there was nothing to lose."""
    (project / "test_shop.py").write_text(HITS_NO_ROW)
    done = suggested(project, "--confirm", "--json")
    (row,) = json.loads(done.stdout)["pairs"]
    assert (row["verdict"], done.returncode) == ("inconclusive", 3), done.stderr
    assert row["sentence"].startswith("neither of the two changed a row or a key")


ASKS_FIRST = """
import os
import shop

def refund(code):
    os.environ["REFUNDS"]
    shop.refund(code)
"""
REFUNDS = """
import desk
import shop

def test_refund(monkeypatch):
    monkeypatch.setenv("REFUNDS", "yes")
    with shop.connect() as db:
        db.execute("DROP TABLE IF EXISTS voucher")
        db.execute("CREATE TABLE voucher (code text PRIMARY KEY, uses int)")
        db.execute("INSERT INTO voucher VALUES ('XMAS', 1)")
    desk.refund("XMAS")
"""


@pytest.mark.deep
def test_pairs_that_could_not_be_explored_are_no_green_result(project: Path) -> None:
    """What a test arranges beside its commands is not recorded."""
    (project / "desk.py").write_text(ASKS_FIRST)
    (project / "test_shop.py").write_text(REFUNDS)
    done = suggested(project, "--confirm")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "1 of 1 could not be decided, which proves nothing" in done.stdout
    assert "No scenario was written" in done.stdout


def test_nothing_is_overwritten(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suggest", "--output", str(project / "shop.py")]) == 2
    assert "exists already, and is not overwritten" in capsys.readouterr().err
    assert (project / "shop.py").read_text() == SHOP
