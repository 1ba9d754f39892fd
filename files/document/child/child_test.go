package child_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/document/child"
)

// TestMain is also the program of the children: what its first argument names, and that is what a hostile document
// could make of one.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "prowl" {
		prowl(os.Args[4], os.Args[2], os.Args[3])
		os.Exit(0)
	}
	if len(os.Args) == 3 {
		if act, ok := acts[os.Args[1]]; ok {
			act(os.Args[2])
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

var acts = map[string]func(request string){
	"read": func(request string) {
		if err := child.Main(request); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	},
	"hog": func(request string) {
		child.Bound(request)
		for held := [][]byte{}; ; {
			held = append(held, bytes.Repeat([]byte{1}, 1<<20))
		}
	},
	"grab": func(request string) {
		child.Bound(request)
		for held := [][]byte{}; ; {
			held = append(held, bytes.Repeat([]byte{1}, 4<<30))
		}
	},
	"loop": func(request string) {
		child.Bound(request)
		for n := 0; ; n++ {
			_ = n
		}
	},
	"sleep":   func(string) { time.Sleep(time.Hour) },
	"crash":   func(string) { panic("no such table") },
	"trap":    func(string) { _ = syscall.Kill(os.Getpid(), syscall.SIGSEGV); time.Sleep(time.Hour) },
	"killed":  func(string) { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); time.Sleep(time.Hour) },
	"garbage": func(string) { fmt.Print("garbage\n", strings.Repeat("x", 1<<20)) },
	"empty":   func(string) {},
	"noise":   func(string) { fmt.Fprint(os.Stderr, strings.Repeat("noise ", 1<<20)); panic("at last") },
	"flood": func(string) {
		for chunk := bytes.Repeat([]byte("flood\n"), 1<<16); ; {
			if _, err := os.Stdout.Write(chunk); err != nil {
				return
			}
		}
	},
	"binary":    func(string) { fmt.Print(`{"text_bytes":4}`, "\na\x00\xffb") },
	"short":     func(string) { fmt.Print(`{"text_bytes":4}`, "\nabc") },
	"nameless":  func(string) { fmt.Print(`{"charset":"\u0000","text_bytes":4}`, "\nabcd") },
	"wild":      func(string) { fmt.Print(`{"text_bytes":4,"pages":[1,9]}`, "\nabcd") },
	"failing":   func(string) { fmt.Print(`{"failed":"no room for the cache"}`, "\n") },
	"environ":   func(string) { v := strings.Join(os.Environ(), " "); fmt.Printf("{\"text_bytes\":%d}\n%s", len(v), v) },
	"confesses": func(string) { fmt.Print(`{"unreadable":"It is a poem."}`, "\n") },
}

// cacheDir returns a directory of this user's children, which may be other users than those of another's.
func cacheDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("loci-test-children-%d", os.Getuid()))
}

// reader runs an act in place of a child.
func reader(t *testing.T, act string) *child.Reader {
	t.Helper()
	return &child.Reader{Command: []string{os.Args[0], act}, TempDir: t.TempDir()}
}

func pdf(body string) document.Input {
	return document.Input{MediaType: "application/pdf", SizeBytes: int64(len(body)), Body: strings.NewReader(body)}
}

