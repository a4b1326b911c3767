"""Many questions in one run: data sets, scores, and a run that can be killed and resumed."""
