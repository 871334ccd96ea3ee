"""A schedule by its id: replayed, shrunk, annotated."""
