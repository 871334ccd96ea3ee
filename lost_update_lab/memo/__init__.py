"""What the workers are known to do, so that they need not run again."""
