"""What is put on trial: a scenario, its operations as the engine runs them, their outcome, their servers."""
