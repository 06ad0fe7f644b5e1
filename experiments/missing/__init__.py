"""The runs that the pages on papers still lack, made by many processes on one GPU, the ones most wanted first."""
