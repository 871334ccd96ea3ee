"""What the workers are known to do, so that their code need not run again."""
