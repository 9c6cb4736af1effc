"""Fixes the BLAS kernel. Import this before NumPy where float32 products decide bytes of an output.

OpenBLAS chooses a kernel by the processor, and kernels round differently. The kernel for Haswell
runs on every x86-64 processor with AVX2; other architectures ignore the name.
"""

import os

os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
