"""A lean forward pass for models of the Llama family: the same words as transformers, less work around them."""
