package local

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// home is the locked directory of one private Postgres, and the account that Postgres runs as.
type home struct {
	dir     string
	lock    *os.File
	account account
}

func (h *home) data() string { return filepath.Join(h.dir, "postgres") }

// Exists reports whether a directory contains a cluster. It returns an error if this user may not look into the
// directory.
func Exists(dir string) (bool, error) {
	_, err := os.Stat((&home{dir: dir}).data())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// openHome creates the directory if needed, locks it, and checks that Postgres will be able to enter it.
func openHome(dir string) (*home, error) {
	named := dir
	dir, err := makeHome(named)
	if err != nil {
		return nil, fmt.Errorf("use %s as LOCI_HOME: %w; set it to a directory that can be written", named, err)
	}
	h := &home{dir: dir}
	if h.lock, err = lock(dir); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if h.account, err = accountFor(h.data()); err == nil {
		err = h.account.canEnter(dir)
	}
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func makeHome(dir string) (string, error) {
	if dir == "" {
		return dir, errors.New("its name is empty")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir, err
	}
	if _, err := os.Stat(abs); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(abs, 0o755); err != nil {
			return abs, err
		}
		// Under a strict umask, the user that Postgres runs as could not enter. Private directories below have their own
		// mode.
		if err := os.Chmod(abs, 0o755); err != nil {
			return abs, err
		}
	}
	return filepath.EvalSymlinks(abs)
}

// ErrInUse says that another process works on the directory.
var ErrInUse = errors.New("another Loci is running on it")

// lock locks the home for this process until the file is closed. The file stays; a second server reads this process's
// number from it for its error.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w; set LOCI_HOME to a directory of your own", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		pid, _ := os.ReadFile(f.Name())
		err = fmt.Errorf("%w (pid %s): stop it, or set LOCI_HOME to another directory", ErrInUse, bytes.TrimSpace(pid))
	} else if err == nil {
		err = os.WriteFile(f.Name(), fmt.Appendln(nil, os.Getpid()), 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (h *home) close() error {
	_ = syscall.Flock(int(h.lock.Fd()), syscall.LOCK_UN) // a child that is starting may still hold the file
	return h.lock.Close()
}

// own makes Postgres' account the owner of dir, and lets nobody else enter.
func (h *home) own(dir string) error {
	if c := h.account.credential; c != nil {
		if err := os.Chown(dir, int(c.Uid), int(c.Gid)); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o700)
}

// DefaultHome returns the directory for a private Postgres if the operator named none. It is the user's data directory;
// for root it is /var/lib/loci, because the user that Postgres runs as cannot enter root's home.
func DefaultHome() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/loci", nil
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "loci"), nil
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find a directory for the data (%w): set LOCI_HOME to one", err)
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(user, "Library", "Application Support", "loci"), nil
	}
	return filepath.Join(user, ".local", "share", "loci"), nil
}
