package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa describes how the functions for one instruction set differ.
type isa struct {
	name  string
	wide  bool // registers hold 16 values, not eight
	group int  // how many vectors of 16 values score and weigh keep for each row
}

// vec is 16 values: in one wide register, in two registers, or in memory.
type vec []Op

// table holds the constants, each repeated 16 times.
var table Mem

func amd64() {
	ConstraintExpr("amd64")
	table = GLOBL("kernelConstants", attr.RODATA|attr.NOPTR)
	for i, c := range constants {
		bits := uint64(math.Float32bits(c))
		for j := range 8 {
			DATA(64*i+8*j, U64(bits<<32|bits))
		}
	}
	for _, s := range []isa{{"AVX512", true, 4}, {"AVX2", false, 1}} {
		s.quantize()
		s.normalize()
		s.gelu()
		s.score()
		s.softmax()
		s.weigh()
	}
	tileAVX512()
	tileAVX2()
	Generate()
}

func (s isa) function(name, signature string) {
	TEXT(name+s.name, attr.NOSPLIT, signature)
}

// address returns the place of a parameter.
func address(name string) Op {
	basic, err := Param(name).Resolve()
	if err != nil {
		panic(err) // the signature has no such parameter
	}
	return basic.Addr
}

func done() {
	VZEROUPPER()
	RET()
}

// new returns registers for 16 values.
func (s isa) new() vec {
	if s.wide {
		return vec{ZMM()}
	}
	return vec{YMM(), YMM()}
}

// at returns a vec for 16 values in memory.
func (s isa) at(m Mem) vec {
	if s.wide {
		return vec{m}
	}
	return vec{m, m.Offset(32)}
}

func (s isa) constant(i int) vec { return s.at(table.Offset(64 * i)) }

// each applies an instruction to every register of the vectors.
func each(op func(...Op), vs ...vec) {
	for i := range vs[len(vs)-1] {
		ops := make([]Op, len(vs))
		for j, v := range vs {
			ops[j] = v[i]
		}
		op(ops...)
	}
}

func fixed2(op func(a, b Op)) func(...Op)    { return func(o ...Op) { op(o[0], o[1]) } }
func fixed3(op func(a, b, c Op)) func(...Op) { return func(o ...Op) { op(o[0], o[1], o[2]) } }

// zero returns a vector of zeros.
func (s isa) zero() vec {
	v := s.new()
	if s.wide {
		// VPXORD reads no earlier value here, but avo does not know that.
		Instruction(&ir.Instruction{Opcode: "VPXORD", Operands: []Op{v[0], v[0], v[0]}, Outputs: []Op{v[0]}})
	} else {
		each(fixed3(VPXOR), v, v, v)
	}
	return v
}

// broadcast returns a vec with 16 copies of the value at m. Narrow sets use one register for both halves.
func (s isa) broadcast(m Mem) vec {
	if s.wide {
		z := ZMM()
		VBROADCASTSS(m, z)
		return vec{z}
	}
	y := YMM()
	VBROADCASTSS(m, y)
	return vec{y, y}
}

// spread returns a vec with 16 copies of the first value in a register.
func (s isa) spread(x reg.VecVirtual) vec {
	if s.wide {
		z := ZMM()
		VBROADCASTSS(x, z)
		return vec{z}
	}
	y := YMM()
	VBROADCASTSS(x, y)
	return vec{y, y}
}

// reduce combines the values of a vector into one: the first eight with the last eight, and so on.
func (s isa) reduce(v vec, op func(...Op)) reg.VecVirtual {
	y, x, t := YMM(), XMM(), XMM()
	if s.wide {
		upper := YMM()
		VEXTRACTF64X4(Imm(1), v[0], upper)
		op(upper, v[0].(reg.VecVirtual).AsY(), y)
	} else {
		op(v[1], v[0], y)
	}
	VEXTRACTF128(Imm(1), y, x)
	op(x, y.AsX(), x)
	VMOVHLPS(x, x, t)
	op(t, x, x)
	VMOVSHDUP(x, t)
	op(t, x, x)
	return x
}

