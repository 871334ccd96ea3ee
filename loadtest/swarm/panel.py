"""Extends Locust's web page: a tab with the lost amount, a live chart of it, and a guard in front of /swarm.

/swarm accepts anything, from any page that is open in the browser, even while a test runs. It would then change the
options under the running users without a new start. So the guard answers 403 to another site's page (which could have
the API's token sent to its own host), 409 during a test, and 400 to values that no field of the page offers.
"""

from __future__ import annotations

import csv
import io
import json
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from flask import Response, make_response, request
from locust.argument_parser import ui_extra_args_dict
from locust.runners import STATE_CLEANUP, STATE_INIT, STATE_STOPPED, STATE_STOPPING

from loadtest.swarm.conductor import Conductor
from loadtest.swarm.options import settings_of, workload_of

KEY = "lost-amount"
#: the fields of Locust's own form
FIELDS = {"user_count", "spawn_rate", "host", "run_time", "profile", "user_classes", "shape_class"}


def extend(environment: Any, conductor: Conductor) -> None:
    """Add the tab, its CSV file and the guard to `environment.web_ui`."""
    web_ui = environment.web_ui
    columns = [{"key": "name", "title": "Books"}, {"key": "value", "title": ""}]
    web_ui.template_args.update(
        extended_tabs=[{"title": "Lost amount", "key": KEY}],
        extended_tables=[{"key": KEY, "structure": columns}],
        extended_csv_files=[
            {"href": f"/{KEY}/live", "title": "Money lost, as a live chart"},
            {"href": f"/{KEY}/csv", "title": "Download the lost amount"},
        ],
    )
    web_ui.app.before_request(lambda: guard(environment))

    @web_ui.app.after_request
    def with_lost_amount(response: Response) -> Response:
        if request.path == "/stats/requests" and response.is_json:
            rows = [{"name": name, "value": str(value)} for name, value in conductor.rows()]
            response.set_data(
                json.dumps({**(response.json or {}), "extended_stats": [{"key": KEY, "data": rows}]})
            )
        return response

    @web_ui.app.route(f"/{KEY}")
    @web_ui.auth_required_if_enabled
    def lost_amount() -> Any:
        return {"books": conductor.books, "clients": dict(conductor.totals), "looked": conductor.looked}

    @web_ui.app.route(f"/{KEY}/live")
    @web_ui.auth_required_if_enabled
    def lost_amount_live() -> str:
        return conductor.live.page()

    @web_ui.app.route(f"/{KEY}/csv")
    @web_ui.auth_required_if_enabled
    def lost_amount_csv() -> Response:
        text = io.StringIO()
        csv.writer(text).writerows(conductor.rows())
        response = make_response(text.getvalue())
        response.headers["Content-Type"] = "text/csv"
        response.headers["Content-Disposition"] = f"attachment;filename={KEY}.csv"
        return response


def guard(environment: Any) -> Any:
    """Refuse a /swarm that would spoil the running test, or that asks for something unknown."""
    if request.path.rstrip("/") != "/swarm" or request.method != "POST":
        return None
    if urlsplit(request.headers.get("Origin", "")).netloc != request.host:
        return _no(
            403,
            "another site's page cannot start a test: send the header Origin with this page's own address",
        )
    state = environment.runner.state
    if state in (STATE_STOPPING, STATE_CLEANUP):
        return _no(409, "the last test is still stopping: try again in a moment")
    if state not in (STATE_INIT, STATE_STOPPED):
        return _no(409, "a test is running: stop it first, because a second one would change its options")
    offered = ui_extra_args_dict()
    if hidden := request.form.keys() & vars(environment.parsed_options).keys() - FIELDS - offered.keys():
        return _no(400, f"not a field of this page: {', '.join(sorted(hidden))}")
    for name, field in offered.items():
        wrong = field.get("choices") and name in request.form and request.form[name] not in field["choices"]
        if wrong:
            return _no(400, f"no {name} {request.form[name]!r}. Known: {', '.join(field['choices'])}")
    return _check_values(environment)


def _check_values(environment: Any) -> Any:
    asked = vars(environment.parsed_options) | request.form.to_dict()
    try:
        settings_of(SimpleNamespace(**asked))
        if not 1 <= int(asked["accounts"]) <= 10_000:
            raise ValueError("accounts: 1 to 10000")
        if int(asked["iterations"]) < 0:
            raise ValueError("iterations: 0 or more")
        workload_of(SimpleNamespace(**asked))
    except ValueError as error:
        return _no(400, str(error))
    return None


def _no(status: int, message: str) -> Response:
    return make_response({"success": False, "message": message}, status)
