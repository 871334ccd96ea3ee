"""One self-contained page out of whatever evidence there is: no request leaves it."""
