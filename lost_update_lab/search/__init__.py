"""Which schedules are tried, and in which order."""
