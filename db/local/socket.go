package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	socketName = ".s.PGSQL.5432"
	// maxSocketPath is in bytes, with room to spare: macOS allows 103, Linux 107.
	maxSocketPath = 99
)

// socket is the private directory of the server's unix socket.
type socket struct {
	dir string
	// record is a file that names a temporary directory for the next start. It is empty if the directory is in the home.
	record string
}

// openSocket creates the directory. It removes a crashed server's socket and its lock file, which names a process
// number that may be in use again.
func (h *home) openSocket() (socket, error) {
	s, err := h.socketDir()
	if err != nil {
		return s, err
	}
	path := filepath.Join(s.dir, socketName)
	return s, errors.Join(os.RemoveAll(path), os.RemoveAll(path+".lock"))
}

// socketDir returns a directory in the home. It returns a temporary one if the home's path is too long for a socket, or
// contains a comma, which separates hosts in a URL. It reuses a temporary directory that a crash left.
func (h *home) socketDir() (socket, error) {
	s := socket{dir: filepath.Join(h.dir, "run")}
	if fits(s.dir) {
		if err := os.Mkdir(s.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return s, err
		}
		return s, h.own(s.dir)
	}
	s.record = filepath.Join(h.dir, "socket-directory")
	if dir, err := os.ReadFile(s.record); err == nil && h.ownsPrivate(string(dir)) {
		s.dir = string(dir)
		return s, nil
	}
	dir, err := h.temporaryDir()
	if err != nil {
		return socket{}, fmt.Errorf("make a directory for the socket of Postgres: %w", err)
	}
	s.dir = dir
	return s, os.WriteFile(s.record, []byte(dir), 0o600)
}

func fits(dir string) bool {
	return len(filepath.Join(dir, socketName)) <= maxSocketPath && !strings.Contains(dir, ",")
}

// ownsPrivate reports whether dir is a private directory of this server, rather than another user's.
func (h *home) ownsPrivate(dir string) bool {
	owner := os.Geteuid()
	if c := h.account.credential; c != nil {
		owner = int(c.Uid)
	}
	var stat syscall.Stat_t
	return syscall.Lstat(dir, &stat) == nil && stat.Mode == syscall.S_IFDIR|0o700 && int(stat.Uid) == owner
}

func (h *home) temporaryDir() (string, error) {
	for _, parent := range []string{os.TempDir(), "/tmp"} {
		if !fits(filepath.Join(parent, "loci-0123456789")) || h.account.canEnter(parent) != nil {
			continue
		}
		if dir, err := os.MkdirTemp(parent, "loci-*"); err == nil {
			return dir, h.own(dir)
		}
	}
	return "", fmt.Errorf("%s is too long a path for a socket, and %s and /tmp cannot be used: "+
		"set LOCI_HOME to a shorter one", h.dir, os.TempDir())
}

// remove deletes a temporary directory and its record. A directory in the home stays.
func (s socket) remove() error {
	if s.record == "" {
		return nil
	}
	return errors.Join(os.RemoveAll(s.dir), os.Remove(s.record))
}

// url returns a URL that sets everything which the environment could override. A space is %20, because Postgres'
// clients do not decode a plus.
func (s socket) url(database, role string) string {
	return "postgres:///" + database + "?" + strings.ReplaceAll(url.Values{
		"host":                 {s.dir},
		"port":                 {"5432"},
		"user":                 {role},
		"sslmode":              {"disable"},
		"target_session_attrs": {"any"},
	}.Encode(), "+", "%20")
}

// prepare creates the database and the extension unless they exist.
func prepare(ctx context.Context, s socket) error {
	err := execute(ctx, s.url("loci", superuser), "CREATE EXTENSION IF NOT EXISTS vector")
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == pgerrcode.InvalidCatalogName {
		if err = execute(ctx, s.url("postgres", superuser), "CREATE DATABASE loci"); err == nil {
			err = execute(ctx, s.url("loci", superuser), "CREATE EXTENSION IF NOT EXISTS vector")
		}
	}
	if err != nil {
		return fmt.Errorf("prepare the database: %w", err)
	}
	return nil
}

func execute(ctx context.Context, url, statement string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}
