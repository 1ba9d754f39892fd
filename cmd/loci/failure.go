package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db"
)

// settingError is an error in a setting. Its text names the setting.
type settingError struct{ error }

// exitCode prints an error, and returns the exit code for it: 0 for nil.
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
	text := err.Error()
	if isTerminal(errs) { // the text may repeat what others wrote
		text = tame(text)
	}
	fmt.Fprintln(errs, "loci:", text)
	if _, ok := errors.AsType[settingError](err); ok {
		return 2
	}
	return 1
}
