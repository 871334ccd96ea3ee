"""The tests of the library."""

#: s for one exploration: no test is about how quick the machine is, and pytest's own time-out is 300 s
BUDGET = 240.0
