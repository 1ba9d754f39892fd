package local

import "golang.org/x/sys/cpu"

// kernels returns the kernels that this processor can run, the fastest first. GODEBUG=cpu.asimddp=off switches the
// first off, GODEBUG=cpu.asimd=off both.
func kernels() []*kernel {
	var found []*kernel
	if cpu.ARM64.HasASIMD && cpu.ARM64.HasASIMDDP {
		found = append(found, neonDot)
	}
	if cpu.ARM64.HasASIMD {
		found = append(found, neon)
	}
	return found
}

var neonDot = neonFunctions(tileNEONDot).kernel(kernel{
	name: "neondot", tileRows: 4, tilePanels: 1, width: 1, shift: 128, queries: 4,
})

var neon = neonFunctions(tileNEON).kernel(kernel{
	name: "neon", tileRows: 2, tilePanels: 1, width: 1, shift: 128, queries: 4,
})

func neonFunctions(tile func(*tile)) functions {
	return functions{
		quantize: quantizeNEON, tile: tile, normalize: normalizeNEON, gelu: geluNEON,
		score: scoreNEON, softmax: softmaxNEON, weigh: weighNEON,
	}
}

//go:noescape
func quantizeNEON(to *byte, values, factors *float32, n int) (scale float32, zero int32)

//go:noescape
func normalizeNEON(row, add, weight, bias *float32, n int, epsilon float32) //nolint:revive // six, as in the assembly

//go:noescape
func geluNEON(values *float32, n int)

//go:noescape
func tileNEONDot(t *tile)

//go:noescape
func tileNEON(t *tile)

//go:noescape
func scoreNEON(a *attention)

//go:noescape
func softmaxNEON(a *attention)

//go:noescape
func weighNEON(a *attention)
