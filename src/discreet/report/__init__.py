"""Pages and pictures: a run directory becomes an HTML page, curves become images."""
