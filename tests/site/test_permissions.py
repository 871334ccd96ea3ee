"""Who may do what, on every address of the site. An address that rows.py does not know fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.urls import get_resolver, path

from tests.site.rows import BEARER, EVERYBODY, NOBODY, ROWS, STAFF, routes
from tests.site.visitor import Visitor

pytestmark = pytest.mark.usefixtures("committed_db", "quiet")
TOKEN = "t0ken"


def test_every_address_has_a_row() -> None:
    assert sorted(routes(get_resolver())) == sorted(ROWS)


def test_an_address_without_a_row_is_seen() -> None:
    class Urls:
        urlpatterns = [path("admin/new/", lambda request: None)]

    assert set(routes(get_resolver(Urls))) - set(ROWS) == {"admin/new/"}


@pytest.mark.parametrize("column", [0, 1], ids=["get", "post"])
def test_the_rights_of_each_role(column: int, rows_of: dict[str, object], settings) -> None:
    settings.API_TOKEN = TOKEN
    visitor = Visitor(rows_of)
    wrong = [
        f"{route} as {role}: {found}, not {wanted}"
        for route, may in ROWS.items()
        for role, found, wanted in answers(visitor, ("get", "post")[column], route, *may[column])
        if found not in wanted
    ]
    assert not wrong, "\n".join(wrong)
    assert not visitor.breaches, "\n".join(visitor.breaches)
    assert column or visitor.pages > 40


def answers(
    visitor: Visitor, method: str, route: str, who: str, status: int
) -> Iterator[tuple[str, int, set[int]]]:
    """Yield (role, status, what it may be) for each role."""

    def status_of(role: User | None, **headers: str) -> int:
        return visitor.ask(method, route, role, **headers).status_code

    roles = {"anonymous": None, "plain": visitor.plain, "staff": visitor.staff, "root": visitor.root}
    if who == BEARER:
        yield "bearer", status_of(None, Authorization=f"Bearer {TOKEN}"), {status}
        yield "wrong bearer", status_of(None, Authorization="Bearer wrong"), {401}
        yield from ((name, status_of(role), {401}) for name, role in roles.items())
        return
    if who == EVERYBODY:
        admitted = {status, 302} if route.startswith("admin/") else {status}  # to or from the login
        yield from ((name, status_of(role), admitted) for name, role in roles.items())
        return
    yield from ((name, status_of(roles[name]), {302}) for name in ("anonymous", "plain"))
    if method == "get" or ".view_" not in who:  # else it is the same page once more
        yield "root", status_of(visitor.root), {status}
    yield "staff", status_of(visitor.staff), {status} if who in (STAFF, NOBODY) else {403, 404}
    if "." in who:
        yield who, status_of(visitor.holder(who)), {status}
        for one in who.split() if " " in who else ():
            yield one, status_of(visitor.holder(one)), {403}


def test_every_post_needs_the_csrf_token(rows_of: dict[str, object]) -> None:
    """Except the API, which no cookie opens."""
    visitor = Visitor(rows_of, csrf=True)
    for route, (_, (who, status)) in ROWS.items():
        if route.startswith("admin/") and who != NOBODY and status != 404:
            answer = visitor.ask("post", route, visitor.root)
            assert answer.status_code == 403, route
            assert b"CSRF" in answer.content, route
