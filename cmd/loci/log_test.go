package main

import (
	"bytes"
	"log/slog"
	"testing"
)

// What the queue's library tells of its inner life, such as who leads, is logged at level debug; its errors are errors.
func TestALibrarySaysLittle(t *testing.T) {
	t.Parallel()
	for level, want := range map[slog.Level]string{slog.LevelInfo: "level=ERROR msg=failed of=jobs\n",
		slog.LevelDebug: "level=DEBUG msg=\"stepping down\" of=jobs\nlevel=ERROR msg=failed of=jobs\n"} {
		var out bytes.Buffer
		noTime := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
		log := slog.New(quiet{slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level, ReplaceAttr: noTime})})
		log = log.With("of", "jobs")
		log.Warn("stepping down")
		log.Error("failed")
		if got := out.String(); got != want {
			t.Errorf("at level %s: got %q, want %q", level, got, want)
		}
	}
}
