"""From a question to an answer: passages found, words written, spans traced."""
