"""Kim, Günlü and Schaefer (2021): their three graphs, with the exact curves beside them."""
