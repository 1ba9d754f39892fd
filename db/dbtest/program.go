package dbtest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
)

// Program returns a testing.TB that stands for the whole test program. Values made with it live until all tests have
// run. Its Error fails the program, its Fatal panics.
func Program() testing.TB { return &program }

var program programTB

// programTB implements the methods of testing.TB that test helpers call. Any other method panics.
type programTB struct {
	testing.TB // nil

	mu       sync.Mutex
	cleanups []func()
	failed   bool
}

func (*programTB) Helper()                      {}
func (*programTB) Name() string                 { return "program" }
func (*programTB) Context() context.Context     { return context.Background() }
func (*programTB) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }
func (*programTB) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

func (p *programTB) Error(args ...any) { p.Errorf("%s", fmt.Sprint(args...)) }

func (p *programTB) Errorf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(os.Stderr, "the test program: "+format+"\n", args...)
	p.failed = true
}

func (p *programTB) Cleanup(fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanups = append(p.cleanups, fn)
}

func (p *programTB) TempDir() string {
	dir, err := os.MkdirTemp("", "loci-tests-")
	if err != nil {
		panic(err)
	}
	p.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			p.Errorf("%v", err)
		}
	})
	return dir
}

// end runs the cleanups, latest first, and reports whether the program failed.
func (p *programTB) end() (failed bool) {
	for _, fn := range slices.Backward(p.cleanups) {
		fn()
	}
	return p.failed
}
