package local

// kernel is a set of functions for a processor. Every kernel returns the same bits as [oracle], which defines them.
type kernel struct {
	name string

	// A tile is tileRows rows of activations and tilePanels panels of weights. An activation takes width bytes; shift is
	// subtracted before it is stored.
	tileRows, tilePanels, width int
	shift                       int32

	// quantize writes the products of values and factors as integers, in the order and width that tile reads. A product is
	// nearly scale × (integer − zero). The number of values is a multiple of 16.
	quantize func(to []byte, values, factors []float32) (scale float32, zero int32)

	// tile multiplies some rows of activations with some panels of weights.
	tile func(*tile)

	// normalize adds two rows, stores the sum in the first one and normalizes it. The number of values is a multiple of
	// 16.
	normalize func(row, add []float32, n *layerNorm)

	// gelu applies the activation function. The number of values is a multiple of 16.
	gelu func(values []float32)

	// queries is how many rows of queries score, softmax and weigh take.
	queries int

	// score writes the products of queries and keys, softmax turns them into weights, and weigh adds up the weighted
	// values.
	score, softmax, weigh func(*attention)
}

// best returns the fastest kernel for this processor.
func best() *kernel {
	return append(kernels(), oracle)[0]
}

// tile is the product of some rows of activations with some rows of a matrix.
type tile struct {
	x           []byte    // activations, columns×width bytes per row
	weights     []byte    // panels of 16 rows, columns×16 bytes per panel
	out         []float32 // rows of stride values
	scale       []float32 // one per row of x
	zero        []int32   // one per row of x
	weightScale []float32 // one per row of weights
	weightSum   []int32   // one per row of weights
	bias        []float32 // one per row of weights
	columns     int
	stride      int
}

// attention is the input and the output of attention for some queries of one head in one text.
type attention struct {
	queries []float32 // rows of attendStride values; headPart of them belong to this head
	keys    []float32 // headPart rows of padded values: the keys as columns
	values  []float32 // headPart values per token
	weights []float32 // padded values per query
	sums    []float32 // per query: one divided by the sum of its weights
	out     []float32 // rows of attendedStride values; headPart of them belong to this head
	tokens  int       // of the text
	padded  int       // tokens rounded up to a multiple of 16
}

// The attention kernels take headPart values per row. Rows of queries are attendStride values apart, and rows of
// results attendedStride. Heads of other models are cut into parts of headPart values, and copied.
const (
	headPart       = 32
	attendStride   = 3 * attendedStride
	attendedStride = 384
)

// lanes is how many partial sums there are when values are added up, on every processor.
const lanes = 16

// Constants of the approximated functions. Both polynomials minimize the largest error.
const (
	// Adding and then subtracting roundMagic rounds a small float32 to the nearest even integer.
	roundMagic = 1.5 * (1 << 23)
	// leastExponent is the lowest power of two that softmax does not treat as 0.
	leastExponent = -100
	// Beyond geluEnd, the normal distribution counts as its value at geluEnd.
	geluEnd = 4.5
	// tailScore is the score of padding tokens.
	tailScore = -1e30
)

// exp2Terms give 2^x for x from -0.5 to 0.5, with a relative error below 3e-6.
var exp2Terms = [...]float32{
	0.9999992847442627, 0.6931217908859253, 0.2402474284172058, 0.05591787025332451, 0.009570176713168621,
}

// geluTerms give (Φ(x) - 0.5) ÷ x as a polynomial in x², for x up to geluEnd. The error of x·Φ(x) is below 5e-5.
var geluTerms = [...]float32{
	0.3988891541957855, -0.06634557247161865, 0.009838207624852657, -0.0011241913307458162, 9.813566430239007e-05,
	-6.393614967237227e-06, 2.977865847242356e-07, -9.270845424680374e-09, 1.7147325226396504e-10,
	-1.4168739966013977e-12,
}
