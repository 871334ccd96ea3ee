"""Puts code that guards money on trial: every order of its commands, with faults, on real servers."""
