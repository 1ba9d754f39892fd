package spool_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/loci-memory/loci/db/spool"
)

// Written bytes can be read from any position, repeatedly, both in memory and in a file.
func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string]int{"in a file": 0, "moved to a file": 10, "to the byte in memory": 3000,
		"in memory": 1 << 20} {
		s := &spool.Spool{Dir: t.TempDir(), Memory: memory}
		defer s.Close()
		var want []byte
		for i := range 1000 {
			p := bytes.Repeat([]byte{byte(i)}, 3)
			want = append(want, p...)
			if n, err := s.Write(p); n != 3 || err != nil {
				t.Fatalf("%s: wrote %d bytes, %v", name, n, err)
			}
		}
		for range 2 {
			if got, err := io.ReadAll(s.Reader()); err != nil || !bytes.Equal(got, want) || s.Size() != 3000 {
				t.Errorf("%s: read %d of %d bytes, %v", name, len(got), s.Size(), err)
			}
		}
		some := make([]byte, 6)
		if n, err := s.ReadAt(some, 999); n != 6 || err != nil || !bytes.Equal(some, want[999:1005]) {
			t.Errorf("%s: read %v (%d), %v", name, some, n, err)
		}
		if n, err := s.ReadAt(some, 2998); n != 2 || !errors.Is(err, io.EOF) {
			t.Errorf("%s: read %d bytes at the end, %v", name, n, err)
		}
		file, err := s.File()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: the file has %d bytes, %v", name, len(got), err)
		}
	}
}

// A Spool creates a file when it has more bytes than it may keep in memory, and not earlier.
func TestFewBytesNeedNoFile(t *testing.T) {
	t.Parallel()
	s := &spool.Spool{Dir: t.TempDir() + "/missing", Memory: 4}
	if n, err := io.Copy(s, strings.NewReader("four")); n != 4 || err != nil {
		t.Errorf("copied %d bytes, %v", n, err)
	}
	if _, err := s.Write([]byte("5")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the fifth byte, in a missing directory: %v, want ErrNotExist", err)
	}
}

// A caller can tell errors of the file from errors of the reader.
func TestFaultsAreToldApart(t *testing.T) {
	t.Parallel()
	broken := errors.New("the connection broke")
	s := &spool.Spool{Dir: t.TempDir()}
	defer s.Close()
	if _, err := io.Copy(s, iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("a reader that fails: %v", err)
	}
	missing := &spool.Spool{Dir: t.TempDir() + "/missing"}
	_, err := io.Copy(missing, strings.NewReader("text"))
	if _, is := errors.AsType[*fs.PathError](err); !is {
		t.Errorf("a file that cannot be made: %v, want a PathError", err)
	}
}

func TestSpoolsAreDeleted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &spool.Spool{Dir: dir}
	if _, err := s.Write([]byte("text")); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("an open spool has the name %v, %v", left, err)
	}
	s.Close()
	for _, name := range []string{"loci-spool-1", "loci-spool-", "other"} {
		if err := os.WriteFile(dir+"/"+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spool.Sweep(dir)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "other" {
		t.Errorf("%v is left, %v, want other", left, err)
	}
}
