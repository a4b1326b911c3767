"""What is chosen and fetched before anything runs: settings, profiles, models."""
