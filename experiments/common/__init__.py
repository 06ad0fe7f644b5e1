"""What the papers' pages share: means over seeds, and how curves are drawn."""
