package servertest_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/servertest"
)

// failing is a test that has failed. It records what is logged to it.
type failing struct {
	testing.TB
	logged   []string
	cleanups []func()
}

func (*failing) Failed() bool        { return true }
func (f *failing) Cleanup(fn func()) { f.cleanups = append(f.cleanups, fn) }
func (f *failing) Logf(_ string, args ...any) {
	f.logged = append(f.logged, args[0].(interface{ String() string }).String())
}

// A failing test prints the lines about its organizations and about none, and not lines about other organizations.
func TestAFailingTestPrintsItsOwnLines(t *testing.T) {
	t.Parallel()
	handler := servertest.NewLog()
	log, one, two := slog.New(handler), &failing{TB: t}, &failing{TB: t}
	handler.Follow(one, 1)
	handler.Follow(one, 3)
	handler.Follow(two, 2)
	for org, line := range map[db.Org]string{0: "of none", 1: "of the first", 2: "of another", 3: "of the third"} {
		log.InfoContext(db.WithOrg(context.Background(), org), line)
	}
	for _, fn := range append(one.cleanups, two.cleanups...) {
		fn()
	}
	got := strings.Join(one.logged, "")
	for line, want := range map[string]bool{"of none": true, "of the first": true, "of the third": true,
		"of another": false} {
		if strings.Contains(got, line) != want {
			t.Errorf("the line %s is printed: %t; want %t, in:\n%s", line, !want, want, got)
		}
	}
}
