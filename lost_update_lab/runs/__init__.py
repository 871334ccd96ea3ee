"""One schedule, executed or composed of known steps."""
