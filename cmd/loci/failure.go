package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db"
)

// settingError is an error in a setting, which its text names.
type settingError struct{ error }

// exitCode prints the error, if any, and returns the exit code for it.
func exitCode(errs io.Writer, err error) int {
	if err == nil {
		return 0
	}
	if db.IsReadOnly(err) {
		err = errors.New("the database is read-only, so nothing can be stored: make it writable, or name the one that is, " +
			"and try again")
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "53100" {
		err = errors.New("the disk of the database is full, so nothing can be stored: make room there, and try again")
	}
	said := err.Error()
	if isTerminal(errs) { // it may repeat what others wrote
		said = tame(said)
	}
	fmt.Fprintln(errs, "loci:", said)
	if _, ok := errors.AsType[settingError](err); ok {
		return 2
	}
	return 1
}
