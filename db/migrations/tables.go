package migrations

import (
	"io/fs"
	"regexp"
	"slices"
	"sync"
)

var (
	created = regexp.MustCompile(`CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?([a-z_]+)`)
	dropped = regexp.MustCompile(`DROP TABLE (?:IF EXISTS )?([a-z_]+)`)

	createdView = regexp.MustCompile(`CREATE (?:OR REPLACE )?VIEW ([a-z_]+)`)
	droppedView = regexp.MustCompile(`DROP VIEW (?:IF EXISTS )?([a-z_]+)`)

	createdFunction = regexp.MustCompile(`CREATE (?:OR REPLACE )?FUNCTION ([a-z_]+)`)
	droppedFunction = regexp.MustCompile(`DROP FUNCTION (?:IF EXISTS )?([a-z_]+)`)
)

// Tables returns the names of the tables that the migrations leave, in the order of their bytes, without those of the
// queue, which its library makes.
var Tables = sync.OnceValue(func() []string { return left(created, dropped) })

// Views returns the names of the views that the migrations leave, as Tables does.
var Views = sync.OnceValue(func() []string { return left(createdView, droppedView) })

// Functions returns the names of the functions that the migrations leave, as Tables does.
var Functions = sync.OnceValue(func() []string { return left(createdFunction, droppedFunction) })

// left returns the names that the migrations create and do not drop.
func left(created, dropped *regexp.Regexp) (names []string) {
	files, err := fs.Glob(Files, "*.up.sql") // in the order of their numbers
	if err != nil {
		panic(err) // the pattern is wrong
	}
	for _, file := range files {
		sql, err := Files.ReadFile(file)
		if err != nil {
			panic(err) // it is in the program
		}
		for _, m := range created.FindAllSubmatch(sql, -1) {
			names = append(names, string(m[1]))
		}
		for _, m := range dropped.FindAllSubmatch(sql, -1) {
			names = slices.DeleteFunc(names, func(name string) bool { return name == string(m[1]) })
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
