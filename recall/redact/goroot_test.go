package redact_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
)

// justified counts the secrets in Go's sources by file and rule; they are keys in tests and documents. Another release
// may have fewer.
var justified = map[string]int{
	"cmd/go/internal/auth/userauth_test.go authorization-basic":      30,
	"cmd/go/internal/auth/gitauth_test.go named-secret":              1,
	"cmd/go/testdata/script/goauth_git.txt url-password":             1,
	"cmd/go/testdata/script/goauth_userauth.txt authorization-basic": 3,
	"crypto/ecdh/ecdh_test.go named-secret":                          3,
	"crypto/hpke/testdata/hpke-pq.json named-secret":                 26,
	"crypto/tls/example_test.go private-key":                         2,
	"crypto/tls/testdata/example-key.pem private-key":                1,
	"crypto/x509/platform_root_key.pem private-key":                  1,
	"net/http/client_test.go url-password":                           2,
	"net/http/proxy_test.go url-password":                            1,
	"net/url/url.go url-password":                                    1,
	"net/url/url_test.go url-password":                               4,
}

var placeholders = regexp.MustCompile(`\[REDACTED:([a-z0-9-]+):\d+:[0-9a-f]{8}\]`)

// skipped are directories that together are as large as the rest, with the same kind of content.
var skipped = []string{"/cmd/compile", "/cmd/internal", "/cmd/vendor", "/debug", "/internal/trace",
	"/runtime/testdata", "/syscall", "/vendor"}

// sources returns the directory of Go's own sources.
func sources(t testing.TB) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(root)), "src")
}

// Go's network packages (or all of Go's sources) contain the justified secrets and no others.
func TestCodeHasNoSecretsButThoseItHas(t *testing.T) {
	t.Parallel()
	root := sources(t)
	below := []string{filepath.Join(root, "net"), root, root}[scale.Of(0, 1)]
	bytes := 0
	err := filepath.WalkDir(below, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains(skipped, filepath.ToSlash(path[len(root):])) {
			return filepath.SkipDir
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		bytes += len(raw)
		found := map[string]int{}
		for _, m := range placeholders.FindAllStringSubmatch(plain.Redact(strings.ToValidUTF8(string(raw), "?")), -1) {
			found[filepath.ToSlash(path[len(root)+1:])+" "+m[1]]++
		}
		for where, n := range found {
			if n > justified[where] {
				t.Errorf("%s: found %d, want at most %d", where, n, justified[where])
			}
		}
		return nil
	})
	if err != nil || bytes < 2<<20 {
		t.Errorf("read %d bytes below %s: %v", bytes, below, err)
	}
}
