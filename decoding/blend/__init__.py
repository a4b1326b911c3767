"""One calibrated draft tree from every model-free source: the parts of the `blend` drafter."""