// loop counts n down by step. body must advance the pointers.
func loop(label string, n reg.Register, step int, body func()) {
	Label(label)
	body()
	SUBQ(Imm(uint64(step)), n)
	JNZ(LabelRef(label))
}

func (s isa) quantize() {
	s.function("quantize", "func(to *byte, values, factors *float32, n int) (scale float32, zero int32)")
	to, values, factors := Load(Param("to"), GP64()), Load(Param("values"), GP64()), Load(Param("factors"), GP64())
	n, v, f := GP64(), GP64(), GP64()
	start := func() {
		Load(Param("n"), n)
		MOVQ(values, v)
		MOVQ(factors, f)
	}
	advance := func() {
		ADDQ(Imm(64), v)
		ADDQ(Imm(64), f)
	}
	start()
	least, largest := s.zero(), s.zero()
	loop("range_"+s.name, n, 16, func() {
		x := s.new()
		each(VMOVUPS, s.at(Mem{Base: v}), x)
		each(VMULPS, s.at(Mem{Base: f}), x, x)
		each(VMINPS, x, least, least)
		each(VMAXPS, x, largest, largest)
		advance()
	})
	low, span, inverse := s.reduce(least, VMINPS), s.reduce(largest, VMAXPS), XMM()
	VSUBSS(low, span, span)
	VMAXSS(table.Offset(64*leastSpan), span, span)
	VMOVSS(table.Offset(64*most), inverse)
	VDIVSS(span, inverse, inverse)
	VMULSS(inverse, low, low)
	zero := GP32()
	VCVTSS2SI(low, zero)
	NEGL(zero)
	VDIVSS(table.Offset(64*most), span, span)
	Store(span, Return("scale"))
	Store(zero, Return("zero"))

	x := XMM()
	VMOVD(zero, x)
	zeros, inverses := s.spread(x), s.spread(inverse)
	limit, none := s.new(), s.zero()
	start()
	MOVL(U32(255), zero)
	VMOVD(zero, x)
	limit = s.spread(x)
	loop("write_"+s.name, n, 16, func() {
		q := s.new()
		each(VMOVUPS, s.at(Mem{Base: v}), q)
		each(VMULPS, s.at(Mem{Base: f}), q, q)
		each(VMULPS, inverses, q, q)
		each(VCVTPS2DQ, q, q)
		each(VPADDD, zeros, q, q)
		each(VPMAXSD, none, q, q)
		each(VPMINSD, limit, q, q)
		if s.wide {
			VPMOVUSDB(q[0], Mem{Base: to})
			ADDQ(Imm(16), to)
		} else {
			VPACKUSDW(q[1], q[0], q[0])
			VPERMQ(Imm(0xd8), q[0], q[0])
			VMOVDQU(q[0], Mem{Base: to})
			ADDQ(Imm(32), to)
		}
		advance()
	})
	done()
}

