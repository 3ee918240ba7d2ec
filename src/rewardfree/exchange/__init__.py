"""Data and policies for and from other tools, one file for each kind."""