func fixture(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../testdata/pdf", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestChildReads(t *testing.T) {
	t.Parallel()
	r := reader(t, "read")
	r.CPU, r.Patience = 5*time.Minute, 5*time.Minute // to compile, with the race detector too
	r.Document.CacheDir = cacheDir()
	got, err := r.Read(t.Context(), pdf(fixture(t, "libreoffice.pdf")))
	if err != nil || len(got.Pages) != 3 || !strings.Contains(got.Text,
		"the lighthouse keeper answers on channel twelve") {
		t.Errorf("got %q, %v, %v", got.Text, got.Pages, err)
	}
	if kept, err := filepath.Glob(filepath.Join(r.Document.CacheDir, "*", "*")); err != nil || len(kept) == 0 {
		t.Errorf("the cache holds %v, %v", kept, err)
	}
	if left, err := os.ReadDir(r.TempDir); err != nil || len(left) > 0 {
		t.Errorf("%v is left over, %v", left, err)
	}
	_, err = r.Read(t.Context(), pdf(fixture(t, "scanned.pdf")))
	if want := "The file holds no text: its 3 pages are images or empty. If it was scanned, run OCR on it and upload " +
		"the result."; !isUnreadable(err) || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

// A page of a gigabyte of zeros in 13 KB: what the sandbox or the child may have runs out.
func TestABombEndsInTheChild(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	stream := deflated(t, deflated(t, make([]byte, 1<<20), 1<<10), 1)
	r := reader(t, "read")
	r.CPU, r.Patience = 5*time.Minute, 5*time.Minute
	r.Document.CacheDir = cacheDir()
	_, err := r.Read(t.Context(), pdf("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<"+
		"</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"+
		"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 6 0 R>>endobj\n"+
		fmt.Sprintf("6 0 obj<</Length %d/Filter[/FlateDecode/FlateDecode]>>stream\n%s\nendstream endobj\ntrailer<"+
			"</Root 1 0 R>>\n", len(stream), stream)))
	if !isUnreadable(err) {
		t.Errorf("got %v, want an UnreadableError", err)
	}
}

// deflated packs what is repeated so many times.
func deflated(t *testing.T, raw []byte, times int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	for i := 0; i < times && err == nil; i++ {
		_, err = w.Write(raw)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPlainTextNeedsNoChild(t *testing.T) {
	t.Parallel()
	r := reader(t, "crash")
	for media, body := range map[string]string{"text/plain": "plain\n", "text/html": "<p>plain</p>"} {
		got, err := r.Read(t.Context(), document.Input{MediaType: media, SizeBytes: int64(len(body)),
			Body: strings.NewReader(body)})
		if err != nil || got.Text != "plain\n" {
			t.Errorf("%s: got %q, %v", media, got.Text, err)
		}
	}
	page := "<p>a large page</p>" + strings.Repeat(" ", 1<<20)
	large := document.Input{MediaType: "text/html", SizeBytes: int64(len(page)), Body: strings.NewReader(page)}
	if _, err := r.Read(t.Context(), large); !isUnreadable(err) {
		t.Errorf("a large page was not read in a child: %v", err)
	}
	r, large.Body = reader(t, "read"), strings.NewReader(page)
	if got, err := r.Read(t.Context(), large); err != nil || got.Text != "a large page\n" {
		t.Errorf("a large page: got %q, %v", got.Text, err)
	}
}

const (
	brokeDown = "This file made its reader break down: it is damaged, or made to do that. Open it in the program it " +
		"is for, save it again, and upload that."
	memory = "Reading this file needed more than 256 MiB of memory. Split it, or save it in a simpler form, and " +
		"upload that."
	patience = "Reading this file took more than 1s of computing. Split it, or save it in a simpler form, and " +
		"upload that."
)

func TestWhatADocumentDoesEndsInTheChild(t *testing.T) {
	t.Parallel()
	for act, want := range map[string]string{
		"hog": memory, "grab": memory, "loop": patience, "crash": brokeDown, "trap": brokeDown, "garbage": brokeDown,
		"empty": brokeDown,
		"noise": brokeDown, "flood": brokeDown, "binary": brokeDown, "short": brokeDown, "wild": brokeDown,
		"nameless": brokeDown, "confesses": "It is a poem.",
	} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			r := reader(t, act)
			r.MemoryBytes, r.Log, r.Patience = 256<<20, slog.New(slog.NewTextHandler(&log, nil)), 5*time.Minute
			if act == "loop" {
				r.CPU = time.Second
			}
			got, err := r.Read(t.Context(), pdf("%PDF-"))
			if !isUnreadable(err) || err.Error() != want || got.Text != "" {
				t.Errorf("got %.60q, %v, want %q", got.Text, err, want)
			}
			if act == "noise" && (log.Len() > 64<<10 || !strings.Contains(log.String(), "panic: at last")) {
				t.Errorf("the log has %d bytes: %.200q", log.Len(), log.String())
			}
		})
	}
}

