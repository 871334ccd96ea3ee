"""Measurements: each contender in a process of its own, all of them in turns, so that ratios mean something.

`locks/__init__.py` measures the locks; its parts are the `locks_*.py`. None of this needs Django: `manage.py bench` is
a thin command on top.
"""
