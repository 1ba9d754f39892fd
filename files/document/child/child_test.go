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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/document/child"
	"github.com/loci-memory/loci/files/sandbox"
)

// TestMain also runs the children's program: its first argument names an act, such as one that a hostile document could
// make a child do.
func TestMain(m *testing.M) {
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
	"hog": func(string) {
		sandbox.Limit(256<<20, time.Second)
		for held := [][]byte{}; ; {
			held = append(held, bytes.Repeat([]byte{1}, 1<<20))
		}
	},
	"grab": func(string) {
		sandbox.Limit(256<<20, time.Second)
		for held := [][]byte{}; ; {
			held = append(held, bytes.Repeat([]byte{1}, 4<<30))
		}
	},
	"loop": func(string) {
		sandbox.Limit(256<<20, time.Second)
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
	"beyond":    func(string) { fmt.Print(`{"text_bytes":5,"pages":[1,3]}`, "\nabcd\n") },
	"blank end": func(string) { fmt.Print(`{"text_bytes":5,"pages":[1,2]}`, "\nabcd\n") },
	"omits": func(string) {
		fmt.Print(`{"text_bytes":5,"omitted":[{"kind":"macro","count":2,"where":""}]}`, "\nabcd\n")
	},
	"lies": func(string) { fmt.Print(`{"text_bytes":5,"omitted":[{"kind":"a\nb","count":2}]}`, "\nabcd\n") },
	"rambles": func(string) {
		one := `{"kind":"macro","count":2,"where":""}`
		fmt.Print(`{"text_bytes":5,"omitted":[`, strings.Repeat(one+",", document.MaxOmissions), one, "]}\nabcd\n")
	},
	"confesses": func(string) { fmt.Print(`{"unreadable":"It is a poem."}`, "\n") },
}

// cacheDir returns a directory of this user that stays between runs of the tests.
func cacheDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("loci-test-compiled-%d", os.Getuid()))
}

// reader returns a Reader with a child that runs an act.
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
	r.CPU, r.Patience = 5*time.Minute, 5*time.Minute // enough to compile, with the race detector too
	r.Document.CacheDir = cacheDir()
	got, err := r.Read(t.Context(), pdf(fixture(t, "libreoffice.pdf")))
	if err != nil || len(got.Pages) != 3 || !strings.Contains(got.Text,
		"the lighthouse keeper answers on channel twelve") {
		t.Errorf("got %q, %v, %v", got.Text, got.Pages, err)
	}
	if cached, err := filepath.Glob(filepath.Join(r.Document.CacheDir, "*", "*")); err != nil || len(cached) == 0 {
		t.Errorf("the cache holds %v, %v", cached, err)
	}
	if left, err := os.ReadDir(r.TempDir); err != nil || len(left) > 0 {
		t.Errorf("%v is left over, %v", left, err)
	}
	_, err = r.Read(t.Context(), pdf(fixture(t, "scanned.pdf")))
	if want := "The file holds no text: its 3 pages are images or empty. If it was scanned, run OCR on it and upload " +
		"the result. Or ask the operator to set LOCI_OCR_COMMAND, which has them read."; !isUnreadable(err) ||
		err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

// A page of a gigabyte of zeros, 13 KB packed: the child runs out of memory or time, or the sandbox does.
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

// deflated packs raw, repeated the given number of times.
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
		"empty": brokeDown, "beyond": brokeDown,
		"noise": brokeDown, "flood": brokeDown, "binary": brokeDown, "short": brokeDown, "wild": brokeDown,
		"nameless": brokeDown, "lies": brokeDown, "rambles": brokeDown, "confesses": "It is a poem.",
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

// An empty last page begins behind the last line.
func TestTheLastPageMayBeEmpty(t *testing.T) {
	t.Parallel()
	got, err := reader(t, "blank end").Read(t.Context(), pdf("%PDF-"))
	if err != nil || got.Text != "abcd\n" || !slices.Equal(got.Pages, []int{1, 2}) {
		t.Errorf("got %q with the pages %v, %v", got.Text, got.Pages, err)
	}
}

func TestAnAnswerSaysWhatTheTextOmits(t *testing.T) {
	t.Parallel()
	for act, want := range map[string][]document.Omission{
		"omits": {{Kind: "macro", Count: 2}}, "blank end": {},
	} {
		got, err := reader(t, act).Read(t.Context(), pdf("%PDF-"))
		if err != nil || got.Omitted == nil || !slices.Equal(got.Omitted, want) {
			t.Errorf("%s: got %#v, %v, want %v", act, got.Omitted, err, want)
		}
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
		if _, err := r.Read(t.Context(), pdf("%PDF-")); !errors.Is(err, document.ErrBusy) || isUnreadable(err) {
			t.Errorf("got %v, want ErrBusy", err)
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
		input := document.Input{MediaType: "application/pdf", Body: io.MultiReader(strings.NewReader("%PDF-"),
			&signalling{Reader: strings.NewReader(""), err: io.ErrUnexpectedEOF})}
		if _, err := r.Read(t.Context(), input); !errors.Is(err, io.ErrUnexpectedEOF) || isUnreadable(err) {
			t.Errorf("got %v, want ErrUnexpectedEOF", err)
		}
	})
}

// signalling calls ended at the end of its reader, and then returns err.
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

// A document can plant files only where children may write: nowhere. A child cannot replace the server's compiled
// programs.
func TestCompiledProgramsAreTheServersOwn(t *testing.T) {
	t.Parallel()
	r := reader(t, "read")
	r.CPU, r.Patience, r.Document.CacheDir = 5*time.Minute, 5*time.Minute, filepath.Join(t.TempDir(), "compiled")
	if _, err := r.Read(t.Context(), pdf(fixture(t, "libreoffice.pdf"))); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(r.Document.CacheDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		if !ok || int(owner.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
			t.Errorf("%s is another's, or another may write it: %v", path, info.Mode())
		}
		if !entry.IsDir() {
			files++
		}
		return nil
	})
	if err != nil || files == 0 {
		t.Errorf("%d files are kept, %v", files, err)
	}
}
