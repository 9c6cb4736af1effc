"""What readers recover of the runs of a grid."""
