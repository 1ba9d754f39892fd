package db

import (
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"
)

// scanner returns a function that reads a struct by its `db` tags, and any other type from a single column.
func scanner[T any]() pgx.RowToFunc[T] {
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]() {
		return pgx.RowToStructByName[T]
	}
	return pgx.RowTo[T]
}
