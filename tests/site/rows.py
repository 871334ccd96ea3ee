"""Every address of the site: who may get it and post to it, and the answer."""

from __future__ import annotations

from collections.abc import Iterator

from django.urls import URLPattern, URLResolver

#: who may, and the answer: a permission, or one of these
May = tuple[str, int]
EVERYBODY, STAFF, BEARER, NOBODY = "everybody", "staff", "bearer", "nobody"
NO, NO_METHOD, HIDDEN = (NOBODY, 403), (EVERYBODY, 405), (STAFF, 404)
CHANGED_BY_PEOPLE = ("auth.user", "auth.group")
READ_ONLY = (
    *("ledger.book", "ledger.account", "ledger.entry", "ledger.importrun", "ledger.importline"),
    "ledger.lockrecord",
    *("loadtest.trial", "loadtest.result", "procrastinate.procrastinatejob"),
)


def model_rows(label: str) -> Iterator[tuple[str, May, May]]:
    """The admin's six addresses of a model: (address, GET, POST)."""
    app, model = label.split(".")
    base, one, view = f"admin/{app}/{model}/", "<path:object_id>/", f"{app}.view_{model}"
    people = label in CHANGED_BY_PEOPLE

    def only(verb: str, status: int = 200) -> May:
        return (f"{app}.{verb}_{model}", status) if people else NO

    yield base, (view, 200), (view, 200)
    yield f"{base}add/", only("add"), only("add")
    yield f"{base}{one}history/", (view, 200), (view, 200)
    yield f"{base}{one}delete/", only("delete"), only("delete")
    yield f"{base}{one}change/", (view, 200), only("change")
    yield f"{base}{one}", (STAFF, 302), (STAFF, 302)  # to …/change/, which asks


