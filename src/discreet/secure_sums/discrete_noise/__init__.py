"""Integer noise for sums of integers: Skellam and discrete Gaussian, in int64 from end to end."""
