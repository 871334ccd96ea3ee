"""A schedule by its id: played again, made smaller, annotated."""
