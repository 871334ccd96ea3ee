"""Violated: two accounts have one e-mail address, because a validation reads and does not lock.

Two sign-ups with the same address validate at the same moment, as every form does before it saves. Both are told that
the address is free. Password reset, invoices and refunds then reach whichever row comes first.

    Ann                                  Bob
    is the address taken? no
                                         is the address taken? no
    save
                                         save: the address has two owners

A slug that is made unique by a loop (`post`, `post-2`, …) is the same bug: the loop looks, and looks in vain.

Mended: a unique constraint decides. The second caller gets an IntegrityError, and sees the form's own message; the loop
for a slug takes the next one.
"""

from __future__ import annotations

from django.db import IntegrityError, models, transaction

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form


class Customer(models.Model):
    email = models.CharField(max_length=40)
    name = models.CharField(max_length=20)


class UniqueCustomer(models.Model):
    email = models.CharField(max_length=40, unique=True)
    name = models.CharField(max_length=20)


class Post(models.Model):
    slug = models.CharField(max_length=40)
    author = models.CharField(max_length=20)


class UniquePost(models.Model):
    slug = models.CharField(max_length=40, unique=True)
    author = models.CharField(max_length=20)


def a_post():
    Post.objects.create(slug="sale", author="Eve")
    UniquePost.objects.create(slug="sale", author="Eve")


def sign_up(name):
    if Customer.objects.filter(email="shop@example.org").exists():
        return "taken"
    Customer.objects.create(email="shop@example.org", name=name)
    return "welcome"


def publish(name):
    slug, number = "sale", 1
    while Post.objects.filter(slug=slug).exists():
        number += 1
        slug = f"sale-{number}"
    Post.objects.create(slug=slug, author=name)


def sign_up_constrained(name):
    try:
        UniqueCustomer.objects.create(email="shop@example.org", name=name)
    except IntegrityError:
        return "taken"
    return "welcome"


def publish_constrained(name):
    for number in range(2, 10):
        try:
            with transaction.atomic():
                return UniquePost.objects.create(slug=f"sale-{number}", author=name).slug
        except IntegrityError:
            continue
    raise RuntimeError("no slug is free")


def two(operation):
    return [worker("Ann", operation, "Ann"), worker("Bob", operation, "Bob")]


def slugs():
    return list(Post.objects.values_list("slug", flat=True))


CASE = Case(
    source="Pouzor/homelable#442",
    setup=a_post,
    invariant=[
        (lambda: Customer.objects.count() <= 1, "an e-mail address has two owners"),
        (lambda: len(slugs()) == len(set(slugs())), "two posts have one slug"),
    ],
    broken=[
        Form(name="validate, then save", workers=two(sign_up), verdict=VIOLATED),
        Form(name="a loop that looks for a free slug", workers=two(publish), verdict=VIOLATED),
    ],
    mended=[
        Form(name="a constraint", workers=two(sign_up_constrained), faults={"crashes": 1}),
        Form(
            name="a constraint, and the next slug",
            workers=two(publish_constrained),
            mends="a loop that looks for a free slug",
            faults={"crashes": 1},
        ),
    ],
    cure="constraint",
)
