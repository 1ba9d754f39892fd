//go:build !amd64 && !arm64

package local

// kernels returns none: there is no kernel for other processors.
func kernels() []*kernel { return nil }
