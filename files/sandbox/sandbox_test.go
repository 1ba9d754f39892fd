package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loci-memory/loci/files/sandbox"
)

// TestMain also runs the children's program: its first argument names an act, such as one that hostile input could make
// a child do.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if act, ok := acts[os.Args[1]]; ok {
			act(os.Args[2:])
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

const (
	memoryBytes = 64 << 20
	cpu         = time.Second
)

var acts = map[string]func(args []string){
	"hog": func([]string) {
		sandbox.Limit(memoryBytes, cpu)
		for held := [][]byte{}; ; {
			held = append(held, bytes.Repeat([]byte{1}, 1<<20))
		}
	},
	"grab": func([]string) {
		sandbox.Limit(memoryBytes, cpu)
		fmt.Println(len(bytes.Repeat([]byte{1}, 4<<30)))
	},
	"loop": func([]string) {
		sandbox.Limit(memoryBytes, cpu)
		for n := 0; ; n++ {
			_ = n
		}
	},
	"collector": func([]string) { // Go's garbage collector prints this if it gets no memory for its lists
		fmt.Fprintln(os.Stderr, "SIGSEGV: segmentation violation\nPC=0x437efd m=5 sigcode=1 addr=0x0\n\n"+
			"goroutine 0 gp=0x259d338025a0 m=5 mp=0x259d33b80008 [idle]:\nruntime.(*spanQueue).tryDrain(...)")
		os.Exit(2)
	},
	"sleep":   func([]string) { time.Sleep(time.Hour) },
	"crash":   func([]string) { panic("no such table") },
	"killed":  func([]string) { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); time.Sleep(time.Hour) },
	"noise":   func([]string) { fmt.Fprint(os.Stderr, strings.Repeat("noise ", 1<<20)); panic("at last") },
	"environ": func([]string) { fmt.Print(os.Environ()) },
	"scribble": func([]string) {
		all, _ := io.ReadAll(os.Stdin)
		_, err := os.Stdin.Write([]byte("x"))
		fmt.Print(string(all), ", ", errors.Is(err, syscall.EBADF))
	},
	"prowl": func(args []string) { prowl(args[0]) },
	"hoard": func(args []string) { hoard(args[0]) },

	"launch":   func(args []string) { sandbox.Launch(args[0]) },
	"trespass": func(args []string) { trespass(args) },
	"host":     func(args []string) { serveProgram(args[0]) },
	"gorge": func([]string) {
		for held := [][]byte{}; ; {
			held = append(held, bytes.Repeat([]byte{1}, 1<<20))
		}
	},
	"nibble": func([]string) {
		held := bytes.Repeat([]byte{1}, 128<<20)
		time.Sleep(time.Hour)
		fmt.Println(len(held))
	},
}

func run(ctx context.Context, t *testing.T, patience time.Duration, command ...string) (string, error) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	child := sandbox.Child{Command: append([]string{program}, command...), Stdout: &stdout, Patience: patience}
	stderr, err := child.Run(ctx)
	return stdout.String() + stderr, err
}

func TestARunSaysWhyItHasNoAnswer(t *testing.T) {
	t.Parallel()
	for act, want := range map[string]error{
		"hog": sandbox.ErrMemory, "grab": sandbox.ErrMemory, "loop": sandbox.ErrCPU, "killed": sandbox.ErrKilled,
		"collector": sandbox.ErrMemory, "environ": nil,
	} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			if output, err := run(t.Context(), t, 10*time.Minute, act); !errors.Is(err, want) {
				t.Errorf("got %v, want %v: %.300s", err, want, output)
			}
		})
	}
	t.Run("it crashes", func(t *testing.T) {
		t.Parallel()
		for _, act := range []string{"crash", "noise"} {
			output, err := run(t.Context(), t, 10*time.Minute, act)
			if _, ok := errors.AsType[*exec.ExitError](err); !ok || !strings.Contains(output, "panic: ") {
				t.Errorf("%s: got %v, want an ExitError and a panic in %d bytes", act, err, len(output))
			}
		}
	})
	t.Run("it is not done in its time", func(t *testing.T) {
		t.Parallel()
		if _, err := run(t.Context(), t, 100*time.Millisecond, "sleep"); !errors.Is(err, sandbox.ErrPatience) {
			t.Errorf("got %v, want ErrPatience", err)
		}
	})
	t.Run("the caller leaves", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := run(ctx, t, 10*time.Minute, "sleep"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want Canceled", err)
		}
	})
	t.Run("there is no program", func(t *testing.T) {
		t.Parallel()
		missing := []string{filepath.Join(t.TempDir(), "missing")}
		_, err := sandbox.Child{Command: missing, Patience: time.Minute}.Run(t.Context())
		if !errors.Is(err, sandbox.ErrStart) || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v, want ErrStart and ErrNotExist", err)
		}
	})
}

// A child reads its input from the beginning and cannot write to the input's file.
func TestAChildCannotWriteToItsInput(t *testing.T) {
	t.Parallel()
	stdin, err := os.OpenFile(filepath.Join(t.TempDir(), "in"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if _, err := stdin.WriteAt([]byte("input"), 0); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	child := sandbox.Child{Command: []string{program, "scribble"}, Stdin: stdin, Stdout: &stdout,
		Patience: 10 * time.Minute}
	if stderr, err := child.Run(t.Context()); err != nil || stdout.String() != "input, true" {
		t.Errorf("the child says %q, %v: %s", stdout.String(), err, stderr)
	}
}

func TestAChildHasNoSecrets(t *testing.T) {
	t.Setenv("LOCI_API_KEY", "sk-very-secret")
	if out, err := run(t.Context(), t, 10*time.Minute, "environ"); err != nil || out != "[]" {
		t.Errorf("the child sees %q, %v", out, err)
	}
}
