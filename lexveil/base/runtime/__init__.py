"""What runs need that have no text: arrays, hashes, atomic files, object storage, run events."""
