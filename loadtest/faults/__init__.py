"""Hazards, really inflicted on real processes and servers."""
