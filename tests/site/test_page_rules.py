"""The must-fail controls of page_rules.py."""

import pytest
from django.conf import settings

from tests.site.page_rules import breaches

GOOD = "; ".join(
    f"{name} {' '.join(values)}" for name, values in settings.CONTENT_SECURITY_POLICY["DIRECTIVES"].items()
)


def test_a_good_page_is_good() -> None:
    assert not breaches(
        GOOD, '<link href="/static/a.css"><script src="/static/a.js"></script><a href="/admin/">a</a>'
    )


@pytest.mark.parametrize(
    "page",
    [
        "<script>1</script>",
        "<style>a {}</style>",
        '<p style="color: red">',
        '<a onclick="f()">',
        '<script src="https://cdn.example/x.js"></script>',
        '<img src="//elsewhere.example/x.png">',
        '<a href="javascript:f()">',
        '<form action="http://elsewhere.example/">',
    ],
)
def test_inline_code_and_other_hosts_are_seen(page: str) -> None:
    assert breaches(GOOD, page)


@pytest.mark.parametrize(
    "policy",
    [
        "",
        GOOD.replace("script-src 'self'", "script-src 'self' 'unsafe-inline'"),
        GOOD.replace("script-src 'self'", "script-src *"),
        GOOD.replace("style-src 'self'", "style-src 'self' https://fonts.example"),
    ],
)
def test_a_hole_in_the_policy_is_seen(policy: str) -> None:
    assert breaches(policy, "<p>")
