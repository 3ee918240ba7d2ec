"""Function classes, one file each: the bonus oracle, the weighted regression and the covering number."""
