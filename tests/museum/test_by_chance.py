"""The barrier's count is honest: it counts what breaks in every order each time, and what is mended never."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

from museum import by_chance, registry


def counted(slug: str, tries: int) -> dict[str, tuple[int, int]]:
    exhibit = registry.load()[slug]
    forms = [*exhibit.case.broken, *exhibit.case.mended]
    return {name: (each.found, each.tries) for name, each in by_chance.tried(exhibit, forms, tries).items()}


def test_what_needs_no_luck_is_found_each_time(a_lane: ProcessPoolExecutor) -> None:
    found = a_lane.submit(counted, "07-f-saved-twice", 4).result()
    assert found == {"F() and two saves": (4, 4), "update()": (0, 1), "update_fields": (0, 1)}


def test_without_a_form_nothing_is_counted() -> None:
    assert by_chance.tried(None, []) == {}  # type: ignore[arg-type]
