"""Measurements. Each contender has a process of its own, and they take turns, so that ratios mean something.

One folder for each part: `locks/`, `strategies/`, `explorer/`. `manage.py bench` is a thin command on top.
"""
