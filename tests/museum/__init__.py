"""The museum: every case comes to what it says."""
