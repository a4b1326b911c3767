"""Chains of draft tokens for engines that verify many requests in one step, each with a chain of its own.

copying.py     one request: what follows the longest matches of its end in its own prompt and output, with chances
chances.py     how likely a copied token is right: counted, for all requests together
step_costs.py  what a step of the engine costs by requests and draft tokens: measured as it runs
batch.py       all requests of a step: who is who, and how many tokens each one's chain may have
"""
