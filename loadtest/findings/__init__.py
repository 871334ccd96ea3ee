"""What is asked of the explorer (a job), and what it found: as plain values, judged, and told in sentences."""
