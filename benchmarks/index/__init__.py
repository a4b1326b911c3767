"""``python -m benchmarks index``: what an index of many passages costs to build, to open and to search.

`synthetic` makes vectors and texts, `real` takes them from installed packages, `corpus` is what both are; `exact` finds
the true neighbours; `stages` builds, opens and searches, in `processes` of their own; `measuring` puts the figures
together, `plot` draws them, `command` is what people type.
"""
