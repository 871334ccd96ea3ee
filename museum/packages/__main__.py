"""`python -m museum.packages`: each package in an environment of its own, and its section of docs/museum.md anew.

`--package NAME --version VERSION` tries another version of one package, and writes nothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from museum import data
from museum.packages import environment, page, registry
from museum.packages.package import Package


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    modules = {
        name: each for name, each in registry.load().items() if not given.package or name in given.package
    }
    if not modules:
        parser().error(f"there is no such package: {', '.join(registry.load())}")
    if given.version and len(modules) != 1:
        parser().error("--version is that of one package: name it by --package")
    with ThreadPoolExecutor(2) as two:
        running = [two.submit(tried, name, module, given.version) for name, module in modules.items()]
        for each in track(running, "packages", console=Console(stderr=True), transient=True):
            each.exception()  # waits; an error is reported below, once the bar is gone
    try:
        results = [each.result() for each in running]
    except (RuntimeError, subprocess.CalledProcessError) as failed:
        print(failed, file=sys.stderr)
        return 1
    Console().print(table(results))
    if not given.package:
        data.write_packages(results)
        page.write(results)
    return 0


def tried(name: str, module: Any, other: str = "") -> dict[str, Any]:
    """`other`: a version to try in place of the pinned one."""
    package: Package = module.PACKAGE
    pins = list(package.pins)
    if other:
        pins[0] = f"{pins[0].partition('==')[0]}=={other}"
    python = environment.made(name, pins, bool(package.apps))
    return {
        "package": name,
        "pins": pins,
        "text": (module.__doc__ or "").strip(),
        "file": f"{module.__name__.replace('.', '/')}.py",
        "others": package.others,
        "trials": environment.run(name, python),
    }


def table(results: Sequence[dict[str, Any]]) -> Table:
    made = Table("package", "trial", "verdict", "faults needed", "schedules")
    for result in results:
        for each in result["trials"]:
            needed = ", ".join(each.get("faults", ())) if each.get("moves") else ""
            made.add_row(
                result["pins"][0], each["trial"], each["verdict"], needed, str(each.get("schedules", ""))
            )
    return made


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m museum.packages", description=__doc__)
    made.add_argument("--package", action="append", default=[], metavar="NAME", help="only this one")
    made.add_argument("--version", default="", help="with --package: this version in place of the pinned one")
    return made


if __name__ == "__main__":
    sys.exit(main())
