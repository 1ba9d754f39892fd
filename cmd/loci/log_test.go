package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A library that reports each second that the database is read-only is logged once, until it was silent for a while.
func TestAReadOnlyDatabaseIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	h := quiet{slog.NewTextHandler(&out, nil), new(atomic.Int64)}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	failed := func(after time.Duration, text string) {
		r := slog.NewRecord(start.Add(after), slog.LevelError, "fetch failed", 0)
		r.AddAttrs(slog.Any("err", errors.New(text)))
		if err := h.WithAttrs(nil).Handle(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	const readOnly = "ERROR: cannot execute UPDATE in a read-only transaction (SQLSTATE 25006)"
	for second := range 90 {
		failed(time.Duration(second)*time.Second, readOnly)
	}
	failed(90*time.Second, "another error")
	if n := strings.Count(out.String(), "25006"); n != 1 || !strings.Contains(out.String(), "another error") {
		t.Errorf("%d messages about a read-only database, want one and the other error:\n%s", n, out.String())
	}
	failed(time.Hour, readOnly)
	if n := strings.Count(out.String(), "25006"); n != 2 {
		t.Errorf("%d messages after an hour without one, want a second", n)
	}
}
