//go:build !cgo && linux && (amd64 || arm64)

package sandbox

func libraryCalls() []call { return nil }
