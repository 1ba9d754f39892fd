package migrations

import (
	"embed"
	"io/fs"
)

// Oldest is the oldest version that a database may have to be converted. Backups have it at least, too.
const Oldest = 87

// Baseline is the version of the schema that a conversion makes.
const Baseline = 112

// former are the migrations between Oldest and the first of Files: a conversion applies them.
//
//go:embed former/*.sql
var former embed.FS

// Since returns the files that bring a schema to the version Baseline, and that version. From version 0 on, these are
// the files that make a new schema; from another one on, those of the conversion.
func Since(version int) (files []string, last int, err error) {
	from, pattern := fs.FS(former), "former/*.up.sql"
	if version == 0 {
		from, pattern = Files, "*.up.sql"
	}
	names, err := fs.Glob(from, pattern)
	for _, name := range names {
		n, err := number(name)
		if err != nil {
			return nil, 0, err
		}
		if n <= version || n > Baseline {
			continue
		}
		sql, err := fs.ReadFile(from, name)
		if err != nil {
			return nil, 0, err
		}
		files = append(files, string(sql))
	}
	return files, Baseline, err
}
