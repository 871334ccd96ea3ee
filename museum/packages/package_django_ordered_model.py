"""Two requests append an item to a list that keeps its order, by `objects.create()`."""

from __future__ import annotations

from lost_update_lab import worker
from lost_update_lab.invariants import unique
from museum.packages.package import Package, PackageTrial


def trials():
    from django.db import connection
    from ordered_model.models import OrderedModel

    class Entry(OrderedModel):
        class Meta(OrderedModel.Meta):
            app_label = "ordered_model"

    def opened():
        with connection.schema_editor() as editor:
            editor.create_model(Entry)
        Entry.objects.create()
        Entry.objects.create()

    def create():
        Entry.objects.create()

    def up():
        Entry.objects.get(pk=2).up()

    place = unique("ordered_model_entry", "order")
    return [
        PackageTrial(
            name="create, twice",
            workers=[worker("Ann", create), worker("Bob", create)],
            setup=opened,
            invariant=place,
        ),
        PackageTrial(
            name="up() and create",
            workers=[worker("Ann", up), worker("Bob", create)],
            setup=opened,
            invariant=place,
        ),
    ]


PACKAGE = Package(
    pins=["django-ordered-model==3.7.4"],
    trials=trials,
    apps=["ordered_model"],
    others="3.8.0a0, the newest pre-release, breaks in both trials too, and so does 3.4.3",
)
