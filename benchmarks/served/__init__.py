"""Our drafter inside vLLM beside vLLM's own: the same engine, the same prompts, one request at a time or many.

command.py    the command line: python -m benchmarks vllm
measuring.py  every chunk of prompts to every method in turn, at every number of requests at once
figures.py    what came of it: a line per method and number, the ratios between them, and whose words are the same
"""
