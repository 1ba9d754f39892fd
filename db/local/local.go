// Package local runs a private Postgres for one machine, as a child of this process. It finds the binaries, keeps one
// cluster under a home directory, listens on a unix socket that only its user can reach, and ends when its parent ends.
//
// Each file uses only the files named before it:
//   - the machine: account.go process.go process_linux.go process_other.go memory.go
//   - the home directory, its cluster, and what a server writes: home.go journal.go cluster.go socket.go pidfile.go
//   - the installed binaries: find.go
//   - the server: settings.go replace.go local.go
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Options are the settings of a private Postgres.
type Options struct {
	// Home is the directory with the cluster. Start creates it if it is missing. Only one server at a time runs on it.
	Home string
	// Bin is the directory of the binaries. If it is empty, Find searches for them.
	Bin string
	// Log receives what Postgres reports: warnings as warnings, routine lines at debug level. If it is nil, nothing is
	// logged.
	Log *slog.Logger
	// Settings go on the server's command line. They override Loci's settings and those of postgresql.conf.
	Settings map[string]string
}

// Server is a running private Postgres. The caller of Start calls Stop, also after Done.
type Server struct {
	home     *home
	socket   socket
	wanted   string // Options.Bin
	bin      Binaries
	files    files // files of bin, recorded before Postgres started
	settings map[string]string
	running  atomic.Pointer[child]
	journal  *journal
	stop     sync.Once
	stopErr  error
	stopping atomic.Bool

	replacing atomic.Bool
}

// Start runs Postgres on the cluster under o.Home, and creates the cluster first if there is none. It returns once the
// database "loci" with the extension "vector" answers. Before, it disarms the pid file of a crashed server, and stops a
// server that has outlived its parent. Errors are sentences for the operator. Start never deletes data. If ctx ends,
// the start is given up; a started server keeps running.
func Start(ctx context.Context, o Options) (*Server, error) {
	h, err := openHome(o.Home)
	if err != nil {
		return nil, err
	}
	log := cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Server{home: h, wanted: o.Bin, settings: o.Settings, journal: &journal{log: log}}
	if s.bin, err = binariesFor(ctx, o.Bin, h.data()); err == nil {
		err = h.initialize(ctx, s.bin)
	}
	if err == nil {
		err = s.startAgain(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// startAgain starts the server on its cluster, after removing what an earlier server left. The last processes of a
// crashed server may still hold its shared memory and end a little later, so startAgain tries for a while.
func (s *Server) startAgain(ctx context.Context) (err error) {
	if err = takeOver(ctx, s.home.data()); err != nil {
		return err
	}
	if s.socket, err = s.home.openSocket(); err != nil {
		return err
	}
	deadline := time.Now().Add(orphanPatience)
	for {
		if err = s.launch(ctx); !errors.Is(err, errMemoryInUse) || time.Now().After(deadline) {
			return err
		}
	}
}

// Restart starts Postgres again, at the same URL, after it ended by itself. It does nothing while Postgres runs, and
// fails after Stop. It must not run at the same time as Stop.
func (s *Server) Restart(ctx context.Context) error {
	if s.stopping.Load() {
		return errors.New("Postgres was stopped")
	}
	if !s.running.Load().ended() {
		return nil
	}
	s.journal.running.Store(false)
	return s.startAgain(ctx)
}

func (s *Server) launch(ctx context.Context) error {
	s.files = filesOf(ctx, s.bin)
	cmd := s.home.command(ctx, s.bin, "postgres", s.arguments()...)
	s.journal.reset()
	cmd.Stdout, cmd.Stderr = s.journal, s.journal
	child, err := spawn(cmd)
	if err != nil {
		return fmt.Errorf("start Postgres as user %s: %w", s.home.account.name, err)
	}
	s.running.Store(child)
	if err = s.awaitReady(ctx); err == nil {
		err = prepare(ctx, s.socket)
	}
	if err != nil {
		child.end(syscall.SIGINT)
		return err
	}
	s.journal.running.Store(true)
	return nil
}

// awaitReady waits until the pid file says that the server accepts connections.
func (s *Server) awaitReady(ctx context.Context) error {
	child := s.running.Load()
	err := poll(ctx, func() bool {
		f := readPIDFile(s.home.data())
		return f.ready && f.pid == child.cmd.Process.Pid || child.ended()
	})
	switch {
	case err != nil:
		return fmt.Errorf("wait for Postgres in %s: %w", s.home.data(), err)
	case child.ended():
		return s.journal.explain("Postgres in " + s.home.data() + " ended while starting")
	}
	return nil
}

// URL returns the URL of the database "loci" for the superuser, through the unix socket. pgx and libpq understand it.
func (s *Server) URL() string { return s.socket.url("loci", superuser) }

// ServingURL returns the URL of the same database for the role "loci_server". Start does not create that role.
func (s *Server) ServingURL() string { return s.socket.url("loci", serving) }

// Done returns a channel that is closed when Postgres has ended, by Stop or by itself. After a Restart it returns
// another channel.
func (s *Server) Done() <-chan struct{} { return s.running.Load().done }

// Err returns why Postgres ended without Stop. It is nil while Postgres runs and after Stop.
func (s *Server) Err() error {
	child := s.running.Load()
	switch {
	case s.stopping.Load() || !child.ended():
		return nil
	case s.replacing.Load():
		return errReplaced
	}
	return s.journal.explain(fmt.Sprintf("Postgres in %s ended by itself (%v)", s.home.data(), child.cmd.ProcessState))
}

// errReplaced is the error of a Postgres that was ended to start another version.
var errReplaced = errors.New("Postgres is restarted, because its files were replaced")

// Stop shuts Postgres down and waits until it has ended: it closes open connections, rolls back transactions, and
// writes everything to disk. If ctx ends first, the server is ended at once and recovers on its next start; Stop then
// returns an error.
func (s *Server) Stop(ctx context.Context) error {
	s.stop.Do(func() { s.stopErr = errors.Join(s.shutDown(ctx), s.release()) })
	return s.stopErr
}

func (s *Server) shutDown(ctx context.Context) error {
	child := s.running.Load()
	if child.ended() {
		return nil
	}
	s.stopping.Store(true)
	s.journal.running.Store(false)
	child.signal(syscall.SIGINT)
	select {
	case <-child.done:
		return nil
	case <-ctx.Done():
		child.end(syscall.SIGQUIT)
		return fmt.Errorf("stop Postgres in %s cleanly: %w; it recovers on its next start", s.home.data(), ctx.Err())
	}
}

func (s *Server) release() error { return errors.Join(s.socket.remove(), s.home.close()) }
