"""Reward-free data: named arrays, the data set on disk, and sampling from it."""
