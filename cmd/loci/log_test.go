package main

import (
	"bytes"
	"log/slog"
	"testing"
)

// Messages of River below level error, such as which server leads, are logged at level debug.
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
