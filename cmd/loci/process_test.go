package main

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/scale"
)

// serverProcess is a server in its own process, which a test can kill.
type serverProcess struct {
	t    testing.TB
	args []string
	tmp  string // directory for its temporary files

	mu   sync.Mutex
	cmd  *exec.Cmd
	base string
	log  *lines
}

// launchTwo starts two servers with the same arguments.
func launchTwo(t testing.TB, args ...string) []*serverProcess {
	t.Helper()
	scale.NotRaced(t)
	two := make([]*serverProcess, 2)
	for i := range two {
		two[i] = &serverProcess{t: t, tmp: t.TempDir(), log: newLines(),
			args: serveArgs(inRoles(args))}
		t.Cleanup(two[i].kill)
		two[i].start()
	}
	return two
}

// start runs the server, and waits until it serves.
func (p *serverProcess) start() {
	p.t.Helper()
	out := newLines()
	cmd := exec.CommandContext(context.Background(), os.Args[0], p.args...) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), "TMPDIR="+p.tmp)
	cmd.Stdout, cmd.Stderr = out, p.log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	p.cmd = cmd
	p.mu.Unlock()
	base := awaitServing(p.t, out, p.log, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.base = base
}

// awaitServing waits until a server has written its URL to out, and returns the URL. If ended is not nil, it receives
// the exit code of a server that ends instead.
func awaitServing(t testing.TB, out, log *lines, ended chan int) (base string) {
	t.Helper()
	deadline := time.After(patience)
	for {
		grown := out.more()
		if match := serves.FindStringSubmatch(out.String()); match != nil {
			return match[1]
		}
		select {
		case <-grown:
		case code := <-ended:
			ended <- 0
			t.Fatalf("the server ended with %d before it served:\n%s", code, log)
		case <-deadline:
			t.Fatalf("the server does not serve:\n%s", log)
		}
	}
}

// kill ends the server like a crash.
func (p *serverProcess) kill() {
	p.mu.Lock()
	cmd := p.cmd
	p.mu.Unlock()
	if cmd == nil {
		return // it never ran
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// url returns the URL of the server, or of its last run.
func (p *serverProcess) url() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.base
}

// killInTurn repeatedly kills one of the servers and starts it again, at moments that depend on seed, until enough is
// called or the test ends. Then all servers run.
func killInTurn(t testing.TB, servers []*serverProcess, seed int) (enough func()) {
	ctx, stop := context.WithCancel(t.Context())
	dice := rand.New(rand.NewPCG(uint64(seed), 1)) //nolint:gosec // repeatable
	var killing sync.WaitGroup
	killing.Go(func() {
		for db.Pause(ctx, time.Duration(50+dice.IntN(400))*time.Millisecond) {
			victim := servers[dice.IntN(len(servers))]
			victim.kill()
			victim.start() //nolint:contextcheck // it ends with the test
		}
	})
	enough = func() {
		stop()
		killing.Wait()
	}
	t.Cleanup(enough)
	return enough
}
