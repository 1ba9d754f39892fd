package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// River's messages below level error, for example about the leading server, are logged at level debug.
func TestALibrarySaysLittle(t *testing.T) {
	t.Parallel()
	const failed = `level=ERROR msg="background jobs have ended, but that could not be stored yet; it is tried again" ` +
		`of=jobs river="BatchCompleter: Completer error (will retry after sleep)" err=timeout` + "\n"
	for level, want := range map[slog.Level]string{slog.LevelInfo: failed,
		slog.LevelDebug: "level=DEBUG msg=\"stepping down\" of=jobs\n" + failed} {
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
		log.Error("BatchCompleter: Completer error (will retry after sleep)", "err", "timeout")
		if got := out.String(); got != want {
			t.Errorf("at level %s: got %q, want %q", level, got, want)
		}
	}
}

// The library of jobs repeats an error many times per second. The error is logged once per minute, and other errors are
// not left out.
func TestAnErrorOfTheLibraryIsWrittenOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := newLines()
		handler := newSparing(slog.NewTextHandler(out, nil))
		log, jobs := slog.New(handler), slog.New(quiet{handler}).With("of", "jobs")
		for range 130 {
			jobs.Error("JobScheduler: Error scheduling jobs", "err", "timeout")
			jobs.Error("Producer: Error fetching jobs", "err", "timeout")
			time.Sleep(time.Second)
		}
		jobs.Error("Elector: Error attempting to elect", "err", "timeout")
		log.Error("request failed")
		log.Error("request failed")
		text := out.String()
		if n := strings.Count(text, "jobs had an error"); n != 3 || strings.Count(text, "\n") != 6 {
			t.Errorf("%d lines of one error in 130 seconds:\n%s", n, text)
		}
	})
}

// The log explains each error of the library to the operator, whichever part of the library reports it.
func TestErrorsOfTheLibraryAreSaidPlainly(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"BatchCompleter: Too many errors; giving up":                "are repeated later",
		"InlineCompleter: Completer error (will retry)":             "could not be stored yet",
		"Error waiting on async completer":                          "could not be stored yet",
		"JobExecutor: Error completing job":                         "the end of a background job",
		"Elector: Error attempting to elect":                        "the servers could not agree",
		"Notifier: Error running listener (will attempt reconnect)": "is not told of new background jobs",
		"JobScheduler: Error scheduling jobs":                       "the upkeep of background jobs",
	} {
		got := plainJobError(message)
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", message, got, want)
		}
	}
}
