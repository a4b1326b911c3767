"""``python -m benchmarks index``: what an index of many passages costs to build, to open and to search.

`synthetic` makes vectors and texts, `corpora` names the files that they lie in, `stages` builds, opens and searches in
processes of their own, `measuring` puts the figures together, `command` is what people type.
"""
