// Command encoderkernels writes the assembly of embed/local: with -out FILE the kernels for AVX2 and AVX-512 VNNI, with
// -neon FILE the kernels for NEON. `go generate ./embed/local` runs it. The kernels compute the same as oracle.go
// there.
//
// Its files, in order: main.go has the offsets of structs and the constants, which all kernels share; amd64.go has the
// kernels for AVX2 and AVX-512 VNNI; arm64.go the kernels for NEON.
package main

import (
	"flag"
	"log"
	"os"
)

// Offsets of fields of the structs in embed/local/kernel.go.
const (
	tileX, tileWeights, tileOut, tileScale, tileZero = 0, 24, 48, 72, 96
	tileWeightScale, tileWeightSum, tileBias         = 120, 144, 168
	tileColumns, tileStride                          = 192, 200
	attnQueries, attnKeys, attnValues, attnWeights   = 0, 24, 48, 72
	attnSums, attnOut, attnTokens, attnPadded        = 96, 120, 144, 152
	headSize, hidden, attendStride, attnRows         = 32, 384, 3 * 384, 6
)

// constants are the constants of kernel.go and oracle.go.
var constants = []float32{
	1.5 * (1 << 23), // roundMagic
	-100,            // leastExponent
	4.5, -4.5,       // geluEnd
	0.5,
	0.9999992847442627, 0.6931217908859253, 0.2402474284172058, 0.05591787025332451, 0.009570176713168621,
	0.3988891541957855, -0.06634557247161865, 0.009838207624852657, -0.0011241913307458162, 9.813566430239007e-05,
	-6.393614967237227e-06, 2.977865847242356e-07, -9.270845424680374e-09, 1.7147325226396504e-10,
	-1.4168739966013977e-12,
	-1e30, // tailScore
	255, 1, 0x1p-109,
}

const (
	roundMagic = iota
	leastExponent
	geluEnd
	geluStart
	half
	exp2Terms
	geluTerms = exp2Terms + 5
	tailScore = geluTerms + 10
)

const (
	most = tailScore + 1 + iota
	one
	leastSpan
)

func main() {
	neon := flag.String("neon", "", "the file that gets the kernels of NEON")
	flag.Parse()
	if err := os.WriteFile(*neon, arm64(), 0o644); err != nil {
		log.Fatal(err)
	}
	amd64()
}
