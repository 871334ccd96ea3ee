"""The admin's comparison: the same files imported under each strategy, on fresh accounts, as a trial each."""
