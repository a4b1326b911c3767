"""People's documents: indexed, listed, deleted, uploaded, shown in their places."""
