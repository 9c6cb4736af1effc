"""Fix the BLAS kernel, so that float32 products are the same on every processor. Import this module
before NumPy if output bytes depend on such products.

OpenBLAS chooses a kernel by the processor, and kernels round differently. The kernel for Haswell
runs on every x86-64 processor with AVX2; other architectures ignore the setting.
"""

import os

os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
