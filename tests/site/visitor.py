"""A client that visits every address in every role, and looks at the pages that it is shown."""

from __future__ import annotations

import re
import uuid

from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.test import Client

from ledger.models import Book
from loadtest.report.museum import cases
from tests.site.page_rules import breaches


def address(route: str, rows_of: dict[str, object]) -> str:
    """A route with its blanks filled in."""
    found = re.match(r"admin/\w+/(\w+)/", route)
    route = re.sub(r"\(\?P<app_label>[^)]*\)", "ledger", route).replace("(?P<url>.*)", "nothing/")
    route = route.replace("<str:kind>", "json").replace("<int:batch_id>", str(rows_of["batch"]))
    route = route.replace("museum/<slug:slug>", f"museum/{next(iter(cases()))}")
    route = route.replace("images/<path:name>", "images/scale.svg")
    route = re.sub(r"play/<slug:\w+>", "play/token", route).replace("<slug:slug>", "watchdog")
    route = route.replace("<int:run_id>", str(rows_of["importrun"]))
    route = route.replace("<int:pk>", str(rows_of["experiment"])).replace("<path:name>", "choosing.md")
    if found and found[1] in rows_of:
        route = re.sub(r"<(path:object_id|id|int:\w+|uuid:book_id)>", str(rows_of[found[1]]), route)
    here = f"{ContentType.objects.get_for_model(Book).pk}/{rows_of['book']}/"
    route = route.replace("<path:content_type_id>/<path:object_id>/", here)
    route = re.sub(r"<((str|path):)?number>", "A1", route.replace("<uuidstr:book_id>", str(rows_of["book"])))
    return "/" + route.replace("^", "").replace("$", "")


def user(*permissions: str, **kind: bool) -> User:
    made = User.objects.create_user(f"u-{uuid.uuid4()}", **kind)
    for each in permissions:
        app, codename = each.split(".")
        made.user_permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))
    return made


class Visitor:
    """A client in one role after another. (A new client for each would load the middleware each time.)"""

    def __init__(self, rows_of: dict[str, object], *, csrf: bool = False) -> None:
        self.client = Client(headers={"host": "localhost"}, enforce_csrf_checks=csrf)
        self.rows_of = rows_of
        self.pages, self.breaches = 0, list[str]()
        self.sessions: dict[User | None, str] = {}
        self.holders: dict[str, User] = {}
        self.plain, self.staff = user(), user(is_staff=True)
        self.root = User.objects.create_superuser(f"r-{uuid.uuid4()}")

    def ask(self, method: str, route: str, who: User | None, **headers: str):
        if who not in self.sessions:
            self.client.cookies.clear()
            if who:
                self.client.force_login(who)
            self.sessions[who] = self.client.cookies.output(header="", sep=";")
        self.client.cookies.clear()
        self.client.cookies.load(self.sessions[who])
        answer = getattr(self.client, method)(address(route, self.rows_of), headers=headers)
        if route == "admin/logout/":
            del self.sessions[who]
        if method == "get" and who == self.root and answer["Content-Type"].startswith("text/html"):
            self.pages += 1
            policy = answer["Content-Security-Policy"]
            self.breaches += [f"{route}: {each}" for each in breaches(policy, answer.content.decode())]
        return answer

    def holder(self, permissions: str) -> User:
        """Staff with exactly these permissions."""
        if permissions not in self.holders:
            self.holders[permissions] = user(*permissions.split(), is_staff=True)
        return self.holders[permissions]
