package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Scratch is the only folder that a program may write to. Its owner closes it.
type Scratch struct {
	Dir    string // its path for the server
	Inside string // its path for the program: /tmp if the program has a /tmp of its own
	root   *os.Root
}

// scratchName begins the names of scratch folders. The number of their server's process follows.
const scratchName = "loci-run-"

// newScratch makes a folder in parent, or in the system's temporary directory if parent is empty. It belongs to the
// user of the program that will run.
func newScratch(parent string) (*Scratch, error) {
	dir, err := os.MkdirTemp(cmp.Or(parent, os.TempDir()), fmt.Sprintf("%s%d-", scratchName, os.Getpid()))
	if err != nil {
		return nil, err
	}
	s := &Scratch{Dir: dir, Inside: dir}
	if s.root, err = os.OpenRoot(dir); err == nil && os.Geteuid() == 0 {
		err = os.Chown(dir, nobody, nobody)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Add writes a file, and returns its path for the program.
func (s *Scratch) Add(name string, content io.Reader) (path string, err error) {
	file, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // the folder is private
	if err != nil {
		return "", err
	}
	_, err = io.Copy(file, content)
	return filepath.Join(s.Inside, name), errors.Join(err, file.Close())
}

// AddDir makes a folder, and returns its path for the program.
func (s *Scratch) AddDir(name string) (path string, err error) {
	if err := s.root.Mkdir(name, 0o700); err != nil {
		return "", err
	}
	if os.Geteuid() == 0 {
		err = s.root.Chown(name, nobody, nobody)
	}
	return filepath.Join(s.Inside, name), err
}

// Open opens a regular file that a program wrote. It follows no link out of the folder, and waits for no pipe.
func (s *Scratch) Open(name string) (*os.File, error) {
	file, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		_ = file.Close() // the error above says more
		return nil, err
	}
	return file, nil
}

// Names returns the names of the files in a folder that AddDir made.
func (s *Scratch) Names(dir string) ([]string, error) {
	entries, err := fs.ReadDir(s.root.FS(), dir)
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, err
}

// Limits of what a scratch folder holds.
const (
	maxScratchBytes = 1 << 30
	maxScratchFiles = 20_000
)

// isFull reports whether the folder holds more than it may.
func (s *Scratch) isFull() bool {
	files, size := 0, int64(0)
	_ = filepath.WalkDir(s.Dir, func(_ string, entry fs.DirEntry, err error) error {
		if files++; files > maxScratchFiles {
			return filepath.SkipAll
		}
		if err != nil {
			return nil //nolint:nilerr // the program deleted it
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	return files > maxScratchFiles || size > maxScratchBytes
}

// Close deletes the folder. The program has ended.
func (s *Scratch) Close() {
	if s.root != nil {
		_ = s.root.Close() // it was only read
	}
	removeScratch(s.Dir)
}

// removeScratch deletes a folder, also if a program took all rights from the folders in it.
func removeScratch(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // a folder needs it, and WalkDir names no links
		}
		return nil
	})
	_ = os.RemoveAll(dir) // what is left is swept at the next start
}

// sweepScratches deletes the folders of servers that were killed.
func sweepScratches(parent string) {
	left, _ := filepath.Glob(filepath.Join(cmp.Or(parent, os.TempDir()), scratchName+"*")) // fails only for a bad pattern
	for _, dir := range left {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), scratchName), "-")
		pid, err := strconv.Atoi(number)
		if err == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			removeScratch(dir)
		}
	}
}
