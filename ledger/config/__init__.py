"""The parts of the settings: databases, the secret key, the look of the admin, checks."""
