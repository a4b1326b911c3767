"""One parser per kind of file: bytes in, text with its pages and headings out. `retrieval.documents` chooses."""
