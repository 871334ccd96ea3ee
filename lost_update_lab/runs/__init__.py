"""One schedule, executed or computed from known steps."""
