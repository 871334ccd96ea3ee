"""The words of the engine: workers, commands, transitions, servers, bounds."""
