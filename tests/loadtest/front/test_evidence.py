"""The matrix of the front page says what the committed runs say; the filters and the four questions go by it."""

from __future__ import annotations

from itertools import product

import pytest
from django.test import Client

from ledger.strategies import STRATEGIES
from loadtest.front import advice, evidence, load_tests
from loadtest.front.evidence import FaultDone, Field
from loadtest.front.filters import Filters
from loadtest.verdict.words import Word
from locks.hazards import Hazard


def test_every_strategy_has_a_row_and_every_hazard_a_field() -> None:
    rows = evidence.rows()
    assert rows.keys() == STRATEGIES.keys()
    assert next(iter(rows)) == "no-lock"
    assert all(list(row.fields) == list(Hazard) for row in rows.values())


@pytest.mark.parametrize(
    ("slug", "hazard", "word"),
    [
        ("no-lock", Hazard.CONTENTION, Word.LOST),
        ("no-lock", Hazard.CRASH, Word.LOST),  # what loses without a fault loses with one
        ("token", Hazard.CONTENTION, Word.KEPT),
        ("token", Hazard.PAUSE, Word.LOST),
        ("setnx", Hazard.CRASH, Word.STALLED),
        ("fenced", Hazard.PAUSE, Word.KEPT),
        ("select-for-update", Hazard.FAILOVER, Word.NOT_RUN),
        ("single-writer", Hazard.CONTENTION, Word.KEPT),  # by load tests: out of the explorer's reach
        ("repeatable-read-innodb", Hazard.CONTENTION, Word.LOST),
    ],
)
def test_a_field_has_the_gravest_word(slug: str, hazard: Hazard, word: Word | None) -> None:
    assert evidence.rows()[slug].fields[hazard].word == word


def test_every_field_about_contention_has_a_word_and_names_the_load_test_behind_it() -> None:
    fields = {slug: row.fields[Hazard.CONTENTION] for slug, row in evidence.rows().items()}
    assert [slug for slug, field in fields.items() if field.word is None] == []
    assert not [slug for slug, field in fields.items() if field.loaded and field.explored]
    page = Client(headers={"host": "localhost"}).get("/strategies/single-writer/").content.decode()
    assert 'Load test: <b>kept</b> (<a href="/docs/choosing.md#results">' in page


def test_a_verdict_of_load_tests_is_the_first_word_of_its_row() -> None:
    page = """# A page
| `lost` | `token` |
## Results
| verdict | strategies |
|---|---|
| `lost` | `no-lock`, `nothing-of-ours` |
| `kept` with deposits, `oversold` with stock | `single-writer` |
| `nonsense` | `fenced` |
## More
| `lost` | `fenced` |
"""
    assert load_tests.read(page) == {"no-lock": Word.LOST, "single-writer": Word.KEPT}
    assert load_tests.read("# Nothing") == {}


def test_of_several_words_the_gravest_that_decides_counts() -> None:
    def of(explored: str, *done: str) -> Word | None:
        return Field(Hazard.PAUSE, False, explored, [FaultDone("pause", word) for word in done]).word

    assert of("kept", "lost") == Word.LOST
    assert of("kept", "inconclusive", "not-run") == Word.KEPT
    assert of("", "inconclusive", "not-run") == Word.INCONCLUSIVE
    assert of("") is None


def test_no_field_contradicts_a_claim_and_one_that_did_would_say_so() -> None:
    fields = [field for row in evidence.rows().values() for field in row.fields.values()]
    assert not [field for field in fields if field.contradicts]
    assert Field(Hazard.PAUSE, True, "lost", ()).contradicts


def test_every_schedule_has_sentences() -> None:
    schedules = [f.schedule for row in evidence.rows().values() for f in row.fields.values() if f.schedule]
    assert len(schedules) > 100
    assert all(each["told"] and each["id"] for each in schedules)


def test_a_lost_field_leads_to_a_schedule_or_to_a_command_that_shows_it() -> None:
    client = Client(headers={"host": "localhost"})
    fields = evidence.rows()["no-lock"].fields
    page = client.get("/strategies/no-lock/").content.decode()
    without = [field for field in fields.values() if field.word is Word.LOST and not field.schedule]
    assert len(without) > 3
    assert page.count("needs no fault: lost in") == len(without)
    assert client.get("/strategies/fenced/").content.decode().count("needs no fault") == 0
    assert fields[Hazard.CLOCK_JUMP].again == "clock-jump-client"  # the first variants could not touch it
    assert f"--hazard {fields[Hazard.CLOCK_JUMP].again}" in page
    assert fields[Hazard.EVICTION].again == ""


def test_the_filters_choose_and_what_is_no_choice_chooses_nothing() -> None:
    rows = evidence.rows().values()
    chosen = {r.slug for r in Filters.of({"f_withstands": "crash-pause"}).chosen(rows)}
    assert {"fenced", "select-for-update"} <= chosen
    assert not {"token", "setnx", "no-lock"} & chosen
    on_maria = Filters.of({"f_store": "mariadb", "f_text": "innodb"}).chosen(rows)
    assert {row.slug for row in on_maria} == {"repeatable-read-innodb", "repeatable-read-innodb-snapshot"}
    assert len(Filters.of({"f_kind": "<x>", "f_store": "y", "f_withstands": "z"}).chosen(rows)) == len(rows)


def test_every_answer_leads_to_a_recommendation_that_the_evidence_bears_or_to_none() -> None:
    answers = [list(each.answers) for each in advice.QUESTIONS]
    for given in product(*answers):
        found = advice.advised(dict(zip((q.name for q in advice.QUESTIONS), given, strict=True)))
        assert found is not None
        for row in [found.row, *found.others] if found.row else ():
            assert given[1] in row.stores
            assert all(row.fields[h].word in (Word.KEPT, Word.NOT_RUN) for h in found.hazards)
        assert found.row or found.passed


def test_advice_for_pauses_says_why_a_lease_alone_is_passed_over() -> None:
    found = advice.advised({"work": "outside", "store": "postgres", "callers": "few", "survive": "pause"})
    assert found is not None
    assert found.row is not None
    assert found.row.slug == "fenced"
    assert {each.row.slug: each.why for each in found.passed}["token"] == "lost under pause"


def test_an_answer_that_is_missing_or_none_of_the_offered_recommends_nothing() -> None:
    assert advice.advised({}) is None
    assert advice.advised({"work": "?", "store": "postgres", "callers": "few", "survive": "pause"}) is None


@pytest.mark.parametrize(
    ("slug", "told"),
    [
        ("token", "1 to take the lock, 1 to release it"),
        ("watchdog", "1 to take the lock, 2 to release it, and 1 each 300 ms"),
        ("redis-then-database", "1 to take the lock, 5 to post, 1 to release it"),
        ("select-for-update", "5, in one transaction"),
        ("redis-gate", "1 + atomic-update's"),
    ],
)
def test_round_trips_say_what_each_is_for(slug: str, told: str) -> None:
    assert evidence.rows()[slug].round_trips == told
