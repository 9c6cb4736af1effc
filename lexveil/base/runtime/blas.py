"""Fix the BLAS kernel. Import this module before NumPy where output bytes depend on float32
products.

OpenBLAS chooses a kernel by the processor, and kernels round differently. The kernel for Haswell
runs on every x86-64 processor with AVX2; other architectures ignore the setting.
"""

import os

os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
