"""CSV and Parquet tables as training data."""
