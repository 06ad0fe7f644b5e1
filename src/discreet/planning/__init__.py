"""What a guarantee will cost, before anything runs: plans, the papers' theory, trade-off curves, the planner's page."""
