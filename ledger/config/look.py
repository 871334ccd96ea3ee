"""The look of the admin (django-unfold): names, navigation, style sheets. The colours are in admin.css."""

from __future__ import annotations

from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy


def _item(title: str, icon: str, url: str, permission: str = "") -> dict[str, Any]:
    """Return an entry of the navigation, for users with the `permission`, or for all."""
    link = reverse_lazy(f"admin:{url}")
    return {
        "title": title,
        "icon": icon,
        "link": link,
        "permission": lambda request: not permission or request.user.has_perm(permission),
        "active": lambda request: _page(request.path) == _page(str(link)),
    }


def _page(path: str) -> str:
    """Return the entry that a page belongs to: a page that starts something is one itself, any other belongs to its
    list."""
    if path.endswith(("/add/", "/compare/", "/swarm/", "/explore/", "/faults/", "/trust/")):
        return path
    return "/".join(path.split("/")[: 5 if "/strategies/" in path or "/museum/" in path else 4])


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Lost Update Lab",
    "SITE_HEADER": "Lost Update Lab",
    "SITE_SUBHEADER": "Locks on trial, with money",
    "SITE_SYMBOL": "lock_open_right",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("ledger/favicon.svg")}
    ],
    "SITE_URL": "/",
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "STYLES": [lambda request: static("ledger/admin.css")],
    "SCRIPTS": [lambda request: static("ledger/admin.js")],
    "DASHBOARD_CALLBACK": "loadtest.admin.start.start",
    "SIDEBAR": {
        "show_search": False,
        "navigation": [
            {
                "items": [
                    _item("Start", "home", "index"),
                    _item("Strategies", "lock", "loadtest_strategies"),
                    _item("The museum", "museum", "loadtest_museum"),
                ]
            },
            {
                "title": "Batch imports",
                "separator": True,
                "items": [
                    _item("New import", "upload_file", "ledger_importrun_add", "ledger.add_importrun"),
                    _item("Imports", "list_alt", "ledger_importrun_changelist", "ledger.view_importrun"),
                    _item("Lines", "data_table", "ledger_importline_changelist", "ledger.view_importline"),
                ],
            },
            {
                "title": "Trials",
                "separator": True,
                "items": [
                    _item(
                        "Compare strategies", "compare_arrows", "loadtest_trial_compare", "loadtest.add_trial"
                    ),
                    _item("Run a load test", "hive", "loadtest_trial_swarm", "loadtest.add_trial"),
                    _item(
                        "Explore every order", "account_tree", "loadtest_trial_explore", "loadtest.add_trial"
                    ),
                    _item("Inject faults", "bolt", "loadtest_trial_faults", "loadtest.add_trial"),
                    _item("Can I trust it?", "verified_user", "loadtest_trial_trust", "loadtest.add_trial"),
                    _item("Trials", "science", "loadtest_trial_changelist", "loadtest.view_trial"),
                    _item("Results", "gavel", "loadtest_result_changelist", "loadtest.view_result"),
                ],
            },
            {
                "title": "Ledger",
                "separator": True,
                "items": [
                    _item("Books", "menu_book", "ledger_book_changelist", "ledger.view_book"),
                    _item("Accounts", "account_balance", "ledger_account_changelist", "ledger.view_account"),
                    _item("Entries", "receipt_long", "ledger_entry_changelist", "ledger.view_entry"),
                    _item("Lock records", "key", "ledger_lockrecord_changelist", "ledger.view_lockrecord"),
                ],
            },
            {
                "title": "Administration",
                "separator": True,
                "items": [
                    _item("Users", "person", "auth_user_changelist", "auth.view_user"),
                    _item("Groups", "group", "auth_group_changelist", "auth.view_group"),
                    _item(
                        "Background jobs",
                        "schedule",
                        "procrastinate_procrastinatejob_changelist",
                        "procrastinate.view_procrastinatejob",
                    ),
                ],
            },
        ],
    },
}
