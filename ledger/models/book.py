"""A book: a set of accounts that one strategy keeps on one store."""

from __future__ import annotations

import uuid

from django.db import models


class Book(models.Model):
    """The strategy is bound to the book on the server, so no client can mix strategies in one trial."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=200, blank=True)
    strategy = models.CharField(max_length=200, help_text="slug of a strategy, or module:callable of a lock")
    store = models.CharField(max_length=20, default="postgres")
    settings = models.JSONField(default=dict, blank=True, help_text="think time, lease, poll … in seconds")
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created"]

    def __str__(self) -> str:
        return f"{self.name or self.strategy} ({self.store})"
