"""From a prompt to tokens: draft trees, drafters, verification, target models and the decode loop."""
