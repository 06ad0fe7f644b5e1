"""Known faults of other libraries, each as a small program that shows it with numbers."""
