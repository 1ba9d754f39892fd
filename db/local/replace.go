package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// identity tells a file from an earlier file at the same path.
type identity struct {
	info os.FileInfo
	size int64
	at   time.Time
}

// files are the identities of the files that a running Postgres reads, its program and its libraries, by path.
type files map[string]identity

// filesOf returns a Postgres' files that are on disk now.
func filesOf(ctx context.Context, b Binaries) files {
	found := files{}
	paths := []string{filepath.Join(b.Dir, "postgres")}
	for _, dir := range libraryDirs(ctx, b.Dir) {
		for _, name := range []string{"plpgsql", "vector"} {
			for _, ending := range []string{".so", ".dylib"} {
				paths = append(paths, filepath.Join(dir, name+ending))
			}
		}
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			found[path] = identity{info, info.Size(), info.ModTime()}
		}
	}
	return found
}

// libraryDirs returns the directories where the libraries of the Postgres in dir may be.
func libraryDirs(ctx context.Context, dir string) []string {
	dirs := []string{filepath.Join(dir, "../lib"), filepath.Join(dir, "../lib/postgresql")}
	if named, err := output(ctx, filepath.Join(dir, "pg_config"), "--pkglibdir"); err == nil {
		dirs = append(dirs, named)
	}
	return dirs
}

// equal reports whether both are the same files.
func (f files) equal(other files) bool {
	if len(f) != len(other) {
		return false
	}
	for path, id := range f {
		otherID, ok := other[path]
		if !ok || !os.SameFile(id.info, otherID.info) || id.size != otherID.size || !id.at.Equal(otherID.at) {
			return false
		}
	}
	return true
}

// Changed reports whether the files on disk have changed since Postgres was started, as after an upgrade of its
// package. Postgres then cannot start new sessions.
func (s *Server) Changed(ctx context.Context) bool {
	return !s.running.Load().ended() && !filesOf(ctx, s.bin).equal(s.files)
}

const (
	settleEvery   = time.Second      // wait between two looks at files that are being replaced
	settleTimeout = 30 * time.Second // after this time, an incomplete Postgres counts as removed
)

// Replace ends Postgres and starts the one on disk, at the same URL, once its files no longer change. First it looks
// for a Postgres that can read the cluster. If there is none, as after an upgrade to another major version, Replace
// does nothing, and the error says what to do. It must not run at the same time as Stop or Restart.
func (s *Server) Replace(ctx context.Context) error {
	bin, err := s.settled(ctx)
	if err != nil {
		return fmt.Errorf("the Postgres %d that runs is no longer on disk, and cannot go on: %w. To move to another major "+
			"version, install this one again, run 'loci backup', and restore it with the new one under another LOCI_HOME",
			s.bin.Major, err)
	}
	s.replacing.Store(true)
	defer s.replacing.Store(false)
	s.journal.running.Store(false)
	s.interrupt(s.running.Load())
	s.bin = bin
	return s.startAgain(ctx)
}

// interrupt ends Postgres and its sessions. Committed data is written to disk.
func (s *Server) interrupt(child *child) {
	child.signal(syscall.SIGINT)
	patience := time.NewTimer(fastPatience)
	defer patience.Stop()
	select {
	case <-child.done:
	case <-patience.C:
		child.end(syscall.SIGQUIT)
	}
}

// settled returns the Postgres on disk for the cluster, once two looks in a row find the same files.
func (s *Server) settled(ctx context.Context) (Binaries, error) {
	deadline := time.Now().Add(settleTimeout)
	var previous files
	for {
		bin, err := binariesFor(ctx, s.wanted, s.home.data())
		if err == nil {
			current := filesOf(ctx, bin)
			if previous != nil && current.equal(previous) {
				return bin, nil
			}
			previous = current
		} else if time.Now().After(deadline) {
			return Binaries{}, err
		}
		select {
		case <-ctx.Done():
			return Binaries{}, errors.Join(err, ctx.Err())
		case <-time.After(settleEvery):
		}
	}
}

// Program returns the path of the running Postgres' program.
func (s *Server) Program() string { return filepath.Join(s.bin.Dir, "postgres") }
