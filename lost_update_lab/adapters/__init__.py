"""What the gates use of client libraries beyond their documented interfaces: one file for each library."""
