"""A schedule, told: sentences, lanes, pictures."""
