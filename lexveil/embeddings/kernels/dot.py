"""Products of 8-bit numbers by the processor's own instructions, in registers, for the screen of an exact search.

``products`` multiplies a tile of queries by a tile of words. The processor's instruction decides how it does it (see
``Kind``); NumPy's and numba's own loops would take several times as long, since LLVM does not find these instructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils, registry
from numba.extending import intrinsic

QUERIES, VECTORS = 6, 2  # of a tile: 12 sums, 2 vectors of words, 1 of a query, 1 product are the 16 registers
BYTES = 4  # coordinates that an instruction adds up to one 32-bit number, or two 16-bit ones


class Kind(NamedTuple):
    """An instruction that multiplies bytes.

    Attributes:
        name: as ``lexveil --version -v`` shows it.
        features: of the processor, one of the sets of which it must have.
        lanes: 32-bit numbers in a register; a register holds as many words, four coordinates of each.
        offset: added to the coordinates of a query, which the instruction takes as unsigned.
        sums: what a 16-bit sum may come to, or 0 if sums are of 32 bits at once.
    """

    name: str
    features: tuple[frozenset[str], ...]
    lanes: int
    offset: int
    sums: int


# The first one that the processor has is taken. With the offset 64 no pair of products leaves 16 bits: vpmaddubsw
# would cut it off. 16-bit sums wrap around, so only what a sum comes to in the end has to fit.
KINDS = (
    Kind("AVX-512 VNNI", (frozenset({"avx512vnni", "avx512f"}),), 16, 128, 0),
    Kind("AVX-VNNI", (frozenset({"avxvnni", "avx2"}),), 8, 128, 0),
    Kind("AVX2", (frozenset({"avx2"}),), 8, 64, 2**15 - 1),
)


def kind_of(features: frozenset[str]) -> int:
    """The index in ``KINDS`` for a processor of these features, or -1."""
    fits = (i for i, kind in enumerate(KINDS) if any(needed <= features for needed in kind.features))
    return next(fits, -1)


def processor_kind() -> int:
    """The same for what numba compiles for: this processor, unless its variables name another."""
    described = registry.cpu_target.target_context.codegen().magic_tuple()
    return kind_of(frozenset(f[1:] for f in described[2].split(",") if f.startswith("+")))


def _named(module: ir.Module, name: str, result: ir.Type, *given: ir.Type) -> Any:
    """The LLVM function of a name."""
    insert: Any = cgutils.get_or_insert_function
    return insert(module, ir.FunctionType(result, given), name)


def _dot(module: ir.Module, kind: Kind) -> Any:
    """The LLVM function of the instruction: (sum, query, words) -> sum, or (query, words) -> products."""
    size = kind.lanes * 32
    of_bytes, of_sums = ir.VectorType(ir.IntType(8), 4 * kind.lanes), ir.VectorType(ir.IntType(32), kind.lanes)
    if kind.sums:
        pairs = ir.VectorType(ir.IntType(16), 2 * kind.lanes)
        return _named(module, "llvm.x86.avx2.pmadd.ub.sw", pairs, of_bytes, of_bytes)
    return _named(module, f"llvm.x86.avx512.vpdpbusd.{size}", of_sums, of_sums, of_bytes, of_bytes)


class _Tile:
    """Writes the code of ``products`` with a builder."""

    def __init__(self, builder: ir.IRBuilder, kind: Kind) -> None:
        self.b, self.kind = builder, kind
        self.size = 4 * kind.lanes  # bytes of a register
        self.bytes = ir.VectorType(ir.IntType(8), 4 * kind.lanes)
        self.pairs = ir.VectorType(ir.IntType(16), 2 * kind.lanes)
        self.whole = ir.VectorType(ir.IntType(32), kind.lanes)
        self.single = ir.VectorType(ir.FloatType(), kind.lanes)
        self.sums = self.pairs if kind.sums else self.whole

    def at(self, address: Any, offset: int, of: ir.Type) -> Any:
        """A pointer to ``of`` so many bytes after an address."""
        return self.b.inttoptr(self.b.add(address, ir.Constant(address.type, offset)), of.as_pointer())

    def load(self, address: Any, offset: int, of: ir.Type) -> Any:
        """What stands there; nothing is said of its alignment."""
        return self.b.load(self.at(address, offset, of), align=1)

    def everywhere(self, value: Any) -> Any:
        """A register with the value in all lanes."""
        empty = ir.Constant(ir.VectorType(value.type, self.kind.lanes), ir.Undefined)
        first = self.b.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self.kind.lanes), [0] * self.kind.lanes)
        return self.b.shuffle_vector(first, empty, mask)

    def phis(self, of: ir.Type) -> list[list[Any]]:
        """A phi for each query and vector of words of the tile."""
        return [[self.b.phi(of) for _ in range(VECTORS)] for _ in range(QUERIES)]

    def multiply(self, words: Any, start: Any, queries: Any, chunks: Any, depth: Any) -> list[list[Any]]:
        """The loops: sums over ``depth`` steps of four coordinates, begun at ``start``, added up in 32 bits."""
        b, wide = self.b, words.type
        dot = _dot(b.module, self.kind)
        entry = b.block
        chunk, step, end, after = (b.function.append_basic_block(name) for name in ("chunk", "step", "end", "after"))
        b.branch(chunk)

        b.position_at_end(chunk)
        done, word, query, begin = (b.phi(wide) for _ in range(4))
        total = self.phis(self.whole)
        first = [self.load(begin, v * self.size, self.sums) for v in range(VECTORS)]
        b.branch(step)

        b.position_at_end(step)
        count, word_at, query_at = (b.phi(wide) for _ in range(3))
        before = self.phis(self.sums)
        some = [self.load(word_at, v * self.size, self.bytes) for v in range(VECTORS)]
        now: list[list[Any]] = []
        for q in range(QUERIES):
            four = b.bitcast(self.everywhere(self.load(query_at, q * BYTES, ir.IntType(32))), self.bytes)
            if self.kind.sums:
                now.append([b.add(before[q][v], b.call(dot, [four, some[v]])) for v in range(VECTORS)])
            else:
                now.append([b.call(dot, [before[q][v], four, some[v]]) for v in range(VECTORS)])
        next_count = b.add(count, ir.Constant(wide, 1))
        next_word = b.add(word_at, ir.Constant(wide, VECTORS * self.size))
        next_query = b.add(query_at, ir.Constant(wide, QUERIES * BYTES))
        b.cbranch(b.icmp_signed("<", next_count, depth), step, end)
        for phi, outer, inner in (
            (count, ir.Constant(wide, 0), next_count),
            (word_at, word, next_word),
            (query_at, query, next_query),
        ):
            phi.add_incoming(outer, chunk)
            phi.add_incoming(inner, step)

        b.position_at_end(end)
        if self.kind.sums:
            ones = ir.Constant(self.pairs, [1] * (2 * self.kind.lanes))
            add_pairs = _named(b.module, "llvm.x86.avx2.pmadd.wd", self.whole, self.pairs, self.pairs)
            added = [[b.call(add_pairs, [now[q][v], ones]) for v in range(VECTORS)] for q in range(QUERIES)]
        else:
            added = now
        totals = [[b.add(total[q][v], added[q][v]) for v in range(VECTORS)] for q in range(QUERIES)]
        next_done = b.add(done, ir.Constant(wide, 1))
        next_begin = b.add(begin, ir.Constant(wide, VECTORS * self.size))
        b.cbranch(b.icmp_signed("<", next_done, chunks), chunk, after)
        for phi, outer, inner in (
            (done, ir.Constant(wide, 0), next_done),
            (word, words, next_word),
            (query, queries, next_query),
            (begin, start, next_begin),
        ):
            phi.add_incoming(outer, entry)
            phi.add_incoming(inner, end)
        nothing = ir.Constant(self.whole, [0] * self.kind.lanes)
        for q in range(QUERIES):
            for v in range(VECTORS):
                before[q][v].add_incoming(first[v], chunk)
                before[q][v].add_incoming(now[q][v], step)
                total[q][v].add_incoming(nothing, entry)
                total[q][v].add_incoming(totals[q][v], end)
        b.position_at_end(after)
        return totals

    def score(self, totals: list[list[Any]], scales: Any, halves: Any, errors: Any, of_queries: Any, out: Any) -> Any:
        """Scores from the sums, and whether one of them may reach what its query asks for.

        ``of_queries``: step, wanted score, and the two factors of the error for each query (4 x QUERIES float32);
        ``errors``: what the factors are multiplied by, and what is added (3 float32).
        """
        b = self.b
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
                product = b.fmul(b.sitofp(totals[q][v], self.single), b.fmul(self.everywhere(step), scale[v]))
                scored = b.fsub(product, half[v])
                b.store(scored, self.at(out, (q * VECTORS + v) * self.size, self.single), align=1)
                may = b.or_(may, b.fcmp_ordered(">=", scored, limit))
        return b.zext(b.bitcast(may, ir.IntType(self.kind.lanes)), ir.IntType(32))


def _products(  # numba knows the parameters by this list
    context: Any,  # noqa: ARG001
    kind: Any,
    words: Any,  # noqa: ARG001
    start: Any,  # noqa: ARG001
    scales: Any,  # noqa: ARG001
    halves: Any,  # noqa: ARG001
    errors: Any,  # noqa: ARG001
    queries: Any,  # noqa: ARG001
    of_queries: Any,  # noqa: ARG001
    out: Any,  # noqa: ARG001
    chunks: Any,  # noqa: ARG001
    depth: Any,  # noqa: ARG001
) -> Any:
    """Score a tile of words for a tile of queries; 0 if none may reach what its query asks for.

    All but ``kind`` (a literal) are addresses and counts. Words lie as (chunks, depth, VECTORS, lanes, 4) int8, queries
    as (chunks, depth, QUERIES, 4) uint8, ``start`` as (chunks, VECTORS, 2·lanes) int16 or (chunks, VECTORS, lanes)
    int32: minus the offset of the queries times the words' sums. Scores are written to ``out``, (QUERIES,
    VECTORS·lanes) float32.
    """
    if not isinstance(kind, types.IntegerLiteral):
        return None
    chosen = KINDS[kind.literal_value]

    def codegen(context: Any, builder: Any, signature: Any, given: Any) -> Any:  # noqa: ARG001
        _, words, start, scales, halves, errors, queries, of_queries, out, chunks, depth = given
        tile = _Tile(builder, chosen)
        totals = tile.multiply(words, start, queries, chunks, depth)
        return tile.score(totals, scales, halves, errors, of_queries, out)

    return types.int32(kind, *[types.intp] * 10), codegen


products: Any = intrinsic(_products)
