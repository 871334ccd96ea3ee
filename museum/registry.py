"""All cases, found by their files: cases/case_*.py holds `CASE`."""

from __future__ import annotations

import pkgutil
import re
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from museum import cases
from museum.case import Case

NAME = re.compile(r"case_(\d\d)_(\w+)")


@dataclass(frozen=True)
class Exhibit:
    """A case with what its file says of it. `slug`: `01-voucher`."""

    slug: str
    module: ModuleType
    case: Case

    @property
    def text(self) -> str:
        """The docstring: the verdict first."""
        return (self.module.__doc__ or "").strip()


def modules() -> dict[str, str]:
    """slug → module, in the order of their numbers. Nothing is imported."""
    found = {}
    for name in sorted(each.name for each in pkgutil.iter_modules(cases.__path__)):
        matched = NAME.fullmatch(name)
        if matched is None:
            raise ValueError(
                f"museum/cases/{name}.py is not a case: name it case_NN_name, as in case_01_voucher"
            )
        found[f"{matched[1]}-{matched[2].replace('_', '-')}"] = f"{cases.__name__}.{name}"
    return found


def load() -> dict[str, Exhibit]:
    """slug → exhibit. Django must be set up, or be importing its models."""
    found = {}
    for slug, name in modules().items():
        module = import_module(name)
        found[slug] = Exhibit(slug, module, module.CASE)
    return found
