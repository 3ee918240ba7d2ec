"""Bonus oracles for gfa-rfe, one file each; the file's name is the oracle's name."""
