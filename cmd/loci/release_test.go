package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
)

// shell runs a command in a directory, with additional environment variables, and returns its output.
func shell(t *testing.T, dir string, variables []string, name string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir, command.Env = dir, append(os.Environ(), variables...)
	out, err := command.CombinedOutput()
	return string(out), err
}

// A release has the name of the commit's tag, and its program prints that name. Its archive has only the files that the
// installation needs, and the checksum is the archive's. The same commit gives the same bytes. Only commits can be
// released.
func TestTheReleaseOfATag(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	platform := runtime.GOOS + "-" + runtime.GOARCH
	clone := filepath.Join(t.TempDir(), "loci")
	for _, args := range [][]string{{"clone", "--quiet", "../..", clone}, {"-C", clone, "tag", "v0.9.8"}} {
		if out, err := shell(t, "", nil, "git", args...); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	release := func() (archive []byte) {
		t.Helper()
		if out, err := shell(t, clone, nil, "scripts/release.sh", runtime.GOOS+"/"+runtime.GOARCH); err != nil {
			t.Fatalf("the release: %v: %s", err, out)
		}
		name := "loci-v0.9.8-" + platform + ".tar.gz"
		archive, err := os.ReadFile(filepath.Join(clone, "dist", name))
		if err != nil {
			t.Fatal(err)
		}
		sums, err := os.ReadFile(filepath.Join(clone, "dist", "SHA256SUMS"))
		if want := fmt.Sprintf("%x  %s\n", sha256.Sum256(archive), name); err != nil || string(sums) != want {
			t.Errorf("SHA256SUMS has %q, %v; want %q", sums, err, want)
		}
		return archive
	}
	archive := release()
	files := untar(t, archive, "loci-v0.9.8-"+platform+"/")
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md", "packaging/loci.service", "packaging/loci.env",
		"packaging/nginx.conf", "packaging/Caddyfile", "docs/install.md", "docs/operations.md", "docs/configuration.md",
		"docs/monitoring/alerts.yml", "docs/monitoring/grafana.json"} {
		if f := files[name]; len(f.content) == 0 || f.mode != 0o644 {
			t.Errorf("%s has %d bytes and the mode %o", name, len(f.content), f.mode)
		}
	}
	for name := range files {
		if !slices.Contains([]string{"", "docs", "docs/monitoring", "packaging"}, strings.Trim(filepath.Dir("/"+name), "/")) {
			t.Errorf("the archive has %s", name)
		}
	}
	for _, name := range []string{"loci", "setup-postgres.sh"} {
		if files[name].mode != 0o755 {
			t.Errorf("%s has the mode %o", name, files[name].mode)
		}
	}
	if runtime.GOOS == "linux" {
		isStatic(t, files["loci"].content)
	}
	program := filepath.Join(t.TempDir(), "loci")
	if err := os.WriteFile(program, files["loci"].content, 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	if out, err := shell(t, "", nil, program, "version"); err != nil || out != "v0.9.8\n" {
		t.Errorf("the program prints the version %q, %v", out, err)
	}
	linksLead(t, files)
	if again := release(); !bytes.Equal(again, archive) {
		t.Errorf("the same commit gives %d bytes and then %d others", len(archive), len(again))
	}
	if err := os.WriteFile(filepath.Join(clone, "README.md"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := shell(t, clone, nil, "scripts/release.sh"); err == nil ||
		!strings.Contains(out, "commit your changes") {
		t.Errorf("a release of changes: %v: %s", err, out)
	}
}

// packed is a file of an archive.
type packed struct {
	mode    int64
	content []byte
}

// untar returns the files of an archive by their names below a directory.
func untar(t *testing.T, archive []byte, directory string) map[string]packed {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]packed{}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(h.Name, directory)
		if !ok || h.Uid != 0 || h.Gid != 0 {
			t.Errorf("the archive has %s of the user %d", h.Name, h.Uid)
		}
		if h.Typeflag == tar.TypeReg {
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = packed{h.Mode, content}
		}
	}
}

// isStatic fails if a program needs a library.
func isStatic(t *testing.T, program []byte) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	if libraries, err := f.ImportedLibraries(); len(libraries) > 0 {
		t.Errorf("the program needs %v (%v)", libraries, err)
	}
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Error("the program needs a loader")
	}
}

// links matches the links in documents. code matches code, which contains no links.
var (
	links = regexp.MustCompile(`\]\(([^)#: ]+)(#[^)]*)?\)`)
	code  = regexp.MustCompile("`[^`]*`")
)

// linksLead fails if a document of an archive links to a file that is not in the archive.
func linksLead(t *testing.T, files map[string]packed) {
	t.Helper()
	for name, f := range files {
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		for _, link := range links.FindAllSubmatch(code.ReplaceAll(f.content, nil), -1) {
			target := filepath.Join(filepath.Dir(name), string(link[1]))
			_, exists := files[target]
			for other := range files {
				exists = exists || strings.HasPrefix(other, target+"/")
			}
			if !exists {
				t.Errorf("%s links to %s, which is not in the archive", name, link[1])
			}
		}
	}
}

// The image has no repository. Its program prints the version that the build was given; otherwise the version in the
// source.
func TestTheVersionOfTheImage(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	recipe, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^RUN (.* go build .*) -o /image/loci ./cmd/loci$`).FindSubmatch(recipe)
	if line == nil || !bytes.Contains(recipe, []byte("\nARG VERSION=\n")) {
		t.Fatalf("the Dockerfile builds the program otherwise:\n%s", recipe)
	}
	for given, want := range map[string]string{"v0.9.8": "v0.9.8\n", "": release + "\n"} {
		program := filepath.Join(t.TempDir(), "loci")
		build := string(line[1]) + " -buildvcs=false -o " + program + " ./cmd/loci"
		if out, err := shell(t, "../..", []string{"VERSION=" + given}, "sh", "-c", build); err != nil {
			t.Fatalf("%s: %v: %s", build, err, out)
		}
		if out, err := shell(t, "", nil, program, "version"); err != nil || out != want {
			t.Errorf("with VERSION=%q the program prints %q, %v; want %q", given, out, err, want)
		}
	}
}