ROWS: dict[str, tuple[May, May]] = {
    **{
        address: (get, sent)
        for label in (*READ_ONLY, *CHANGED_BY_PEOPLE)
        for address, get, sent in model_rows(label)
    },
    # what is started, and what is only shown
    "admin/ledger/importrun/add/": (("ledger.add_importrun", 200),) * 2,
    "admin/ledger/importrun/<int:run_id>/progress/": (("ledger.view_importrun", 200),) * 2,
    "admin/ledger/importrun/<int:run_id>/failed/<int:batch_id>.csv": (("ledger.view_importrun", 200),) * 2,
    "admin/ledger/importrun/<int:run_id>/retry/": (
        NO_METHOD,
        ("ledger.view_importrun ledger.add_importrun", 302),
    ),
    "admin/ledger/importrun/<int:run_id>/stop/": (
        NO_METHOD,
        ("ledger.view_importrun ledger.add_importrun", 302),
    ),
    "admin/ledger/importrun/<path:object_id>/change/": (("ledger.view_importrun", 200),) * 2,
    "admin/ledger/book/<path:object_id>/change/": (("ledger.view_book", 200),) * 2,
    "admin/ledger/book/<uuid:book_id>/accounts/<path:number>/losses/": (("ledger.view_book", 200),) * 2,
    "admin/loadtest/trial/strategies/": ((STAFF, 200),) * 2,
    "admin/loadtest/trial/strategies/<slug:slug>/": ((STAFF, 200),) * 2,
    "admin/loadtest/trial/museum/": ((STAFF, 200),) * 2,
    "admin/loadtest/trial/museum/<slug:slug>/": ((STAFF, 200),) * 2,
    "admin/loadtest/trial/swarm/": (("loadtest.add_trial", 200),) * 2,
    "admin/loadtest/trial/explore/": (("loadtest.add_trial", 200),) * 2,
    "admin/loadtest/trial/faults/": (("loadtest.add_trial", 200),) * 2,
    "admin/loadtest/trial/trust/": (("loadtest.add_trial", 200),) * 2,
    "admin/loadtest/trial/<int:trial_id>/results.<str:kind>": (("loadtest.view_trial", 200),) * 2,
    "admin/loadtest/trial/compared/<int:first>/<int:second>/": (("loadtest.view_trial", 200),) * 2,
    "admin/loadtest/trial/compared/<int:first>/<int:second>.<str:kind>": (("loadtest.view_trial", 200),) * 2,
    "admin/loadtest/result/compared/<int:first>/<int:second>/": (("loadtest.view_result", 200),) * 2,
    "admin/loadtest/result/compared/<int:first>/<int:second>.<str:kind>": (("loadtest.view_result", 200),)
    * 2,
    "admin/loadtest/trial/compare/": (("loadtest.add_trial", 200),) * 2,
    "admin/loadtest/trial/compare/<int:run_id>/": (
        NO_METHOD,
        ("loadtest.add_trial ledger.view_importrun", 302),
    ),
    "admin/loadtest/trial/<int:trial_id>/stop/": (NO_METHOD, ("loadtest.view_trial loadtest.add_trial", 302)),
    "admin/loadtest/trial/<int:trial_id>/results/": (("loadtest.view_trial", 200),) * 2,
    "admin/loadtest/trial/<path:object_id>/change/": (("loadtest.view_trial", 200),) * 2,
    "admin/auth/user/add/": (("auth.add_user auth.change_user", 200),) * 2,  # so Django has it
    "admin/auth/user/<id>/password/": (("auth.change_user", 200),) * 2,
    # the admin's own
    "admin/": ((STAFF, 200),) * 2,
    "admin/search/": ((STAFF, 200),) * 2,
    "admin/login/": ((EVERYBODY, 200), (EVERYBODY, 200)),
    "admin/logout/": (NO_METHOD, (EVERYBODY, 200)),
    "admin/password_change/": ((STAFF, 200),) * 2,
    "admin/password_change/done/": ((STAFF, 200), (STAFF, 405)),
    "admin/autocomplete/": (NO, (STAFF, 405)),  # none of our fields asks it
    "admin/jsi18n/": ((STAFF, 200), (STAFF, 405)),
    "admin/r/<path:content_type_id>/<path:object_id>/": (HIDDEN, HIDDEN),
    "admin/^(?P<app_label>ledger|auth|procrastinate|loadtest)/$": (("ledger.view_book", 200),) * 2,
    "admin/(?P<url>.*)$": (HIDDEN, HIDDEN),
    # for anybody, without a login
    "": ((EVERYBODY, 200), NO_METHOD),
    "experiments/": (NO_METHOD, (EVERYBODY, 400)),  # of no strategy: nothing is started
    "experiments/<int:pk>/": ((EVERYBODY, 200), NO_METHOD),
    "strategies/<slug:slug>/": ((EVERYBODY, 200), NO_METHOD),
    "play": ((EVERYBODY, 200), NO_METHOD),
    "play/<slug:name>.json": ((EVERYBODY, 200), NO_METHOD),
    "docs/": ((EVERYBODY, 200), NO_METHOD),
    "docs/images/<path:name>": ((EVERYBODY, 200), NO_METHOD),
    "docs/<path:name>": ((EVERYBODY, 200), NO_METHOD),
    # the API knows its token, and no session
    "api/": ((EVERYBODY, 404),) * 2,
    "api/openapi.json": ((EVERYBODY, 200),) * 2,
    "api/strategies": ((BEARER, 200), NO_METHOD),
    "api/books": (NO_METHOD, (BEARER, 415)),
    "api/books/<uuidstr:book_id>": ((BEARER, 200), NO_METHOD),
    "api/books/<uuidstr:book_id>/accounts/<number>": ((BEARER, 200), NO_METHOD),
    "api/books/<uuidstr:book_id>/postings": (NO_METHOD, (BEARER, 415)),
    "api/books/<uuidstr:book_id>/accounts/<number>/reconcile": ((BEARER, 200), NO_METHOD),
    "api/books/<uuidstr:book_id>/reconcile": ((BEARER, 200), NO_METHOD),
    "metrics": ((EVERYBODY, 200), NO_METHOD),  # everybody on this machine: tests/ledger/test_metrics.py
    "health/live": ((EVERYBODY, 200), NO_METHOD),
    "health/ready": ((EVERYBODY, 200), NO_METHOD),
}


def routes(resolver: URLResolver, prefix: str = "") -> Iterator[str]:
    for each in resolver.url_patterns:
        if isinstance(each, URLPattern):
            yield prefix + str(each.pattern)
        else:
            yield from routes(each, prefix + str(each.pattern))
