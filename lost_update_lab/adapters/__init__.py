"""What the gates need of client libraries beyond their documented interfaces: one file a library."""
