"""Where a worker stops: before each command, sleep, wait and look at a clock."""
