"""What the admin has started: commands that run in a background worker, one after the other."""
