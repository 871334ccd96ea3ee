"""Violated: an order is aborted in the middle of its checkout, because two carts lock the same products in two orders.

Each checkout locks its products one by one, as they lie in the cart. Ann has lamp and chair, Bob chair and lamp. Each
holds one row and waits for the other's. The database kills one of them, after a second in which both stood still, and
with them everybody who wanted these products.

    Ann                                  Bob
    lock the lamp
                                         lock the chair
    lock the chair: waits
                                         lock the lamp: waits for Ann, who waits for Bob

Mended: one order for everybody, `order_by("pk")`, in one query.
"""

from __future__ import annotations

from django.db import models, transaction

from lost_update_lab import worker
from lost_update_lab.invariants import succeeded
from museum.case import VIOLATED, Case, Form


class Article(models.Model):
    name = models.CharField(max_length=20)
    stock = models.IntegerField(default=9)


def two_articles():
    Article.objects.create(name="lamp")
    Article.objects.create(name="chair")


def check_out(*cart):
    with transaction.atomic():
        for name in cart:
            article = Article.objects.select_for_update().get(name=name)
            article.stock -= 1
            article.save()


def check_out_in_order(*cart):
    with transaction.atomic():
        for article in Article.objects.select_for_update().filter(name__in=cart).order_by("pk"):
            article.stock -= 1
            article.save()


def carts(operation):
    return [worker("Ann", operation, "lamp", "chair"), worker("Bob", operation, "chair", "lamp")]


def both_are_served(ann, bob):
    return succeeded(ann) and succeeded(bob) and {each.stock for each in Article.objects.all()} == {7}


CASE = Case(
    source="zulip/zulip#19054",
    setup=two_articles,
    invariant=(both_are_served, "a checkout was aborted: deadlock"),
    broken=[Form(name="as they lie in the cart", workers=carts(check_out), verdict=VIOLATED)],
    mended=[Form(name="order_by('pk')", workers=carts(check_out_in_order))],
    cure="one order",
)
