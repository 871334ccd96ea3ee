"""Which operations of a test suite to put on trial: recorded, paired, written down."""
