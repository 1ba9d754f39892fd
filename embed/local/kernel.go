package local

// kernel is what a processor computes with. Every kernel returns the same bits as [oracle], which says what they are.
type kernel struct {
	name string

	// tileRows rows of activations and tilePanels panels of weights are one tile. An activation takes width bytes, and is
	// stored less shift.
	tileRows, tilePanels, width int
	shift                       int32

	// quantize writes the values times factors as integers, in the order and the width that tile reads. A product is
	// nearly scale times the integer minus zero. The number of values is a multiple of 16.
	quantize func(to []byte, values, factors []float32) (scale float32, zero int32)

	// tile multiplies some rows of activations with some panels of weights.
	tile func(*tile)

	// normalize adds two rows into the first and normalizes it. The rows have a multiple of 16 values.
	normalize func(row, add []float32, n *layerNorm)

	// gelu applies the activation function to a multiple of 16 values.
	gelu func(values []float32)

	// queries is how many rows of queries score, softmax and weigh take.
	queries int

	// score writes the products of queries and keys, softmax makes the weights of these, weigh adds the values up.
	score, softmax, weigh func(*attention)
}

// best returns the fastest kernel of this processor.
func best() *kernel {
	return append(kernels(), oracle)[0]
}

// tile is the product of some rows of activations with some rows of a matrix.
type tile struct {
	x           []byte    // activations, columns×width bytes a row
	weights     []byte    // panels of 16 rows, columns×16 bytes a panel
	out         []float32 // its row is stride values long
	scale       []float32 // of each row of x
	zero        []int32   // of each row of x
	weightScale []float32 // of each row of weights
	weightSum   []int32   // of each row of weights
	bias        []float32 // of each row of weights
	columns     int
	stride      int
}

// attention is what some queries of one head take from the keys and values of one text.
type attention struct {
	queries []float32 // a row is attendStride values long, headPart of which are of this head
	keys    []float32 // headPart rows of padded values: the keys as columns
	values  []float32 // of each token, headPart values
	weights []float32 // of each query, padded values
	sums    []float32 // of each query: one divided by the sum of its weights
	out     []float32 // a row is attendedStride values long, headPart of which are of this head
	tokens  int       // of the text
	padded  int       // tokens rounded up to a multiple of 16
}

// What the kernels of attention take: headPart values of each row, where rows of queries lie attendStride values apart,
// and rows of results attendedStride. Heads of other models are cut into parts of headPart values, and copied.
const (
	headPart       = 32
	attendStride   = 3 * attendedStride
	attendedStride = 384
)

// lanes is how many sums run side by side where values are added up, on every processor.
const lanes = 16

// Constants of the functions that are approximated. Both polynomials are least-maximum fits.
const (
	// roundMagic added to a small float32 and taken away again rounds it to the nearest even integer.
	roundMagic = 1.5 * (1 << 23)
	// leastExponent is the least power of two that softmax tells from nothing.
	leastExponent = -100
	// geluEnd is from where on the normal distribution is taken as that of geluEnd.
	geluEnd = 4.5
	// tailScore is the score of tokens that are not there.
	tailScore = -1e30
)

// exp2Terms give 2^x for x from -0.5 to 0.5, with a relative error below 3e-6.
var exp2Terms = [...]float32{
	0.9999992847442627, 0.6931217908859253, 0.2402474284172058, 0.05591787025332451, 0.009570176713168621,
}

// geluTerms give (Φ(x) - 0.5) ÷ x by x², for x up to geluEnd; the error of x·Φ(x) is below 5e-5.
var geluTerms = [...]float32{
	0.3988891541957855, -0.06634557247161865, 0.009838207624852657, -0.0011241913307458162, 9.813566430239007e-05,
	-6.393614967237227e-06, 2.977865847242356e-07, -9.270845424680374e-09, 1.7147325226396504e-10,
	-1.4168739966013977e-12,
}
