"""Measurements. Each contender has a process of its own, and the contenders take turns, so ratios are meaningful.

One folder for each part: `locks/`, `strategies/`, `explorer/`. `manage.py bench` is a thin command on top.
"""
