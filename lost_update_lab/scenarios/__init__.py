"""Any operations on trial: a scenario, what it must keep, and what the explorer found."""
