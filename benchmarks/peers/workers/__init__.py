"""What runs in the foreign engines' interpreters, below `serve.py`; nothing here imports anything of ours."""
