"""A module that raises while it is loaded."""

raise ValueError("cannot be served")