func TestWhatIsNotTheDocumentsFault(t *testing.T) {
	t.Parallel()
	t.Run("the server stops", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		r := reader(t, "sleep")
		started := &signalling{Reader: strings.NewReader("%PDF-"), ended: cancel}
		if _, err := r.Read(ctx, document.Input{MediaType: "application/pdf", Body: started}); !errors.Is(err,
			context.Canceled) || isUnreadable(err) {
			t.Errorf("got %v, want Canceled", err)
		}
	})
	t.Run("others have the processors", func(t *testing.T) {
		t.Parallel()
		r := reader(t, "sleep")
		r.Patience = 100 * time.Millisecond
		if _, err := r.Read(t.Context(), pdf("%PDF-")); !errors.Is(err, document.ErrCutShort) || isUnreadable(err) {
			t.Errorf("got %v, want ErrCutShort", err)
		}
	})
	t.Run("somebody kills it", func(t *testing.T) {
		t.Parallel()
		if _, err := reader(t, "killed").Read(t.Context(), pdf("%PDF-")); !errors.Is(err, document.ErrCutShort) {
			t.Errorf("got %v, want ErrCutShort", err)
		}
	})
	t.Run("the child cannot try", func(t *testing.T) {
		t.Parallel()
		if _, err := reader(t, "failing").Read(t.Context(), pdf("%PDF-")); err == nil || isUnreadable(err) {
			t.Errorf("got %v, want an error that is not the document's", err)
		}
	})
	t.Run("there is no program", func(t *testing.T) {
		t.Parallel()
		r := &child.Reader{Command: []string{filepath.Join(t.TempDir(), "missing")}, TempDir: t.TempDir()}
		if _, err := r.Read(t.Context(), pdf("%PDF-")); !errors.Is(err, os.ErrNotExist) || isUnreadable(err) {
			t.Errorf("got %v, want ErrNotExist", err)
		}
	})
	t.Run("the document does not arrive", func(t *testing.T) {
		t.Parallel()
		r := reader(t, "read")
		in := document.Input{MediaType: "application/pdf", Body: io.MultiReader(strings.NewReader("%PDF-"),
			&signalling{Reader: strings.NewReader(""), err: io.ErrUnexpectedEOF})}
		if _, err := r.Read(t.Context(), in); !errors.Is(err, io.ErrUnexpectedEOF) || isUnreadable(err) {
			t.Errorf("got %v, want ErrUnexpectedEOF", err)
		}
	})
}

// signalling calls ended where its reader ends, and ends in err.
type signalling struct {
	io.Reader
	ended func()
	err   error
}

func (s *signalling) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err == nil {
		return n, nil
	}
	if s.ended != nil {
		s.ended()
	}
	if s.err != nil {
		err = s.err
	}
	return n, err
}

func TestChildHasNoSecrets(t *testing.T) {
	t.Setenv("LOCI_API_KEY", "sk-very-secret")
	got, err := reader(t, "environ").Read(t.Context(), pdf("%PDF-"))
	if err != nil || strings.Contains(got.Text, "LOCI") || strings.Contains(got.Text, "sk-very-secret") {
		t.Errorf("the child sees %q, %v", got.Text, err)
	}
}

func isUnreadable(err error) bool {
	_, ok := errors.AsType[*document.UnreadableError](err)
	return ok
}

// A child that a document has taken over finds no files but its own, no network and no way to more rights.
func TestAChildIsConfined(t *testing.T) {
	t.Parallel()
	if lacks := child.Unconfined(); lacks != "" {
		t.Fatalf("the kernel lets children %s", lacks)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s"), 0o666); err != nil {
		t.Fatal(err)
	}
	r := reader(t, "prowl")
	r.TempDir = reachable(t)
	r.Command = append(r.Command, secret, listener.Addr().String())
	got, err := r.Read(t.Context(), pdf("%PDF-"))
	if err != nil {
		t.Fatal(err)
	}
	want := "read the secret: denied\nwrite beside it: denied\nread /etc/passwd: denied\nrun /bin/true: denied\n" +
		"connect: denied\nlisten: denied\nsend: denied\nroot: false\nwrite a temporary file: done\n"
	if got.Text != want {
		t.Errorf("got\n%swant\n%s", got.Text, want)
	}
}

// reachable returns a directory that others than root can reach, as t.TempDir is not, and that no server sweeps.
func reachable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "loci-test-child-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// prowl tries what a child should not be able to do, and what it should.
func prowl(request, secret, addr string) {
	child.Bound(request)
	if err := child.Confine(request); err != nil {
		panic(err)
	}
	var b strings.Builder
	try := func(what string, err error) {
		outcome := "done"
		if errors.Is(err, fs.ErrPermission) {
			outcome = "denied"
		} else if err != nil {
			outcome = err.Error()
		}
		fmt.Fprintf(&b, "%s: %s\n", what, outcome)
	}
	_, err := os.ReadFile(secret)
	try("read the secret", err)
	try("write beside it", os.WriteFile(secret+"2", nil, 0o600))
	_, err = os.ReadFile("/etc/passwd")
	try("read /etc/passwd", err)
	ctx := context.Background()
	try("run /bin/true", exec.CommandContext(ctx, "/bin/true").Run())
	_, err = (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	try("connect", err)
	_, err = (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	try("listen", err)
	_, err = (&net.Dialer{}).DialContext(ctx, "udp", addr)
	try("send", err)
	fmt.Fprintf(&b, "root: %v\n", os.Geteuid() == 0)
	try("write a temporary file", os.WriteFile(filepath.Join(os.TempDir(), "x"), nil, 0o600))
	fmt.Printf("{\"text_bytes\":%d}\n%s", b.Len(), b.String())
}
