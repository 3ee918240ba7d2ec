"""Planners, one file each; the file's name is the planner's name."""
