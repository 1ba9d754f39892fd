// Package migrations holds the schema as SQL files, applied in the order of their numbers and never changed once they
// have landed. The files from 0100 on make a new schema, one for each memory; those after them add to it.
//
// Of the four files, migrations.go holds the migrations, split.go divides them into statements, conversion.go brings a
// schema from before them to theirs, and tables.go names the tables and functions that they leave.
package migrations

import (
	"embed"
	"io/fs"
	"path"
	"strconv"
)

// Files are the migrations, named NNNN_what.up.sql.
//
//go:embed *.sql
var Files embed.FS

// First returns the number of the first migration.
func First() (int, error) {
	names, err := fs.Glob(Files, "*.up.sql") // in the order of their numbers
	if err != nil {
		return 0, err
	}
	return number(names[0])
}

// number returns the number of a migration.
func number(name string) (int, error) { return strconv.Atoi(path.Base(name)[:4]) }
