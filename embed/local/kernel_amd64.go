package local

import "golang.org/x/sys/cpu"

//go:generate sh -c "cd ../../tools && go run ./encoderkernels -pkg local -out ../embed/local/kernel_amd64.s -neon ../embed/local/kernel_arm64.s"

// kernels returns the kernels that this processor can run, the fastest first. GODEBUG=cpu.avx512f=off switches the
// first off, GODEBUG=cpu.avx2=off both.
func kernels() []*kernel {
	var found []*kernel
	if cpu.X86.HasAVX2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512VNNI {
		found = append(found, avx512)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		found = append(found, avx2)
	}
	return found
}

var avx512 = functions{
	quantize: quantizeAVX512, tile: tileAVX512, normalize: normalizeAVX512, gelu: geluAVX512,
	score: scoreAVX512, softmax: softmaxAVX512, weigh: weighAVX512,
}.kernel(kernel{name: "avx512vnni", tileRows: 6, tilePanels: 4, width: 1, queries: 6})

var avx2 = functions{
	quantize: quantizeAVX2, tile: tileAVX2, normalize: normalizeAVX2, gelu: geluAVX2,
	score: scoreAVX2, softmax: softmaxAVX2, weigh: weighAVX2,
}.kernel(kernel{name: "avx2", tileRows: 6, tilePanels: 1, width: 2, queries: 6})

//go:noescape
func quantizeAVX512(to *byte, values, factors *float32, n int) (scale float32, zero int32)

//go:noescape
func quantizeAVX2(to *byte, values, factors *float32, n int) (scale float32, zero int32)

//go:noescape
func normalizeAVX512(row, add, weight, bias *float32, n int, epsilon float32) //nolint:revive // six, as in the assembly

//go:noescape
func normalizeAVX2(row, add, weight, bias *float32, n int, epsilon float32) //nolint:revive // six, as in the assembly

//go:noescape
func geluAVX512(values *float32, n int)

//go:noescape
func geluAVX2(values *float32, n int)

//go:noescape
func tileAVX512(t *tile)

//go:noescape
func tileAVX2(t *tile)

//go:noescape
func scoreAVX512(a *attention)

//go:noescape
func scoreAVX2(a *attention)

//go:noescape
func softmaxAVX512(a *attention)

//go:noescape
func softmaxAVX2(a *attention)

//go:noescape
func weighAVX512(a *attention)

//go:noescape
func weighAVX2(a *attention)
