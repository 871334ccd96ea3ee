"""Violated: one payment is credited twice, because the webhook comes twice, or meets the job that polls.

A provider tells of a payment at least once, which may be twice at once. And because a webhook can get lost, a job asks
for open payments every minute. All of them read `pending`, and all of them act.

    webhook                              polling job
    get → pending
                                         get → pending
    paid; credit 50
                                         paid; credit 50

Mended: the step from `pending` to `paid` is one conditional UPDATE. Only the caller that changed the row acts.
"""

from __future__ import annotations

from django.db import models, transaction
from django.db.models import F

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form
from museum.outside import mailer


class Wallet(models.Model):
    credit = models.IntegerField(default=0)


class Topup(models.Model):
    wallet = models.ForeignKey(Wallet, models.CASCADE)
    amount = models.IntegerField()
    state = models.CharField(max_length=20, default="pending")


def one_pending():
    Topup.objects.create(wallet=Wallet.objects.create(), amount=50)


def settle():
    topup = Topup.objects.get(pk=1)
    if topup.state == "pending":
        with transaction.atomic():
            topup.state = "paid"
            topup.save()
            Wallet.objects.filter(pk=topup.wallet_id).update(credit=F("credit") + topup.amount)


def poll():
    for topup in Topup.objects.filter(state="pending"):
        with transaction.atomic():
            topup.state = "paid"
            topup.save()
            Wallet.objects.filter(pk=topup.wallet_id).update(credit=F("credit") + topup.amount)
        mailer.send("Ann", "your wallet is topped up")


def settle_once():
    with transaction.atomic():
        if Topup.objects.filter(pk=1, state="pending").update(state="paid"):
            topup = Topup.objects.get(pk=1)
            Wallet.objects.filter(pk=topup.wallet_id).update(credit=F("credit") + topup.amount)


def poll_once():
    for pk in Topup.objects.filter(state="pending").values_list("pk", flat=True):
        with transaction.atomic():
            topup = Topup.objects.select_for_update().get(pk=pk)
            if topup.state != "pending":
                continue
            topup.state = "paid"
            topup.save()
            Wallet.objects.filter(pk=topup.wallet_id).update(credit=F("credit") + topup.amount)
        mailer.send("Ann", "your wallet is topped up")


CASE = Case(
    source="pretix/pretix#1189; Pinelab-studio/pinelab-vendure-plugins#620",
    setup=one_pending,
    invariant=(lambda: Wallet.objects.get().credit <= 50, "one payment was credited twice"),
    broken=[
        Form(
            name="delivered twice",
            workers=[worker("webhook", settle), worker("webhook again", settle)],
            verdict=VIOLATED,
        ),
        Form(
            name="webhook against polling job",
            workers=[worker("webhook", settle), worker("polling job", poll)],
            verdict=VIOLATED,
        ),
    ],
    mended=[
        Form(
            name="conditional UPDATE",
            workers=[worker("webhook", settle_once), worker("webhook again", settle_once)],
            faults={"crashes": 1},
        ),
        Form(
            name="both take the step once",
            workers=[worker("webhook", settle_once), worker("polling job", poll_once)],
            mends="webhook against polling job",
            faults={"crashes": 1},
        ),
    ],
    cure="conditional UPDATE",
)
