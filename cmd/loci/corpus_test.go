package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/files"
)

// question is a plausible question and the file that answers it.
type question struct{ text, file string }

// goPackages are the parts of Go's standard library that are ingested.
var goPackages = []string{
	"net/http",
	"encoding/json",
	"encoding/csv",
	"bufio",
	"regexp",
	"strings",
	"sort",
	"sync",
	"time",
	"os/exec",
	"context",
	"compress/gzip",
	"html/template",
	"mime/multipart",
	"path/filepath",
	"text/tabwriter",
}

var goQuestions = []question{
	{"how does the client follow redirects", "net/http/client.go"},
	{"which cookies are sent with a request, parse Set-Cookie header", "net/http/cookie.go"},
	{"serve files from a directory with range requests", "net/http/fs.go"},
	{"determine the Content-Type of data from its first 512 bytes", "net/http/sniff.go"},
	{"wait for a collection of goroutines to finish", "sync/waitgroup.go"},
	{"read a CSV record with quoted fields", "encoding/csv/reader.go"},
	{"find an executable in the PATH", "os/exec/lp_unix.go"},
	{"parse a duration string such as 1h30m", "time/format.go"},
	{"write aligned columns of text", "text/tabwriter/tabwriter.go"},
	{"replace a list of strings with replacements", "strings/replace.go"},
	{"stable sort keeps equal elements in their original order", "sort/sort.go"},
	{"maximum memory when parsing a multipart form", "mime/multipart/formdata.go"},
}

// manual is the directory of the PostgreSQL manual in Debian's package postgresql-doc-15.
const manual = "/usr/share/doc/postgresql-doc-15/html"

var manualQuestions = []question{
	{"how do I create an index without locking out writes", "sql-createindex.html"},
	{"run a query and return rows as JSON", "functions-json.html"},
	{"what does autovacuum do and when does it start", "routine-vacuuming.html"},
	{"prevent transaction ID wraparound failures", "routine-vacuuming.html"},
	{"which table lock modes conflict with each other", "explicit-locking.html"},
	{"replicate changes with publications and subscriptions", "logical-replication.html"},
	{"insert a row or update it if it exists already", "sql-insert.html"},
	{"restore a database to a point in time from archived WAL", "continuous-archiving.html"},
	{"authenticate users against an LDAP directory", "auth-ldap.html"},
	{"full text search ranking of documents", "textsearch-controls.html"},
	{"similarity of text by trigrams", "pgtrgm.html"},
	{"limit the memory that a sort may use before it writes to disk", "runtime-config-resource.html"},
}

// Every file of a real corpus is ingested. Without a model, questions find their files among the first five results,
// and grep_files agrees with the program grep.
func TestARealCorpus(t *testing.T) {
	scale.Long(t)
	t.Parallel()
	p := serve(t, "--database-url="+dbtest.OwnerURL(t))
	t.Run("Go's standard library", func(t *testing.T) {
		root := strings.TrimSpace(output(t, exec.CommandContext(t.Context(), "go", "env", "GOROOT"))) + "/src"
		p.ask(t, p.ingest(t, "go", root, goFiles(t, root)), goQuestions)
	})
	t.Run("grep agrees with grep", func(t *testing.T) {
		root := strings.TrimSpace(output(t, exec.CommandContext(t.Context(), "go", "env", "GOROOT"))) + "/src"
		for _, pattern := range []string{"func .*Redirect", "^package ", "errors?\\.New\\(", "TODO", "[0-9]{4,}",
			"\\bnil\\b.*\\bnil\\b", "^$^", "é|ü"} {
			want, got := systemGrep(t, root, pattern), p.grepAll(t, pattern)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-grep +loci):\n%s", pattern, diff)
			}
		}
	})
	t.Run("the PostgreSQL manual", func(t *testing.T) {
		pages, err := filepath.Glob(manual + "/*.html")
		if err != nil {
			t.Fatal(err)
		}
		if len(pages) == 0 {
			t.Logf("there is no manual at %s; install the package postgresql-doc-15 to have it asked", manual)
			return
		}
		p.ask(t, p.ingest(t, "manual", manual, pages), manualQuestions)
	})
}

