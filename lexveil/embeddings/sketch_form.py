"""What a sketch of a word looks like: what ``Sketch``, its kernels and the samplers that read it agree on."""

from __future__ import annotations

COORDINATES = 31  # with the part left out, one line of cache per word
STEPS = 32767  # of a coordinate on either side of 0
# Of them, more than what rounding does to 32 coordinates of two words (half a step each), and float32 to the sum.
SLACK = 7.0
