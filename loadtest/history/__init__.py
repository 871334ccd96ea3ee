"""What the clients saw: each call, journalled as it happens."""