func (s isa) normalize() {
	s.function("normalize", "func(row, add, weight, bias *float32, n int, epsilon float32)")
	row, add := Load(Param("row"), GP64()), Load(Param("add"), GP64())
	weight, bias := Load(Param("weight"), GP64()), Load(Param("bias"), GP64())
	at, n := GP64(), GP64()
	start := func() {
		XORQ(at, at)
		Load(Param("n"), n)
	}
	here := func(base reg.Register) vec { return s.at(Mem{Base: base, Index: at, Scale: 1}) }
	advance := func() { ADDQ(Imm(64), at) }

	start()
	sum := s.zero()
	loop("add_"+s.name, n, 16, func() {
		x := s.new()
		each(VMOVUPS, here(row), x)
		each(VADDPS, here(add), x, x)
		each(VMOVUPS, x, here(row))
		each(VADDPS, x, sum, sum)
		advance()
	})
	count := XMM()
	start()
	VXORPS(count, count, count)
	VCVTSI2SSQ(n, count, count)
	mean := s.reduce(sum, VADDPS)
	VDIVSS(count, mean, mean)
	means := s.spread(mean)

	squares := s.zero()
	loop("square_"+s.name, n, 16, func() {
		x := s.new()
		each(VMOVUPS, here(row), x)
		each(VSUBPS, means, x, x)
		each(VMULPS, x, x, x)
		each(VADDPS, x, squares, squares)
		advance()
	})
	inverse, root := XMM(), s.reduce(squares, VADDPS)
	VDIVSS(count, root, root)
	VADDSS(address("epsilon"), root, root)
	VSQRTSS(root, root, root)
	VMOVSS(table.Offset(64*one), inverse)
	VDIVSS(root, inverse, inverse)
	inverses := s.spread(inverse)

	start()
	loop("scale_"+s.name, n, 16, func() {
		x := s.new()
		each(VMOVUPS, here(row), x)
		each(VSUBPS, means, x, x)
		each(VMULPS, inverses, x, x)
		w := s.new()
		each(VMOVUPS, here(weight), w)
		each(VFMADD213PS, here(bias), w, x)
		each(VMOVUPS, x, here(row))
		advance()
	})
	done()
}

// polynomial evaluates a polynomial of x. Its count coefficients begin at first in the table.
func (s isa) polynomial(first, count int, x vec) vec {
	y := s.new()
	each(VMOVUPS, s.constant(first+count-1), y)
	for i := count - 2; i >= 0; i-- {
		each(VFMADD213PS, s.constant(first+i), x, y)
	}
	return y
}

func (s isa) gelu() {
	s.function("gelu", "func(values *float32, n int)")
	values, n := Load(Param("values"), GP64()), Load(Param("n"), GP64())
	loop("gelu_"+s.name, n, 16, func() {
		x, near, square := s.new(), s.new(), s.new()
		each(VMOVUPS, s.at(Mem{Base: values}), x)
		each(VMINPS, s.constant(geluEnd), x, near)
		each(VMAXPS, s.constant(geluStart), near, near)
		each(VMULPS, near, near, square)
		y := s.polynomial(geluTerms, 10, square)
		each(VFMADD213PS, s.constant(half), near, y)
		each(VMULPS, x, y, y)
		each(VMOVUPS, y, s.at(Mem{Base: values}))
		ADDQ(Imm(64), values)
	})
	done()
}

// field loads a field of the struct that the first parameter points to.
func field(from reg.Register, offset int) reg.GPVirtual {
	r := GP64()
	MOVQ(Mem{Base: from, Disp: offset}, r)
	return r
}

// rows addresses six rows of values that are stride bytes apart.
type rows struct{ first, fourth, stride reg.GPVirtual }

func rowsFrom(first, stride reg.GPVirtual) rows {
	fourth := GP64()
	LEAQ(Mem{Base: first, Index: stride, Scale: 2}, fourth)
	ADDQ(stride, fourth)
	return rows{first, fourth, stride}
}

func (r rows) at(row int) Mem {
	m := Mem{Base: r.first}
	if row >= 3 {
		m.Base, row = r.fourth, row-3
	}
	if row > 0 {
		m.Index, m.Scale = r.stride, uint8(row) // 1 or 2
	}
	return m
}

func (r rows) advance(bytes uint32) {
	ADDQ(U32(bytes), r.first)
	ADDQ(U32(bytes), r.fourth)
}

// products multiplies vectors at m by each row's next value, and adds the results to sums: one group of vectors for
// each of six rows.
func (s isa) products(sums [][]vec, r rows, m Mem) {
	vectors := make([]vec, len(sums[0]))
	for i := range vectors {
		vectors[i] = s.new()
		each(VMOVUPS, s.at(m.Offset(64*i)), vectors[i])
	}
	for row := range sums {
		x := s.broadcast(r.at(row))
		for i, v := range vectors {
			each(VFMADD231PS, v, x, sums[row][i])
		}
	}
}

