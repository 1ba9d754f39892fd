package db

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// errLacking says that a database cannot serve because its schema is incomplete.
var errLacking = errors.New("the database lacks a part of Loci's schema")

// LacksSchema reports whether an error says that the schema is not this program's. A part is missing, as while a backup
// is restored under a running server, or the role has no right to it. A faulty statement gives the same error.
func LacksSchema(err error) bool {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	pg, answered := errors.AsType[*pgconn.PgError](err)
	return errors.Is(err, errLacking) || !connecting && answered && lacksSchema(pg)
}

func lacksSchema(pg *pgconn.PgError) bool {
	switch pg.Code {
	case "42P01", "42703", "42883", "42704", "3F000": // missing table, column, function, other object, schema
		return true
	case "42P10", "55000", "42501": // ON CONFLICT without its index, wrong state of an object, missing right
		return true
	case "0A000": // the columns of a prepared statement have other types than before
		return pg.Routine == "RevalidateCachedQuery"
	case "XX000": // internal errors, which Postgres never translates
		return strings.HasPrefix(pg.Message, "cache lookup failed") ||
			strings.HasPrefix(pg.Message, "could not open relation with OID") ||
			strings.HasPrefix(pg.Message, "tuple concurrently ")
	}
	return false
}
