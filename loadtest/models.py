"""Trials that were run, and their results, for the admin's pages. The JSON files hold the same."""

from __future__ import annotations

from django.db import models

from ledger.models import Book

#: command → what a trial of it is called on the screen
NAMES = {
    "import": "Comparison of imports",
    "swarm": "Load test",
    "compare": "Load test",
    "explore": "Exploration",
    "faults": "Fault injection",
    "trust": "Question of trust",
    "experiment": "Experiment",
}


class Trial(models.Model):
    """What the results of one command have in common; each `Result` is one subject of it."""

    command = models.CharField(max_length=20, help_text="compare, faults, explore, import, swarm")
    workload = models.CharField(max_length=40)
    store = models.CharField(max_length=20)
    adversary = models.CharField(max_length=40, default="none")
    options = models.JSONField(default=dict, blank=True, help_text="as they were asked for")
    environment = models.JSONField(default=dict, blank=True)
    started = models.DateTimeField(auto_now_add=True)
    stopped = models.DateTimeField(
        null=True, blank=True, help_text="somebody asked for it in the admin: no further strategy is begun"
    )
    ended = models.DateTimeField(null=True, blank=True, help_text="empty: it runs, or was cut short")

    class Meta:
        ordering = ["-started"]

    def __str__(self) -> str:
        return f"{NAMES.get(self.command, self.command)} {self.pk}"


class Result(models.Model):
    """One subject, judged. `data` is its object in the JSON file, whole."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="results")
    strategy = models.CharField(max_length=200)
    verdict = models.CharField(max_length=20)
    book = models.ForeignKey(Book, null=True, on_delete=models.SET_NULL, related_name="+")
    data = models.JSONField(default=dict)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.strategy}: {self.verdict}"
