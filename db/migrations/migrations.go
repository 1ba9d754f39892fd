// Package migrations holds the schema as SQL files, applied in the order of their numbers and never changed once
// released.
//
// Of the two files, migrations.go holds the migrations, and tables.go names the tables and functions that they
// leave.
package migrations

import "embed"

// Files are the migrations, named NNNN_what.up.sql.
//
//go:embed *.sql
var Files embed.FS
