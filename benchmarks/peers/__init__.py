"""Other people's engines beside ours: the same prompts' tokens, the same model, in turn on the same machine.

command.py       the command line: python -m benchmarks peers
environments.py  where each foreign engine is installed, and how
methods.py       what can be asked, and how each method answers
worker.py        a foreign engine in a process of its own, stopped while others are measured
measuring.py     every question to every method, in turn
figures.py       what came of it: a line per method, and the ratios between them
workers/         what runs in the foreign interpreters; knows nothing of Quotewright
"""
