"""What the settings are made of: databases, secrets, looks, checks."""
