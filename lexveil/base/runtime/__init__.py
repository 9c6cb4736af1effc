"""Help for runs, without any text: arrays, hashes, atomic files, object storage, run events."""
