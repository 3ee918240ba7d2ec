"""Explorers, one file each; the file's name is the explorer's name."""
