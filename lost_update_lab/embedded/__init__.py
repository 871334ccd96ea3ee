"""Real servers as child processes, which end with their parent."""
