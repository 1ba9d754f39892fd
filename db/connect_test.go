package db_test

import (
	"net"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
)

// A database that accepts connections and never answers, as a suspended one does, is given up. The error says what to
// check. (The kernel accepts connections even if the program does not.)
func TestADatabaseThatDoesNotAnswerIsGivenUp(t *testing.T) {
	t.Parallel()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	url := "postgres://u:hunter2@" + silent.Addr().String() + "/x?connect_timeout=1"
	for name, open := range map[string]func() error{
		"Dial":    func() error { _, err := db.Dial(t.Context(), url); return err },
		"Connect": func() error { _, err := db.Connect(t.Context(), url); return err },
		"Open":    func() error { _, err := db.Open(t.Context(), db.URLs{Server: url}); return err },
		"Migrate": func() error { _, err := db.Migrate(t.Context(), db.URLs{Server: url}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := open()
			if err == nil {
				t.Fatal("got no error")
			}
			for _, want := range []string{"does not answer within 1s", "127.0.0.1 port ", "suspended"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Error("the error has the password")
			}
		})
	}
}

// A connect_timeout in the URL or the environment is used; otherwise the wait is short.
func TestTheWaitForADatabaseIsShort(t *testing.T) {
	for url, want := range map[string]string{"postgres://h/x": "10s", "postgres://h/x?connect_timeout=120": "2m0s",
		"postgres://h/x?connect_timeout=3": "3s"} {
		if got, err := db.ConnectTimeout(url); err != nil || got.String() != want {
			t.Errorf("%s: got %s and %v, want %s", url, got, err, want)
		}
	}
	t.Setenv("PGCONNECT_TIMEOUT", "77")
	if got, err := db.ConnectTimeout("postgres://h/x"); err != nil || got.String() != "1m17s" {
		t.Errorf("of the environment: got %s and %v", got, err)
	}
}
