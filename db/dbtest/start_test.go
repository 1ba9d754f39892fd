package dbtest

import (
	"os/exec"
	"strings"
	"testing"
)

// The Postgres runs until it is stopped. The end of the command's input tells the command to stop it.
func TestAPostgresOfOneProgramIsKept(t *testing.T) {
	t.Parallel()
	s, err := launch(exec.CommandContext(t.Context(), "sh", "-c", "echo postgres:///loci; echo a private Postgres; cat"))
	if err != nil {
		t.Fatal(err)
	}
	if s.url != "postgres:///loci" || s.kind != "a private Postgres" {
		t.Errorf("got %q, %q", s.url, s.kind)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

func TestWhyThereIsNoPostgresIsSaid(t *testing.T) {
	t.Parallel()
	_, err := launch(exec.CommandContext(t.Context(), "sh", "-c", "echo no initdb >&2; exit 3"))
	if err == nil || !strings.Contains(err.Error(), "no initdb") {
		t.Errorf("got %v, want what the command says", err)
	}
}
