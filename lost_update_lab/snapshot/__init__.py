"""The servers as they are after a setup, and the cheap way back to that state."""
