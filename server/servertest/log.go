package servertest

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/loci-memory/loci/db"
)

// Log is the log handler of a server that several tests share. For each test it keeps the lines about the test's
// organizations, and lines about no organization that come while the test runs.
type Log struct{ tests *logsOfTests }

type logsOfTests struct {
	mu   sync.Mutex
	logs map[testing.TB]*logOfTest
}

type logOfTest struct {
	orgs map[db.Org]bool
	text bytes.Buffer
}

// NewLog returns a log that follows no test.
func NewLog() Log { return Log{&logsOfTests{logs: map[testing.TB]*logOfTest{}}} }

// Follow prints an organization's lines if a test fails. A test may follow several organizations.
func (l Log) Follow(t testing.TB, org db.Org) {
	l.tests.mu.Lock()
	defer l.tests.mu.Unlock()
	if log := l.tests.logs[t]; log != nil {
		log.orgs[org] = true
		return
	}
	log := &logOfTest{orgs: map[db.Org]bool{org: true}}
	l.tests.logs[t] = log
	t.Cleanup(func() {
		l.tests.mu.Lock()
		defer l.tests.mu.Unlock()
		delete(l.tests.logs, t)
		if t.Failed() && log.text.Len() > 0 {
			t.Logf("the server's log:\n%s", &log.text)
		}
	})
}

// Text returns the lines for a test so far.
func (l Log) Text(t testing.TB) string {
	l.tests.mu.Lock()
	defer l.tests.mu.Unlock()
	if log := l.tests.logs[t]; log != nil {
		return log.text.String()
	}
	return ""
}

// Enabled implements slog.Handler.
func (Log) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (l Log) Handle(ctx context.Context, r slog.Record) error {
	l.tests.mu.Lock()
	defer l.tests.mu.Unlock()
	for _, log := range l.tests.logs {
		if org := db.OrgOf(ctx); org != 0 && !log.orgs[org] {
			continue
		}
		if err := slog.NewTextHandler(&log.text, nil).Handle(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// WithAttrs implements slog.Handler. It drops the attributes.
func (l Log) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler. It drops the group.
func (l Log) WithGroup(string) slog.Handler { return l }
