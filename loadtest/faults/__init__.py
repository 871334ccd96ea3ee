"""Hazards, really done to real processes and servers."""
