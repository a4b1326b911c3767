"""Data structures, in memory and on disk: references, tries, automata, vectors, postings, passages.

Knows neither models nor questions and imports none of the other packages.
"""
