"""What each subject has spent over all releases and who paid for which output, so that nobody exceeds a cap."""
