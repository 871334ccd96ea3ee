"""The processes that post while a hazard strikes."""