func (s isa) sums(group int) [][]vec {
	sums := make([][]vec, attnRows)
	for row := range sums {
		for range group {
			sums[row] = append(sums[row], s.zero())
		}
	}
	return sums
}

func (s isa) score() {
	s.function("score", "func(a *byte)")
	a := Load(Param("a"), GP64())
	stride, padded := GP64(), field(a, attnPadded)
	left := GP64()
	MOVQ(U32(4*attendStride), stride)
	MOVQ(padded, left)
	SHLQ(Imm(2), padded)
	keys, out := field(a, attnKeys), rowsFrom(field(a, attnWeights), padded)
	queries := field(a, attnQueries)

	block := func(group int) {
		sums := s.sums(group)
		first, key, n := GP64(), GP64(), GP64()
		MOVQ(queries, first)
		q := rowsFrom(first, stride)
		MOVQ(keys, key)
		MOVQ(U32(headSize), n)
		loop(fmt.Sprintf("score%d_%s", group, s.name), n, 1, func() {
			s.products(sums, q, Mem{Base: key})
			q.advance(4)
			ADDQ(padded, key)
		})
		for row := range sums {
			for i, sum := range sums[row] {
				each(VMOVUPS, sum, s.at(out.at(row).Offset(64*i)))
			}
		}
		ADDQ(U32(64*group), keys)
		out.advance(uint32(64 * group))
	}
	if s.group > 1 {
		many := "many_" + s.name
		Label(many)
		CMPQ(left, Imm(uint64(16*s.group)))
		JLT(LabelRef("few_" + s.name))
		block(s.group)
		SUBQ(Imm(uint64(16*s.group)), left)
		JMP(LabelRef(many))
	}
	Label("few_" + s.name)
	TESTQ(left, left)
	JZ(LabelRef("end_" + s.name))
	block(1)
	SUBQ(Imm(16), left)
	JMP(LabelRef("few_" + s.name))
	Label("end_" + s.name)
	done()
}

func (s isa) softmax() {
	s.function("softmax", "func(a *byte)")
	a := Load(Param("a"), GP64())
	tokens, padded := field(a, attnTokens), field(a, attnPadded)
	weights, sums, row := field(a, attnWeights), field(a, attnSums), GP64()
	MOVQ(U32(attnRows), row)
	label := func(name string) string { return name + "_" + s.name }

	Label(label("row"))
	at := GP64()
	MOVQ(tokens, at)
	absent := XMM()
	VMOVSS(table.Offset(64*tailScore), absent)
	Label(label("tail"))
	CMPQ(at, padded)
	JGE(LabelRef(label("largest")))
	VMOVSS(absent, Mem{Base: weights, Index: at, Scale: 4})
	INCQ(at)
	JMP(LabelRef(label("tail")))

	Label(label("largest"))
	here := s.at(Mem{Base: weights, Index: at, Scale: 4})
	XORQ(at, at)
	largest := s.new()
	each(VMOVUPS, here, largest)
	Label(label("more"))
	each(VMAXPS, here, largest, largest)
	ADDQ(Imm(16), at)
	CMPQ(at, padded)
	JLT(LabelRef(label("more")))
	largests := s.spread(s.reduce(largest, VMAXPS))

	sum := s.zero()
	XORQ(at, at)
	Label(label("power"))
	x, whole := s.new(), s.new()
	each(VMOVUPS, here, x)
	each(VSUBPS, largests, x, x)
	each(VMAXPS, s.constant(leastExponent), x, x)
	each(VADDPS, s.constant(roundMagic), x, whole)
	each(VSUBPS, s.constant(roundMagic), whole, whole)
	each(VSUBPS, whole, x, x)
	y := s.polynomial(exp2Terms, 5, x)
	each(VCVTPS2DQ, whole, whole)
	each(func(o ...Op) { VPSLLD(o...) }, vec{Imm(23), Imm(23)}[:len(whole)], whole, whole)
	each(VPADDD, whole, y, y)
	each(VMOVUPS, y, here)
	each(VADDPS, y, sum, sum)
	ADDQ(Imm(16), at)
	CMPQ(at, padded)
	JLT(LabelRef(label("power")))
	total, inverse := s.reduce(sum, VADDPS), XMM()
	VMOVSS(table.Offset(64*one), inverse)
	VDIVSS(total, inverse, inverse)
	VMOVSS(inverse, Mem{Base: sums})

	ADDQ(Imm(4), sums)
	LEAQ(Mem{Base: weights, Index: padded, Scale: 4}, weights)
	DECQ(row)
	JNZ(LabelRef(label("row")))
	done()
}

