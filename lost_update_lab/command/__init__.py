"""The command `lost-update-lab`."""
