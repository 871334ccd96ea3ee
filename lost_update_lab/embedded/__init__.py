"""Real servers as child processes. None outlives its parent."""
