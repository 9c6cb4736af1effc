"""What a user brings: files of any common form, checked whole, turned into data/corpus and data/documents."""
