package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/files/sandbox"
)

// newHost returns a host whose launcher is the test's program.
func newHost(t *testing.T) *sandbox.Host {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host, err := sandbox.NewHost(t.Context(), "", self, "launch")
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// program returns a run of the program of a shell, which may run this test's program as ./probe.
func program(t *testing.T, host *sandbox.Host, script string) (sandbox.Program, *bytes.Buffer) {
	t.Helper()
	scratch, err := host.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(scratch.Close)
	var stdout bytes.Buffer
	return sandbox.Program{Command: []string{"/bin/sh", "-c", script}, Scratch: scratch, Stdout: &stdout,
		MemoryBytes: 1 << 30, CPU: time.Minute, Patience: 10 * time.Minute}, &stdout
}

// addProbe puts this test's program into the scratch folder, and returns its path for the program that runs.
func addProbe(t *testing.T, scratch *sandbox.Scratch) string {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	path, err := scratch.Add("probe", self)
	if err == nil {
		err = os.Chmod(filepath.Join(scratch.Dir, "probe"), 0o755) //nolint:gosec // it is to be run
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAProgramReadsItsInputAndWritesToItsFolder(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	p, stdout := program(t, host,
		`cat input.txt && cat && pwd && echo $HOME && echo new > out/file && test -r /etc/passwd`)
	if _, err := p.Scratch.Add("input.txt", strings.NewReader("from the folder, ")); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Scratch.AddDir("out"); err != nil {
		t.Fatal(err)
	}
	p.Stdin = strings.NewReader("from stdin\n")
	stderr, err := host.Run(t.Context(), p)
	want := "from the folder, from stdin\n" + p.Scratch.Inside + "\n" + p.Scratch.Inside + "\n"
	if err != nil || stdout.String() != want {
		t.Errorf("got %q, %v: %s, want %q", stdout, err, stderr, want)
	}
	file, err := p.Scratch.Open("out/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if written, err := io.ReadAll(file); string(written) != "new\n" || err != nil {
		t.Errorf("the file holds %q, %v", written, err)
	}
}

// A program of the operator that runs its input's code reaches neither the server's files nor other processes nor the
// network.
func TestAProgramIsConfined(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s"), 0o666); err != nil { //nolint:gosec // nobody is to be refused by its mode
		t.Fatal(err)
	}
	inherited, err := unix.Open(secret, unix.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	tcp, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	local, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	p, stdout := program(t, host, "")
	p.Command = []string{addProbe(t, p.Scratch), "trespass", secret, tcp.Addr().String(), local.Addr().String()}
	stderr, err := host.Run(t.Context(), p)
	if err != nil || !strings.HasSuffix(stdout.String(), "done\n") {
		t.Fatalf("got %v: %s%s", err, stdout, stderr)
	}
	for line := range strings.Lines(strings.TrimSuffix(stdout.String(), "done\n")) {
		t.Error("a program may " + strings.TrimSpace(line))
	}
}

// trespass tries what a program should not be able to do, and prints what it could do.
func trespass(args []string) {
	secret, tcp, local := args[0], args[1], args[2]
	ctx, parent := context.Background(), os.Getppid()
	environ := fmt.Sprintf("/proc/%d/environ", parent)
	var dialer net.Dialer
	dial := func(network, address string) error {
		c, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			err = c.Close()
		}
		return err
	}
	tries := map[string]func() error{
		"read the server's files":   func() error { _, err := os.ReadFile(secret); return err },
		"write the server's files":  func() error { return os.WriteFile(secret, nil, 0o600) },
		"change a file's mode":      func() error { return os.Chmod("probe", 0o600) },
		"cut a file":                func() error { return unix.Truncate(secret, 0) },
		"write beside its folder":   func() error { return os.WriteFile("/var/tmp/loci-planted", nil, 0o600) },
		"read private settings":     func() error { _, err := os.ReadFile("/etc/shadow"); return err },
		"read processes":            func() error { _, err := os.ReadFile(environ); return err },
		"connect to the network":    func() error { return dial("tcp", tcp) },
		"send to the network":       func() error { return dial("udp", tcp) },
		"connect to a local socket": func() error { return dial("unix", local) },
		"make a datagram socket": func() error {
			_, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			return err
		},
		"leave its group":     func() error { return unix.Setpgid(0, 0) },
		"begin a session":     func() error { _, err := unix.Setsid(); return err },
		"limit its parent":    func() error { return unix.Prlimit(parent, unix.RLIMIT_NOFILE, &unix.Rlimit{}, nil) },
		"slow its parent":     func() error { return unix.Setpriority(unix.PRIO_PROCESS, parent, 19) },
		"trace its parent":    func() error { return unix.PtraceAttach(parent) },
		"make namespaces":     func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
		"make namespaces (2)": newUser,
		"mount":               func() error { return unix.Mount("/", "/mnt", "", unix.MS_BIND, "") },
		"signal the server":   func() error { return unix.Kill(serverOf(parent), 0) },
		"share memory":        func() error { _, err := unix.SysvShmGet(1, 4096, unix.IPC_CREAT|0o666); return err },
		"use the ring of calls": func() error {
			_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
			return errno
		},
	}
	for name, try := range tries {
		if try() == nil {
			fmt.Println(name)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", "socket")
	if err != nil {
		fmt.Println("not listen at a socket of its own:", err)
	} else {
		_ = listener.Close()
	}
	if os.Geteuid() == 0 {
		fmt.Println("be root")
	}
	if fd := 3; unix.Fstat(fd, &unix.Stat_t{}) == nil {
		if name, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); strings.HasSuffix(name, "secret") {
			fmt.Println("use a descriptor of the server")
		}
	}
	fmt.Println("done")
}

func newUser() error {
	cmd := exec.Command("/bin/true") //nolint:noctx // it ends at once
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	return cmd.Run()
}

// serverOf returns the process that started the launcher. A program cannot find it, so this takes the first process.
func serverOf(int) int { return 1 }

func TestAProgramEndsAtItsLimits(t *testing.T) {
	scale.NotRaced(t) // the race detector's own memory is more than a program may have
	t.Parallel()
	host := newHost(t)
	for name, tt := range map[string]struct {
		script string
		change func(*sandbox.Program)
		want   error
	}{
		"a loop": {`while :; do :; done`, func(p *sandbox.Program) { p.CPU = time.Second }, sandbox.ErrCPU},
		"loops of several processes": {`for i in 1 2 3; do (while :; do :; done) & done; wait`,
			func(p *sandbox.Program) { p.CPU = time.Second }, sandbox.ErrCPU},
		"memory": {`exec ./probe gorge`, func(p *sandbox.Program) { p.MemoryBytes = 128 << 20 }, sandbox.ErrMemory},
		"memory of several processes": {`for i in 1 2 3; do ./probe nibble & done; wait`,
			func(p *sandbox.Program) { p.MemoryBytes = 256 << 20 }, sandbox.ErrMemory},
		"patience":          {`sleep 1000`, func(p *sandbox.Program) { p.Patience = time.Second }, sandbox.ErrPatience},
		"too many files":    {`i=0; while :; do i=$((i+1)); : > $i; done`, func(*sandbox.Program) {}, sandbox.ErrScratch},
		"a missing program": {"", func(p *sandbox.Program) { p.Command = []string{"/usr/bin/no-such"} }, sandbox.ErrConfined},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := program(t, host, tt.script)
			addProbe(t, p.Scratch)
			tt.change(&p)
			if stderr, err := host.Run(t.Context(), p); !errors.Is(err, tt.want) {
				t.Errorf("got %v: %s, want %v", err, stderr, tt.want)
			}
		})
	}
}

func TestAFailedProgramSaysWhy(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	p, _ := program(t, host, `echo no such language >&2; exit 3`)
	stderr, err := host.Run(t.Context(), p)
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 || stderr != "no such language\n" {
		t.Errorf("got %v: %q", err, stderr)
	}
	p, _ = program(t, host, `kill -SEGV $$`)
	if _, err := host.Run(t.Context(), p); err == nil {
		t.Error("a program that crashes has no error")
	}
}

// What a program writes is opened only if it is a file within its folder.
func TestOutputsAreFilesOfTheFolder(t *testing.T) {
	t.Parallel()
	host := newHost(t)
	p, _ := program(t, host,
		`mkfifo pipe && ln -s /etc/passwd link && mkdir -m 000 closed && ln -s /etc linked && echo x > file`)
	if stderr, err := host.Run(t.Context(), p); err != nil {
		t.Fatal(err, stderr)
	}
	for _, name := range []string{"pipe", "link", "linked/passwd", "closed", "../x"} {
		if file, err := p.Scratch.Open(name); err == nil {
			_ = file.Close()
			t.Errorf("%s is opened", name)
		}
	}
	if file, err := p.Scratch.Open("file"); err != nil || file.Close() != nil {
		t.Errorf("a file is not opened: %v", err)
	}
	dir := p.Scratch.Dir
	p.Scratch.Close()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}

// If the server is killed, its programs end, and the next server deletes their folders.
func TestAProgramEndsWithItsServer(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // programs may run as another user
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), self, "host", dir)
	stdout, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	started := make([]byte, len("started\n"))
	if _, err := io.ReadFull(stdout, started); err != nil {
		t.Fatal(err)
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(stdout); err != nil { // ends when the last process with the stream has ended
		t.Error(err)
	}
	_ = server.Wait() // it was killed
	if left, err := os.ReadDir(dir); err != nil || len(left) == 0 {
		t.Fatalf("a killed server leaves %v, %v, want its folder", left, err)
	}
	if _, err := sandbox.NewHost(t.Context(), dir, self, "launch"); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the next server leaves %v, %v", left, err)
	}
}

// serveProgram is a server with a program that runs until it is killed.
func serveProgram(dir string) {
	self, _ := os.Executable()
	host, err := sandbox.NewHost(context.Background(), dir, self, "launch")
	if err != nil {
		panic(err)
	}
	scratch, err := host.Scratch()
	if err != nil {
		panic(err)
	}
	_, _ = host.Run(context.Background(), sandbox.Program{Scratch: scratch, Stdout: os.Stdout, MemoryBytes: 1 << 30,
		Command: []string{"/bin/sh", "-c", "sleep 100000 & echo started; sleep 100000"}, CPU: time.Minute,
		Patience: 24 * time.Hour})
}
