"""Violated: a counter drifts from what it counts, because each writer counts before the other has committed.

The number of reviews stands beside the product, so that no page has to count. Each new review counts them anew
and saves the number. Two reviews at once each count themselves only.

    Ann                                  Bob
    insert a review
                                         insert a review
    count → 1
                                         count → 1
    save 1, commit
                                         save 1, commit: two reviews

In the second form the job that approves a review runs twice, and each run adds one: the counter runs ahead.

Mended: `F() + 1` in the transaction of the insert, and only by the caller that really changed something.
"""

from __future__ import annotations

from django.db import models, transaction
from django.db.models import F

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form


class Item(models.Model):
    reviews = models.IntegerField(default=0)


class Review(models.Model):
    item = models.ForeignKey(Item, models.CASCADE)
    author = models.CharField(max_length=20)
    approved = models.BooleanField(default=True)


def one_item():
    item = Item.objects.create()
    Review.objects.create(item=item, author="Eve", approved=False)


def review(author):
    with transaction.atomic():
        item = Item.objects.get(pk=1)
        Review.objects.create(item=item, author=author)
        item.reviews = Review.objects.filter(item=item, approved=True).count()
        item.save()


def approve():
    with transaction.atomic():
        review = Review.objects.get(author="Eve")
        if not review.approved:
            review.approved = True
            review.save()
            Item.objects.filter(pk=1).update(reviews=F("reviews") + 1)


def review_in_place(author):
    with transaction.atomic():
        Review.objects.create(item_id=1, author=author)
        Item.objects.filter(pk=1).update(reviews=F("reviews") + 1)


def approve_once():
    with transaction.atomic():
        if Review.objects.filter(author="Eve", approved=False).update(approved=True):
            Item.objects.filter(pk=1).update(reviews=F("reviews") + 1)


def authors(operation):
    return [worker("Ann", operation, "Ann"), worker("Bob", operation, "Bob")]


def runs(operation):
    return [worker("first run", operation), worker("second run", operation)]


def counted():
    return Item.objects.get().reviews == Review.objects.filter(approved=True).count()


CASE = Case(
    source="magnusvk/counter_culture#238",
    setup=one_item,
    invariant=(counted, "the counter is not the number of reviews"),
    broken=[
        Form(name="count, then save", workers=authors(review), verdict=VIOLATED),
        Form(name="approved twice", workers=runs(approve), verdict=VIOLATED),
    ],
    mended=[
        Form(name="F() with the insert", workers=authors(review_in_place), faults={"crashes": 1}),
        Form(
            name="by whoever changed it",
            workers=runs(approve_once),
            mends="approved twice",
            faults={"crashes": 1},
        ),
    ],
    cure="conditional UPDATE",
)
