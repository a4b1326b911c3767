"""From a question to passages: loading, chunking, encoding, fusing, reranking."""
