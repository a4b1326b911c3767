"""Work on several machines, or in several processes of this one, on Ray. Nothing else of ours imports Ray."""
