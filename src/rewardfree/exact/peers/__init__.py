"""The algorithms that GFA-RFE is compared with, one file each."""