func (s isa) weigh() {
	s.function("weigh", "func(a *byte)")
	a := Load(Param("a"), GP64())
	padded := field(a, attnPadded)
	SHLQ(Imm(2), padded)
	group := min(s.group, headSize/16)
	inverses, values, tokens := field(a, attnSums), field(a, attnValues), field(a, attnTokens)
	weights, out := field(a, attnWeights), field(a, attnOut)
	for part := range headSize / 16 / group {
		sums := s.sums(group)
		first, value, n := GP64(), GP64(), GP64()
		MOVQ(weights, first)
		w := rowsFrom(first, padded)
		LEAQ(Mem{Base: values, Disp: 64 * part * group}, value)
		MOVQ(tokens, n)
		loop(fmt.Sprintf("weigh%d_%s", part, s.name), n, 1, func() {
			s.products(sums, w, Mem{Base: value})
			w.advance(4)
			ADDQ(U32(4*headSize), value)
		})
		for row := range sums {
			inverse := s.broadcast(Mem{Base: inverses, Disp: 4 * row})
			for i, sum := range sums[row] {
				each(VMULPS, inverse, sum, sum)
				each(VMOVUPS, sum, s.at(Mem{Base: out, Disp: 4*hidden*row + 64*(part*group+i)}))
			}
		}
	}
	done()
}

// tileAVX512 computes six rows of activations and four panels.
func tileAVX512() {
	const panels = 4
	s := isa{"AVX512", true, panels}
	s.function("tile", "func(t *byte)")
	t := Load(Param("t"), GP64())
	columns := field(t, tileColumns)
	panel, n := GP64(), GP64()
	MOVQ(columns, panel)
	SHLQ(Imm(4), panel)
	MOVQ(columns, n)
	x := rowsFrom(field(t, tileX), columns)
	w := field(t, tileWeights)
	last := GP64()
	LEAQ(Mem{Base: w, Index: panel, Scale: 2}, last)
	ADDQ(panel, last)

	sums := make([][]vec, attnRows)
	for row := range sums {
		for range panels {
			sums[row] = append(sums[row], s.zero())
		}
	}
	weightAt := func(i int) Mem {
		switch i {
		case 0:
			return Mem{Base: w}
		case 3:
			return Mem{Base: last}
		}
		return Mem{Base: w, Index: panel, Scale: uint8(i)}
	}
	loop("columns_AVX512", n, 8, func() {
		for part := range 2 {
			var ws [panels]reg.VecVirtual
			for i := range ws {
				ws[i] = ZMM()
				VMOVDQU8(weightAt(i).Offset(64*part), ws[i])
			}
			for row := range sums {
				xs := ZMM()
				VPBROADCASTD(x.at(row).Offset(4*part), xs)
				for i := range ws {
					dotProduct(ws[i], xs, sums[row][i][0].(reg.VecVirtual))
				}
			}
		}
		x.advance(8)
		ADDQ(Imm(128), w)
		ADDQ(Imm(128), last)
	})

	stride := field(t, tileStride)
	SHLQ(Imm(2), stride)
	out := rowsFrom(field(t, tileOut), stride)
	zeros, scales := field(t, tileZero), field(t, tileScale)
	weightSums, weightScales, bias := field(t, tileWeightSum), field(t, tileWeightScale), field(t, tileBias)
	for i := range panels {
		sum, scale, shift := ZMM(), ZMM(), ZMM()
		VMOVDQU32(Mem{Base: weightSums, Disp: 64 * i}, sum)
		VMOVUPS(Mem{Base: weightScales, Disp: 64 * i}, scale)
		VMOVUPS(Mem{Base: bias, Disp: 64 * i}, shift)
		for row := range sums {
			v, correction, factor := sums[row][i][0], ZMM(), ZMM()
			VPMULLD_BCST(Mem{Base: zeros, Disp: 4 * row}, sum, correction)
			VPSUBD(correction, v, v)
			VCVTDQ2PS(v, v)
			VMULPS_BCST(Mem{Base: scales, Disp: 4 * row}, scale, factor)
			VFMADD213PS(shift, factor, v)
			VMOVUPS(v, out.at(row).Offset(64*i))
		}
	}
	done()
}

