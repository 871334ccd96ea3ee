"""What a library logs about an injected fault is not shown: it would come hundreds of times. All else is."""

from __future__ import annotations

import logging

from lost_update_lab.gates.patch import Patches
from lost_update_lab.runs.place import anywhere
from lost_update_lab.telling.lines import is_own

_handle = logging.Logger.handle


def handle(logger: logging.Logger, record: logging.LogRecord) -> None:
    place = anywhere()
    if not (place and place.task.worker.struck and not is_own(record.pathname)):
        _handle(logger, record)


def install(patches: Patches) -> None:
    patches.method(logging.Logger, "handle", handle)
