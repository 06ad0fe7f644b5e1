"""What a guarantee will cost: plans, the papers' theory, curves, and the planner's page."""
