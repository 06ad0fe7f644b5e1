"""Fu et al. 2021: how many iterations, and how many between two uploads, when every client adds its own noise."""
