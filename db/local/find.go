package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// The oldest versions with which Loci works.
const (
	minMajor  = 15
	minVector = "0.8"
	wanted    = "Postgres 15 or newer with pgvector 0.8 or newer"
)

// Binaries is an installed Postgres with pgvector.
type Binaries struct {
	// Dir contains postgres and initdb.
	Dir string
	// Major is the major version. A cluster's data must be of the same version.
	Major int
	// Vector is the version of pgvector, such as "0.8.0".
	Vector string
}

// Find returns the Postgres in the directory bin. If bin is empty, it searches PATH and the directories of packages,
// newest version first. The error is a sentence that says what to install.
func Find(ctx context.Context, bin string) (Binaries, error) {
	if bin != "" {
		b, err := inspect(ctx, bin)
		if err != nil {
			err = fmt.Errorf("LOCI_POSTGRES_BIN is %s, but %w: set it to the bin directory of %s", bin, err, wanted)
		}
		return b, err
	}
	if all := installed(ctx); len(all) > 0 {
		return all[0], nil
	}
	return Binaries{}, fmt.Errorf("no %s was found: install it with setup-postgres.sh, "+
		"set LOCI_POSTGRES_BIN to its bin directory, or run Loci with `docker compose up`", wanted)
}

// binariesFor returns the binaries for the cluster in data. They are those of Find, unless another major version wrote
// the data; then they are an installed Postgres of that version.
func binariesFor(ctx context.Context, bin, data string) (Binaries, error) {
	major, err := dataMajor(data)
	if err != nil {
		return Binaries{}, err
	}
	found, err := Find(ctx, bin)
	if err != nil || major == 0 || found.Major == major {
		return found, err
	}
	all := installed(ctx)
	if i := slices.IndexFunc(all, func(b Binaries) bool { return b.Major == major }); i >= 0 {
		return all[i], nil
	}
	return Binaries{}, fmt.Errorf("the data in %s was written by Postgres %d, but only Postgres %d is installed "+
		"with pgvector (in %s): install Postgres %d with pgvector, or set LOCI_HOME to another directory",
		data, major, found.Major, found.Dir, major)
}

// installed returns the usable Postgres installations in PATH and in the directories of packages.
func installed(ctx context.Context) []Binaries {
	var found []Binaries
	for _, dir := range usualDirs() {
		if b, err := inspect(ctx, dir); err == nil {
			found = append(found, b)
		}
	}
	return found
}

func usualDirs() []string {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",            // Debian, Ubuntu
		"/usr/pgsql-*/bin",                     // Postgres' own RPMs
		"/opt/homebrew/opt/postgresql@*/bin",   // Homebrew
		"/usr/local/opt/postgresql@*/bin",      // Homebrew on Intel
		"/usr/local/pgsql/bin",                 // from source
		"/Applications/Postgres.app/*/*/*/bin", // Postgres.app
	} {
		matches, _ := filepath.Glob(pattern) // fails only on a malformed pattern
		slices.Reverse(matches)
		dirs = append(dirs, matches...)
	}
	return dirs
}

// inspect returns the versions of the Postgres in dir. The error says in a few words why it cannot be used.
func inspect(ctx context.Context, dir string) (Binaries, error) {
	major, err := serverMajor(ctx, dir)
	if err != nil {
		return Binaries{}, err
	}
	b := Binaries{Dir: dir, Major: major, Vector: vectorVersion(ctx, dir)}
	switch {
	case major < minMajor:
		err = fmt.Errorf("its Postgres is version %d", major)
	case b.Vector == "":
		err = errors.New("its Postgres has no pgvector")
	case versionLess(b.Vector, minVector):
		err = fmt.Errorf("its pgvector is version %s", b.Vector)
	}
	return b, err
}

var versionLine = regexp.MustCompile(`^postgres \(PostgreSQL\) (\d+)`)

func serverMajor(ctx context.Context, dir string) (int, error) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return 0, errors.New("no initdb is there")
	}
	version, err := output(ctx, filepath.Join(dir, "postgres"), "--version")
	if err != nil {
		return 0, errors.New("no postgres that runs is there")
	}
	m := versionLine.FindStringSubmatch(version)
	if m == nil {
		return 0, fmt.Errorf("its postgres says it is %q", version)
	}
	return strconv.Atoi(m[1])
}

var versionSetting = regexp.MustCompile(`(?m)^default_version *= *'([^']+)'`)

// vectorVersion returns the version that CREATE EXTENSION would install, or "" if there is none.
func vectorVersion(ctx context.Context, dir string) string {
	// Some packages ship pg_config with the headers only. Then try the usual directories next to the binaries.
	shares := []string{filepath.Join(dir, "../share"), filepath.Join(dir, "../share/postgresql")}
	if share, err := output(ctx, filepath.Join(dir, "pg_config"), "--sharedir"); err == nil {
		shares = []string{share}
	}
	for _, share := range shares {
		control, _ := os.ReadFile(filepath.Join(share, "extension", "vector.control"))
		if m := versionSetting.FindSubmatch(control); m != nil {
			return string(m[1])
		}
	}
	return ""
}

// output runs a program for at most 10 s, and returns the first line of its output.
func output(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).Output()
	line, _, _ := cutLine(out)
	return line, err
}

var number = regexp.MustCompile(`\d+`)

// versionLess reports whether version a is lower than b. It compares number by number.
func versionLess(a, b string) bool {
	return slices.CompareFunc(number.FindAllString(a, -1), number.FindAllString(b, -1), func(x, y string) int {
		return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
	}) < 0
}
