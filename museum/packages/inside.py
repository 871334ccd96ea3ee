"""`python -m museum.packages.inside NAME`, in the package's own environment: its trials, as JSON."""

from __future__ import annotations

import json
import os
import sys
import warnings
from importlib.metadata import version
from typing import Any

from museum.packages import registry
from museum.packages.package import Package, PackageTrial

DATABASE, REDIS = "DATABASE_URL", "REDIS_URL"
BUDGET = 60.0


def main() -> int:
    package: Package = registry.load()[sys.argv[1]].PACKAGE
    try:
        from lost_update_lab.scenarios.explore import explore  # noqa: F401  (can it be imported at all?)
        from lost_update_lab.under_test.servers import embedded
    except (ImportError, AttributeError) as error:
        told = (
            f"beside redis-py {version('redis')}, which it asks for, the explorer cannot be imported: {error}"
        )
        print(
            json.dumps(
                [{"trial": each.name, "verdict": "not decided", "cause": told} for each in package.trials()]
            )
        )
        return 0
    for name in (DATABASE, REDIS):
        os.environ[name] = embedded(name)
    if package.apps:
        project(package)
    print(json.dumps([tried(each, bool(package.apps)) for each in package.trials()], default=str))
    return 0


def project(package: Package) -> None:
    """A Django project with this package, its tables made by its own migrations."""
    import django
    from django.conf import settings
    from django.core.management import call_command
    from psycopg.conninfo import conninfo_to_dict

    parts = conninfo_to_dict(os.environ[DATABASE])
    database = {"ENGINE": "django.db.backends.postgresql", "NAME": parts["dbname"], "USER": parts["user"]}
    settings.configure(
        INSTALLED_APPS=[*package.apps],
        DATABASES={"default": {**database, "HOST": parts["host"]}},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        USE_TZ=True,
        **package.settings(),
    )
    django.setup()
    call_command("migrate", verbosity=0)


def tried(trial: PackageTrial, django: bool) -> dict[str, Any]:
    from lost_update_lab import explore
    from lost_update_lab.under_test.scenario import Mistake

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = explore(
                trial.workers,
                setup=trial.setup,
                invariant=trial.invariant,
                name=trial.name,
                budget=BUDGET,
                django=django,
                disposable=True,
                **dict[str, Any](trial.faults),
            )
    except (Mistake, RuntimeError) as cannot:
        return {"trial": trial.name, "verdict": "not decided", "cause": str(cannot)}
    steps = result.schedule.moves if result.schedule else ()
    return {
        "trial": trial.name,
        "verdict": result.verdict if result.verdict != "inconclusive" else "not decided",
        "cause": result.cause,
        "sentence": result.sentence,
        "bounds": result.bounds,
        "faults": list(result.schedule.faults) if result.schedule else [],
        "schedules": result.schedules,
        "moves": [
            {name: getattr(each, name) for name in ("who", "kind", "command", "reply", "changes")}
            for each in steps
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
