"""What a token is: text to tokens and back. Values in, values out."""
