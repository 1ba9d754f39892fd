package db

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// errLacking is why a database whose schema is not whole cannot serve.
var errLacking = errors.New("the database lacks a part of Loci's schema")

// LacksSchema reports whether an error says that the schema is not the one of this program: a part of it is missing, as
// while a backup is restored under the server, or the role has no right to it. A fault of a statement looks the same.
func LacksSchema(err error) bool {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	pg, answered := errors.AsType[*pgconn.PgError](err)
	return errors.Is(err, errLacking) || !connecting && answered && lacksSchema(pg)
}

func lacksSchema(pg *pgconn.PgError) bool {
	switch pg.Code {
	case "42P01", "42703", "42883", "42704", "3F000": // table, column, function, other object, schema
		return true
	case "42P10", "55000", "42501": // ON CONFLICT without its index, state of an object, right
		return true
	case "0A000": // the columns of a prepared statement have other types than before
		return pg.Routine == "RevalidateCachedQuery"
	case "XX000": // Postgres never translates these
		return strings.HasPrefix(pg.Message, "cache lookup failed") ||
			strings.HasPrefix(pg.Message, "could not open relation with OID") ||
			strings.HasPrefix(pg.Message, "tuple concurrently ")
	}
	return false
}
