package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// home is the locked directory of one private Postgres, and the account that Postgres runs as.
type home struct {
	dir     string
	lock    *os.File
	account account
}

func (h *home) data() string { return filepath.Join(h.dir, "postgres") }

// openHome makes the directory if needed, locks it, and checks that Postgres will be able to enter it.
func openHome(dir string) (*home, error) {
	dir, err := makeHome(dir)
	if err != nil {
		return nil, fmt.Errorf("use %s as LOCI_HOME: %w; set it to a directory that can be written", dir, err)
	}
	h := &home{dir: dir}
	if h.lock, err = lock(dir); err != nil {
		return nil, err
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
		// A strict umask would keep out the user that Postgres runs as; private directories have their own mode.
		if err := os.Chmod(abs, 0o755); err != nil {
			return abs, err
		}
	}
	return filepath.EvalSymlinks(abs)
}

// lock locks the home for this process until the file is closed. The file stays: a second server reads the process
// number in it for its error.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w; set LOCI_HOME to a directory of your own", dir, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		pid, _ := os.ReadFile(f.Name())
		return nil, errors.Join(lockError(err, dir, strings.TrimSpace(string(pid))), f.Close())
	}
	if err := writePID(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
	}
	return f, nil
}

func lockError(err error, dir, pid string) error {
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("another Loci (pid %s) is running on %s: stop it, or set LOCI_HOME to another directory", pid, dir)
	}
	return fmt.Errorf("lock %s: %w", dir, err)
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := fmt.Fprintln(f, os.Getpid())
	return err
}

func (h *home) close() error {
	_ = syscall.Flock(int(h.lock.Fd()), syscall.LOCK_UN) // a process that is starting briefly has the file, too
	return h.lock.Close()
}

// privateDir makes dir, which only the account of Postgres can enter.
func (h *home) privateDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return h.own(dir)
}

func (h *home) own(dir string) error {
	if c := h.account.credential; c != nil {
		if err := os.Chown(dir, int(c.Uid), int(c.Gid)); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o700)
}

// userDataDir returns the platform's directory for a user's data.
func userDataDir() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "loci"), nil
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(user, "Library", "Application Support", "loci"), nil
	}
	return filepath.Join(user, ".local", "share", "loci"), nil
}
