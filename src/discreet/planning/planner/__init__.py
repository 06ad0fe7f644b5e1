"""The planner: a local web page whose sliders change a plan and whose curves follow."""
