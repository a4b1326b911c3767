"""All tests. Hypothesis sets no deadlines here: a busy machine is no failure."""

from hypothesis import settings

settings.register_profile("quotewright", deadline=None)
settings.load_profile("quotewright")
