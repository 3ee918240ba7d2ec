"""Rewards: found by name or file, checked, laid over data, and looked at before planning."""
