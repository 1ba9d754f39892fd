package main

import (
	"context"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/loci-memory/loci/db"
)

// If several findings have the same remedy, it is printed once, below the last of them.
func TestTheDoctorSaysEachRemedyOnce(t *testing.T) {
	t.Parallel()
	out := newLines()
	mistake := func(name string) db.Finding {
		return db.Finding{Of: "settings", State: db.Advice, Text: name, Remedy: "unset it"}
	}
	list := []db.Finding{mistake("A"), mistake("B"), {Of: "disk", State: db.Well, Text: "fine"}, mistake("C")}
	if err := (doctorCmd{}).print(streams{out: out}, list); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "→ unset it"); got != 2 || strings.Index(out.String(), "→") < strings.Index(
		out.String(), "B\n") {
		t.Errorf("got %d remedies: %s", got, out)
	}
}

// If an erasure waits for texts on standard input, a signal ends it, even though no text follows.
func TestAnErasureThatWaitsForTextsIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancelCause(t.Context())
	input, typed := io.Pipe()
	go func() {
		_, _ = io.WriteString(typed, "Ann Lee\n")
		end(interruption{syscall.SIGINT})
	}()
	body, err := eraseCmd{Texts: "-"}.body(t.Context(), streams{in: interruptible{ctx, input}})
	if err == nil {
		t.Errorf("got the texts %s", body)
	}
	if _, err := (eraseCmd{Texts: "-"}).body(t.Context(), streams{in: strings.NewReader("Ann\n")}); err != nil {
		t.Error(err)
	}
}
