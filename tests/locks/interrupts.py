"""Ctrl-C at any step of a lock's own file."""

import dis
import sys
from contextlib import contextmanager


def returns(frame):
    """Is that the next step? Python looks for Ctrl-C after a call and in a loop, not just there."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("RETURN")


@contextmanager
def interrupted_at(step, files):
    """Ctrl-C before the step of that number in one of these files."""
    steps = 0

    def look(frame, event, _):
        nonlocal steps
        if frame.f_code.co_filename not in files:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and not returns(frame):
            steps += 1
            if steps == step:
                raise KeyboardInterrupt
        return look

    usual = sys.gettrace()
    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(usual)


def interrupted(step, action, *modules):
    """Was there such a step of these modules?"""
    try:
        with interrupted_at(step, [each.__file__ for each in modules]):
            action()
    except KeyboardInterrupt:
        return True
    return False
