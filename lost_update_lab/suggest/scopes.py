"""What a fixture with a wider scope sends (a class's, a module's, a session's; Django's `setUpTestData`): it belongs to
the setup of every test that runs between its setup and its teardown, and not only to the first of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from lost_update_lab.suggest.recording import CommandRecorder

#: what makes Django's test database belongs to no test
MAKES_THE_DATABASE = "django_db_setup"
#: pytest's own fixture for `setUpClass`, `setup_class` or `setup_module`
_OF_A_METHOD = re.compile(r"_(?:unittest|xunit)_(\w+?)_fixture_")


@dataclass
class Scopes:
    recorder: CommandRecorder
    #: how many fixtures of this name have been set up: one with parameters is, for each of them
    _count: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def recorded(self, fixture: Any, node: Any) -> Iterator[None]:
        """`fixture`: pytest's definition of one that is being set up. `node`: what it is set up for."""
        if fixture.scope == "function":
            yield
            return
        name = "" if fixture.argname == MAKES_THE_DATABASE else self._name(fixture.argname, node.nodeid)
        teardown, under = ExitStack(), self.recorder.under
        fixture.addfinalizer(teardown.close)  # the finalizer that is added first is called last
        if name:
            under.append(name)
            teardown.callback(under.remove, name)
        with self._belong_to(name):
            yield
        fixture.addfinalizer(lambda: teardown.enter_context(self._belong_to(name)))

    def _name(self, fixture: str, node: str) -> str:
        method = _OF_A_METHOD.match(fixture)
        name = f"{method[1] if method else f'the fixture {fixture}'} of {node or 'the session'}"
        self._count[name] += 1
        return name if self._count[name] == 1 else f"{name} ({self._count[name]})"

    @contextmanager
    def _belong_to(self, name: str) -> Iterator[None]:
        """The commands that are sent meanwhile."""
        before = self.recorder.test
        self.recorder.begin(name, self.recorder.django)
        try:
            yield
        finally:
            self.recorder.begin(before, self.recorder.django)