// goFiles returns the sources of goPackages, without tests.
func goFiles(t *testing.T, root string) (paths []string) {
	t.Helper()
	for _, name := range goPackages {
		list, err := filepath.Glob(filepath.Join(root, name, "*.go"))
		if err != nil || len(list) == 0 {
			t.Fatalf("package %s: %v", name, err)
		}
		paths = append(
			paths,
			slices.DeleteFunc(list, func(path string) bool { return strings.HasSuffix(path, "_test.go") })...)
	}
	return paths
}

// ingest uploads files under their paths below root, and waits until all are completed. It returns an agent that has
// the files.
func (p *program) ingest(t *testing.T, name, root string, paths []string) (agent string) {
	t.Helper()
	folder := call[identified](p, "POST", "/v1/folders/", map[string]any{"name": name})
	size := 0
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		size += len(content)
		below, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		call[stored](p, "POST", "/v1/folders/"+folder.ID+"/upload?name="+below, fileForm(t, filepath.Base(path), content))
	}
	list := p.await(folder.ID)
	for _, f := range list {
		if f.Status != "completed" {
			t.Errorf("%s is %+v", f.FileName, f)
		}
	}
	if len(list) != len(paths) {
		t.Errorf("%d of %d files are there", len(list), len(paths))
	}
	t.Logf("%s: %d files, %d bytes", name, len(paths), size)
	return call[identified](p, "POST", "/v1/agents/", map[string]any{"name": name, "tool_set": "all",
		"folder_ids": []string{folder.ID}}).ID
}

var header = regexp.MustCompile(`(?m)^=== (\S+) `)

// ask searches for each question, and checks that its file is among the first five results.
func (p *program) ask(t *testing.T, agent string, questions []question) {
	t.Helper()
	for _, q := range questions {
		got := p.tool(agent, "semantic_search_files", map[string]any{"query": q.text, "limit": 5})
		var found []string
		for _, m := range header.FindAllStringSubmatch(got.Text, -1) {
			_, name, _ := strings.Cut(m[1], "/")
			found = append(found, name)
		}
		if !slices.Contains(found, q.file) {
			t.Errorf("%q: found %v, want %s", q.text, found, q.file)
		}
	}
}

var (
	matched = regexp.MustCompile(`^> (\d+): (.*)$`)
	inFile  = regexp.MustCompile(`^=== go/(\S+):\d+(-\d+)? ===$`)
	onward  = regexp.MustCompile(`offset=(\d+)`)
)

// grepAll returns all hits of grep_files, from all pages, as file:line:text.
func (p *program) grepAll(t *testing.T, pattern string) (all []string) {
	t.Helper()
	agents := call[[]identified](p, "GET", "/v1/agents/?name=go", nil)
	file := ""
	for offset := 0; ; {
		got := p.tool(
			agents[0].ID,
			"grep_files",
			map[string]any{"pattern": pattern, "offset": offset, "context_lines": 0, "case_sensitive": true},
		)
		if got.Status != "success" {
			t.Fatalf("%s: %+v", pattern, got)
		}
		for line := range strings.SplitSeq(got.Text, "\n") {
			if m := inFile.FindStringSubmatch(line); m != nil {
				file = m[1]
			} else if m := matched.FindStringSubmatch(line); m != nil {
				all = append(all, file+":"+m[1]+":"+m[2])
			}
		}
		_, last, _ := strings.Cut(got.Text, "To see more matches")
		next := onward.FindStringSubmatch(last)
		if next == nil {
			return all
		}
		offset, _ = strconv.Atoi(next[1])
	}
}

// systemGrep returns the hits of the program grep in the same files, in the order of their names, up to the number that
// grep_files shows.
func systemGrep(t *testing.T, root, pattern string) []string {
	t.Helper()
	var names []string
	for _, path := range goFiles(t, root) {
		below, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, below)
	}
	slices.Sort(names)
	cmd := exec.CommandContext(t.Context(), "grep", append([]string{"-nHE", "-e", pattern, "--"}, names...)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 { // 1 means that nothing was found
		t.Fatal(err)
	}
	if len(out) == 0 {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	return lines[:min(len(lines), files.GrepCap)]
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
