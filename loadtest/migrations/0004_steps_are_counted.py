"""Requests of the admin count their finished steps; until now they listed them, or counted their results."""

from __future__ import annotations

from typing import Any

from django.db import migrations
from django.utils import timezone

REQUESTED = ("explore", "faults", "trust", "swarm", "import")


def count_steps(apps: Any, editor: Any) -> None:
    trials = apps.get_model("loadtest", "Trial").objects.using(editor.connection.alias)
    for trial in trials.filter(command__in=REQUESTED, options__has_key="started_by"):
        done = trial.options.get("done")
        trial.options["done"] = len(done) if isinstance(done, list) else trial.results.count()
        trial.options["at"] = None
        trial.ended = trial.ended or timezone.now()  # where it stood, the new workers do not know
        trial.save(update_fields=["options", "ended"])


class Migration(migrations.Migration):
    dependencies = [("loadtest", "0003_stopped_comparisons")]
    operations = [migrations.RunPython(count_steps, migrations.RunPython.noop)]
