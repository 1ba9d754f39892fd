//go:build !linux

package sandbox_test

func prowl(string) {}
func hoard(string) {}

func trespass([]string) {}

func serveProgram(string) {}
