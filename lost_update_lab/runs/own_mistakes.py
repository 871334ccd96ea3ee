"""A mistake of the explorer's own code, raised in the middle of a worker's command.

The operation's code would take it for the server's answer, and go on: a verdict about something that never happened.
"""

from __future__ import annotations

from lost_update_lab.model.errors import Broken

#: what a programming mistake raises; what a database, or its client, answers, is none of these
_KINDS = (AssertionError, AttributeError, LookupError, NameError, RuntimeError, TypeError, ValueError)
_OURS = f"{__name__.partition('.')[0]}."


def ends_the_search(error: BaseException) -> bool:
    """Is it no answer, but something that the explorer has to say: a reason, or a mistake of its own?"""
    return isinstance(error, Broken) or _is_ours(error)


def _is_ours(error: BaseException) -> bool:
    """Was it raised by a line of the explorer, and not by a client library, or by the operation?"""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    raised_in = str(trace.tb_frame.f_globals.get("__name__", "")) if trace else ""
    return isinstance(error, _KINDS) and raised_in.startswith(_OURS)
