"""The museum: every case has the verdict that it states."""
