"""Import this before NumPy where float32 products decide bytes: one BLAS kernel on every machine.

OpenBLAS chooses a kernel by the processor it finds, and kernels round differently. The one for
Haswell runs on every x86-64 processor with AVX2; other architectures ignore the name.
"""

import os

os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
