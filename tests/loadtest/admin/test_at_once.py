"""How many comparisons one user may have under way, whatever they are of."""

from __future__ import annotations

import pytest

from ledger.models import Book
from loadtest.models import Trial
from tests.ledger.test_admin import upload, user
from tests.loadtest.background.test_swarms import FORM, URL

pytestmark = pytest.mark.usefixtures("committed_db")
COMPARE = "/admin/loadtest/trial/compare/"


def test_one_more_comparison_than_allowed_is_refused_until_one_has_ended(settings):
    settings.TRIALS_AT_ONCE = 2
    client, mine = user("loadtest.add_trial"), Trial.objects.order_by("-pk")
    assert client.post(URL, FORM).status_code == 302
    assert client.post(COMPARE, upload()).status_code == 302
    first, second = mine[:2]
    before = Trial.objects.count(), Book.objects.count()
    for address, form in ((URL, FORM), (COMPARE, upload())):
        answer = client.post(address, form)
        assert answer.status_code == 200
        assert "2 of your comparisons have not ended" in answer.content.decode()
    assert (Trial.objects.count(), Book.objects.count()) == before
    assert user("loadtest.add_trial").post(URL, FORM).status_code == 302  # each user has their own
    Trial.objects.filter(pk=first.pk).update(ended=first.started)
    assert client.post(URL, FORM).status_code == 302
    Trial.objects.filter(pk__gte=second.pk).delete()
