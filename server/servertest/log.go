package servertest

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/loci-memory/loci/db"
)

// Log is a handler of the log of a server that several tests use. It keeps the lines of each test: those of the test's
// organizations, and those of none that come while the test runs.
type Log struct{ tests *logsOfTests }

type logsOfTests struct {
	mu   sync.Mutex
	logs map[testing.TB]*logOfTest
}

type logOfTest struct {
	orgs map[db.Org]bool
	text bytes.Buffer
}

// NewLog returns a log without tests.
func NewLog() Log { return Log{&logsOfTests{logs: map[testing.TB]*logOfTest{}}} }

// Follow lets a test print the lines of an organization if it fails. It may be called for several organizations.
func (l Log) Follow(t testing.TB, org db.Org) {
	l.tests.mu.Lock()
	defer l.tests.mu.Unlock()
	if of := l.tests.logs[t]; of != nil {
		of.orgs[org] = true
		return
	}
	of := &logOfTest{orgs: map[db.Org]bool{org: true}}
	l.tests.logs[t] = of
	t.Cleanup(func() {
		l.tests.mu.Lock()
		defer l.tests.mu.Unlock()
		delete(l.tests.logs, t)
		if t.Failed() && of.text.Len() > 0 {
			t.Logf("the server's log:\n%s", &of.text)
		}
	})
}

// Text returns the lines of a test so far.
func (l Log) Text(t testing.TB) string {
	l.tests.mu.Lock()
	defer l.tests.mu.Unlock()
	if of := l.tests.logs[t]; of != nil {
		return of.text.String()
	}
	return ""
}

// Enabled implements slog.Handler.
func (Log) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (l Log) Handle(ctx context.Context, r slog.Record) error {
	l.tests.mu.Lock()
	defer l.tests.mu.Unlock()
	for _, of := range l.tests.logs {
		if org := db.OrgOf(ctx); org != 0 && !of.orgs[org] {
			continue
		}
		if err := slog.NewTextHandler(&of.text, nil).Handle(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// WithAttrs implements slog.Handler. The attributes are left out.
func (l Log) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler. The group is left out.
func (l Log) WithGroup(string) slog.Handler { return l }