// dotProduct adds the products of four bytes each to the sums. The bytes of x are unsigned. avo has no function for
// this instruction.
func dotProduct(weights, x, sums reg.VecVirtual) {
	Instruction(&ir.Instruction{
		Opcode: "VPDPBUSD", Operands: []Op{weights, x, sums}, Inputs: []Op{weights, x, sums}, Outputs: []Op{sums},
	})
}

// tileAVX2 computes six rows of activations, 16 bits each, and one panel, eight rows of weights at a time.
func tileAVX2() {
	s := isa{name: "AVX2"}
	s.function("tile", "func(t *byte)")
	t := Load(Param("t"), GP64())
	size, stride := field(t, tileColumns), field(t, tileStride)
	SHLQ(Imm(1), size)
	SHLQ(Imm(2), stride)
	out := rowsFrom(field(t, tileOut), stride)
	for part := range 2 {
		x, w, n := rowsFrom(field(t, tileX), size), field(t, tileWeights), field(t, tileColumns)
		sums := make([]vec, attnRows)
		for row := range sums {
			sums[row] = s.zero()
		}
		loop(fmt.Sprintf("columns%d_AVX2", part), n, 16, func() {
			for i := range 4 {
				first, second := YMM(), YMM()
				VPMOVSXBW(Mem{Base: w, Disp: 64*i + 32*part}, first)
				VPMOVSXBW(Mem{Base: w, Disp: 64*i + 32*part + 16}, second)
				for row, sum := range sums {
					xs, product := YMM(), YMM()
					VPBROADCASTQ(x.at(row).Offset(8*i), xs)
					VPMADDWD(xs, first, product)
					VPADDD(product, sum[0], sum[0])
					VPMADDWD(xs, second, xs)
					VPADDD(xs, sum[1], sum[1])
				}
			}
			x.advance(32)
			ADDQ(U32(256), w)
		})
		zeros, scales := field(t, tileZero), field(t, tileScale)
		weightSums, weightScales, bias := field(t, tileWeightSum), field(t, tileWeightScale), field(t, tileBias)
		weightSum, scale, shift := YMM(), YMM(), YMM()
		VMOVDQU(Mem{Base: weightSums, Disp: 32 * part}, weightSum)
		VMOVUPS(Mem{Base: weightScales, Disp: 32 * part}, scale)
		VMOVUPS(Mem{Base: bias, Disp: 32 * part}, shift)
		for row, sum := range sums {
			v, factor := YMM(), YMM()
			VPHADDD(sum[1], sum[0], v)
			VPERMQ(Imm(0xd8), v, v)
			VPBROADCASTD(Mem{Base: zeros, Disp: 4 * row}, factor)
			VPMULLD(weightSum, factor, factor)
			VPSUBD(factor, v, v)
			VCVTDQ2PS(v, v)
			VBROADCASTSS(Mem{Base: scales, Disp: 4 * row}, factor)
			VMULPS(scale, factor, factor)
			VFMADD213PS(shift, factor, v)
			VMOVUPS(v, out.at(row).Offset(32*part))
		}
	}
	done()
}
