"""Launches Quotewright: ``python app.py --help``."""

from app.commands.cli import main

if __name__ == "__main__":
    main()
