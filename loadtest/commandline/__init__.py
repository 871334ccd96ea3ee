"""What the commands share: arguments, durations, how they end."""
