"""Public data sets as files: the catalog, downloads, checksums and file formats."""
