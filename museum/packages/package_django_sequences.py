"""Two invoices get their number by `get_next_value("invoices")`, inside of the transaction that writes them."""

from __future__ import annotations

from lost_update_lab import worker
from museum.packages.package import Package, PackageTrial


def trials():
    from django.db import connection, models, transaction
    from sequences import get_next_value

    class Invoice(models.Model):
        number = models.IntegerField()

        class Meta:
            app_label = "sequences"

    def opened():
        with connection.schema_editor() as editor:
            editor.create_model(Invoice)
        get_next_value("others")

    def bill():
        with transaction.atomic():
            Invoice.objects.create(number=get_next_value("invoices"))

    def right():
        numbers = sorted(Invoice.objects.values_list("number", flat=True))
        return numbers == list(range(1, len(numbers) + 1))

    workers = [worker("Ann", bill), worker("Bob", bill)]
    law = right, "an invoice number is there twice, or is missing"
    return [
        PackageTrial(name="get_next_value", workers=workers, setup=opened, invariant=law),
        PackageTrial(
            name="get_next_value, a crash",
            workers=workers,
            setup=opened,
            invariant=law,
            faults={"crashes": 1},
        ),
    ]


PACKAGE = Package(pins=["django-sequences==3.1"], trials=trials, apps=["sequences.apps.SequencesConfig"])
