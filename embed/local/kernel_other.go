//go:build !amd64 && !arm64

package local

// kernels returns none: other processors have no kernel.
func kernels() []*kernel { return nil }
