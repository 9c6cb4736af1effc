"""Matrix products of 8-bit numbers by the processor's own instructions, for the fast preselection
in an exact nearest-neighbour search.

``products`` multiplies a tile of queries by a tile of words with one of the processor's
instructions (see ``Kind``). Loops of NumPy and numba would take several times as long, since LLVM
does not generate these instructions from loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils, registry
from numba.extending import intrinsic

# size of a tile: 12 sums, 2 registers of words, 1 of a query and 1 product fill the 16 registers
QUERIES = 6
VECTORS = 2
BYTES = 4  # coordinates that an instruction adds up to one 32-bit number, or two 16-bit ones


class Kind(NamedTuple):
    """Processor instruction that multiplies vectors of bytes.

    Attributes:
        name: name that ``lexveil --version -v`` shows.
        features: alternative sets of processor features; the processor must have one complete set.
        lanes: number of 32-bit lanes in a register; each lane holds four coordinates of one word.
        offset: number added to the coordinates of a query, because the instruction reads them as
            unsigned numbers.
        sums: greatest value of a 16-bit sum, or 0 if the instruction adds up in 32 bits.
    """

    name: str
    features: tuple[frozenset[str], ...]
    lanes: int
    offset: int
    sums: int


# The first instruction that the processor supports is used. With the offset 64 each pair of
# products fits into 16 bits; vpmaddubsw would saturate a larger one. 16-bit sums wrap around, so
# only the final value of a sum has to fit.
KINDS = (
    Kind("AVX-512 VNNI", (frozenset({"avx512vnni", "avx512f"}),), 16, 128, 0),
    Kind("AVX-VNNI", (frozenset({"avxvnni", "avx2"}),), 8, 128, 0),
    Kind("AVX2", (frozenset({"avx2"}),), 8, 64, 2**15 - 1),
)


def kind_of(features: frozenset[str]) -> int:
    """Return the index in ``KINDS`` of the byte-product instruction for a processor with these
    features; -1 if the processor has no such instruction.
    """
    fits = (
        i for i, kind in enumerate(KINDS) if any(needed <= features for needed in kind.features)
    )
    return next(fits, -1)


def processor_kind() -> int:
    """Return the index in ``KINDS`` of the byte-product instruction for numba's target processor;
    -1 if that processor has none. The target is this processor, unless numba's environment
    variables name another.
    """
    described = registry.cpu_target.target_context.codegen().magic_tuple()
    return kind_of(frozenset(f[1:] for f in described[2].split(",") if f.startswith("+")))


class _Tile:
    """Generator of the LLVM code of ``products``, which multiplies a tile of queries by a tile of
    words.

    Sums are variables of the compiled function, which LLVM keeps in registers.
    """

    def __init__(self, builder: ir.IRBuilder, kind: Kind) -> None:
        self.b = builder
        self.kind = kind
        self.size = 4 * kind.lanes  # bytes of a register
        self.bytes = ir.VectorType(ir.IntType(8), 4 * kind.lanes)
        self.whole = ir.VectorType(ir.IntType(32), kind.lanes)
        self.single = ir.VectorType(ir.FloatType(), kind.lanes)
        self.sums = ir.VectorType(ir.IntType(16), 2 * kind.lanes) if kind.sums else self.whole

    def at(self, address: Any, offset: int, of: ir.Type) -> Any:
        """Emit a pointer to a value of type ``of`` that lies ``offset`` bytes after an address."""
        return self.b.inttoptr(
            self.b.add(address, ir.Constant(address.type, offset)), of.as_pointer()
        )

    def load(self, address: Any, offset: int, of: ir.Type) -> Any:
        """Emit a load of a value of type ``of`` that lies ``offset`` bytes after an address, which
        need not be aligned.
        """
        return self.b.load(self.at(address, offset, of), align=1)

    def everywhere(self, value: Any) -> Any:
        """Emit a vector register that has the value in all of its lanes."""
        empty = ir.Constant(ir.VectorType(value.type, self.kind.lanes), ir.Undefined)
        first = self.b.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self.kind.lanes), [0] * self.kind.lanes)
        return self.b.shuffle_vector(first, empty, mask)

    def call(self, name: str, result: ir.Type, *given: Any) -> Any:
        """Emit a call of the LLVM intrinsic ``name``, which compiles to a single processor
        instruction.
        """
        insert: Any = cgutils.get_or_insert_function
        kind = ir.FunctionType(result, [value.type for value in given])
        return self.b.call(insert(self.b.module, kind, name), given)

    def dot(self, total: Any, query: Any, words: Any) -> Any:
        """Emit the addition of byte products to a running sum. The products are four coordinates
        of a query times the same coordinates of as many words as there are lanes.
        """
        if self.kind.sums:
            return self.b.add(
                total, self.call("llvm.x86.avx2.pmadd.ub.sw", self.sums, query, words)
            )
        return self.call(
            f"llvm.x86.avx512.vpdpbusd.{8 * self.size}", self.whole, total, query, words
        )

    def widened(self, total: Any) -> Any:
        """Emit the conversion of a running sum to 32 bits."""
        if not self.kind.sums:
            return total
        ones = ir.Constant(self.sums, [1] * (2 * self.kind.lanes))
        return self.call("llvm.x86.avx2.pmadd.wd", self.whole, total, ones)

    def multiply(
        self, words: Any, start: Any, queries: Any, chunks: Any, depth: Any
    ) -> dict[tuple[int, int], Any]:
        """Emit the inner products of each query with each register of words; return the sums.

        A sum begins at ``start`` and runs over ``depth`` steps of four coordinates; the sums of the
        chunks are added up in 32 bits.
        """
        b = self.b
        size = self.size
        pairs = [(q, v) for q in range(QUERIES) for v in range(VECTORS)]

        def after(address: Any, number: Any, step: int) -> Any:
            return b.add(address, b.mul(number, ir.Constant(address.type, step)))

        variable: Any = cgutils.alloca_once_value
        none = ir.Constant(self.whole, [0] * self.kind.lanes)
        totals = {pair: variable(b, none) for pair in pairs}
        with cgutils.for_range(b, chunks) as chunk:
            begin = after(start, chunk.index, VECTORS * size)
            first = [self.load(begin, v * size, self.sums) for v in range(VECTORS)]
            sums = {(q, v): variable(b, first[v]) for q, v in pairs}
            with cgutils.for_range(b, depth) as step:
                row = b.add(b.mul(chunk.index, depth), step.index)
                word_at = after(words, row, VECTORS * size)
                query_at = after(queries, row, QUERIES * BYTES)
                some = [self.load(word_at, v * size, self.bytes) for v in range(VECTORS)]
                for q in range(QUERIES):
                    four = b.bitcast(
                        self.everywhere(self.load(query_at, q * BYTES, ir.IntType(32))), self.bytes
                    )
                    for v in range(VECTORS):
                        b.store(self.dot(b.load(sums[q, v]), four, some[v]), sums[q, v])
            for pair in pairs:
                b.store(b.add(b.load(totals[pair]), self.widened(b.load(sums[pair]))), totals[pair])
        return {pair: b.load(totals[pair]) for pair in pairs}

    def score(self, totals: dict[tuple[int, int], Any], addresses: Sequence[Any]) -> Any:
        """Emit the computation of scores from the sums. The emitted value is whether any score may
        reach the minimum that its query needs.

        ``of_queries`` contains for each query the rounding step, the minimum score, and the two
        factors of the rounding error (4 x QUERIES float32). ``errors`` contains the two numbers by
        which the factors are multiplied, and a fixed error (3 float32).
        """
        b = self.b
        scales, halves, errors, of_queries, out = addresses
        scale = [self.load(scales, v * self.size, self.single) for v in range(VECTORS)]
        half = [self.load(halves, v * self.size, self.single) for v in range(VECTORS)]
        length, residual, fixed = (self.load(errors, 4 * i, ir.FloatType()) for i in range(3))
        may = ir.Constant(ir.VectorType(ir.IntType(1), self.kind.lanes), [0] * self.kind.lanes)
        for q in range(QUERIES):
            step, wanted, of_length, of_residual = (
                self.load(of_queries, 4 * (i * QUERIES + q), ir.FloatType()) for i in range(4)
            )
            error = b.fadd(b.fadd(b.fmul(of_length, length), b.fmul(of_residual, residual)), fixed)
            limit = self.everywhere(b.fsub(wanted, error))
            for v in range(VECTORS):
                product = b.fmul(
                    b.sitofp(totals[q, v], self.single), b.fmul(self.everywhere(step), scale[v])
                )
                scored = b.fsub(product, half[v])
                b.store(scored, self.at(out, (q * VECTORS + v) * self.size, self.single), align=1)
                may = b.or_(may, b.fcmp_ordered(">=", scored, limit))
        return b.zext(b.bitcast(may, ir.IntType(self.kind.lanes)), ir.IntType(32))


def _products(_context: Any, kind: Any, addresses: Any, chunks: Any, depth: Any) -> Any:
    """Compute the scores of a tile of words for a tile of queries. Return 0 if no score can reach
    the minimum that its query needs.

    Args:
        kind: a literal, the index in ``KINDS``.
        addresses: addresses of the words, as (chunks, depth, VECTORS, lanes, 4) int8; of ``start``,
            which is minus the offset of the queries times the words' sums, as (chunks, VECTORS,
            2·lanes) int16 or (chunks, VECTORS, lanes) int32; of the queries, as (chunks, depth,
            QUERIES, 4) uint8; of scales, halves, errors and ``of_queries``, as in ``_Tile.score``;
            and of the output scores, (QUERIES, VECTORS·lanes) float32.
    """
    if not isinstance(kind, types.IntegerLiteral):
        return None
    chosen = KINDS[kind.literal_value]

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        _, packed, chunks, depth = arguments
        unpacked = cgutils.unpack_tuple(builder, packed)  # type: ignore[no-untyped-call]
        words, start, queries, *others = unpacked
        tile = _Tile(builder, chosen)
        return tile.score(tile.multiply(words, start, queries, chunks, depth), others)

    return types.int32(kind, addresses, chunks, depth), codegen


products: Any = intrinsic(_products)
