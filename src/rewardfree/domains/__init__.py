"""Domains, one file each; the file's name is the domain's name."""
