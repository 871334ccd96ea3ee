"""The state of one schedule, and the rules that change it."""
