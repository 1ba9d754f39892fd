package filter

import (
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Where returns the condition that a row passes the filter, and adds its arguments to args: @filter_0, @filter_1 and so
// on. fields are those with which the filter was parsed; row is the row's name in SQL. The condition is never NULL. Of
// an empty filter it is true.
func (f Filter) Where(fields Fields, row string, args pgx.StrictNamedArgs) string {
	if f.root == nil {
		return `true`
	}
	c := compiler{fields: fields, row: row, zone: f.zone, args: args}
	return c.node(f.root)
}

type compiler struct {
	fields Fields
	row    string
	zone   *time.Location
	args   pgx.StrictNamedArgs
	n      int
}

// arg adds an argument, and returns its name.
func (c *compiler) arg(value any) string {
	name := fmt.Sprintf("filter_%d", c.n)
	c.n++
	c.args[name] = value
	return "@" + name
}

func (c *compiler) node(n *node) string {
	switch n.of {
	case "":
		return `coalesce(` + c.test(n.test) + `, false)`
	case "not":
		return `NOT ` + c.node(n.all[0])
	}
	parts := make([]string, len(n.all))
	for i, part := range n.all {
		parts[i] = c.node(part)
	}
	return `(` + strings.Join(parts, map[string]string{"and": ` AND `, "or": ` OR `}[n.of]) + `)`
}

// negated maps an operator → the one that it negates.
var negated = map[string]string{"ne": "eq", "nin": "in"}

func (c *compiler) test(t Test) string {
	if positive := negated[t.Op]; positive != "" {
		t.Op = positive
		return `NOT coalesce(` + c.test(t) + `, false)`
	}
	field := c.fields[t.Field]
	sql := strings.ReplaceAll(field.SQL, "$", c.row)
	if t.Op == "eq" && t.values[0].kind == "null" {
		t.Op, t.values = "exists", []value{{json: "false"}}
	}
	switch field.Kind {
	case Text:
		return c.text(sql, t)
	case Texts:
		return c.texts(sql, t)
	case Time:
		return c.time(sql, t)
	case Number:
		return c.number(sql, t)
	}
	return c.json(sql, t)
}

// exists returns whether there is a value.
func (t Test) exists(found string) string {
	if t.values[0].json == "true" {
		return found
	}
	return `NOT (` + found + `)`
}

// signs are the signs of ordered comparisons in SQL.
var signs = map[string]string{"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}

func texts(values []value) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = v.text
	}
	return all
}

func (c *compiler) text(sql string, t Test) string {
	switch v := t.values; t.Op {
	case "exists":
		return t.exists(sql + ` IS NOT NULL`)
	case "eq":
		return sql + ` = ` + c.arg(v[0].text) + `::text`
	case "in":
		return sql + ` = ANY (` + c.arg(texts(v)) + `::text[])`
	case "contains":
		return `strpos(` + sql + `, ` + c.arg(v[0].text) + `::text) > 0`
	case "prefix":
		return `starts_with(` + sql + `, ` + c.arg(v[0].text) + `::text)`
	default:
		return `(` + sql + `) COLLATE "C" ` + signs[t.Op] + ` ` + c.arg(v[0].text) + `::text`
	}
}

func (c *compiler) texts(sql string, t Test) string {
	switch t.Op {
	case "exists":
		return t.exists(`coalesce(cardinality(` + sql + `), 0) > 0`)
	case "prefix":
		return `EXISTS (SELECT FROM unnest(` + sql + `) AS one WHERE starts_with(one, ` + c.arg(t.values[0].text) +
			`::text))`
	}
	return sql + ` && ` + c.arg(texts(t.values)) + `::text[]`
}

// time compares a time with the moments that a value names: a date is the whole of its day.
func (c *compiler) time(sql string, t Test) string {
	switch v := t.values; t.Op {
	case "exists":
		return t.exists(sql + ` IS NOT NULL`)
	case "gt":
		return sql + ` > ` + c.arg(v[0].last) + `::timestamptz`
	case "gte":
		return sql + ` >= ` + c.arg(v[0].first) + `::timestamptz`
	case "lt":
		return sql + ` < ` + c.arg(v[0].first) + `::timestamptz`
	case "lte":
		return sql + ` <= ` + c.arg(v[0].last) + `::timestamptz`
	}
	firsts, lasts := make([]time.Time, len(t.values)), make([]time.Time, len(t.values))
	for i, v := range t.values {
		firsts[i], lasts[i] = v.first, v.last
	}
	return `EXISTS (SELECT FROM unnest(` + c.arg(firsts) + `::timestamptz[], ` + c.arg(lasts) + `::timestamptz[])
		AS named (first, last) WHERE ` + sql + ` BETWEEN named.first AND named.last)`
}

func (c *compiler) number(sql string, t Test) string {
	switch t.Op {
	case "exists":
		return t.exists(sql + ` IS NOT NULL`)
	case "eq", "in":
		all := make([]string, len(t.values))
		for i, v := range t.values {
			all[i] = v.json
		}
		return sql + `::numeric = ANY (` + c.arg(all) + `::text[]::numeric[])`
	}
	return sql + `::numeric ` + signs[t.Op] + ` ` + c.arg(t.values[0].json) + `::text::numeric`
}

// json compares a value below a path. Values of other types than the filter's do not match; null counts as absent.
func (c *compiler) json(sql string, t Test) string {
	v := sql + ` #> ` + c.arg(t.Path) + `::text[]`
	is := func(kind string) string { return `jsonb_typeof(` + v + `) = '` + kind + `'` }
	text := `(` + v + `) #>> '{}'`
	first := t.values0()
	switch t.Op {
	case "exists":
		return t.exists(`coalesce(jsonb_typeof(` + v + `), 'null') <> 'null'`)
	case "eq", "in":
		return c.jsonIn(v, text, t)
	case "contains":
		if first.kind != "string" {
			return is("array") + ` AND (` + v + `) @> ` + c.arg(first.json) + `::text::jsonb`
		}
		return `CASE WHEN ` + is("array") + ` THEN (` + v + `) @> ` + c.arg(first.json) + `::text::jsonb WHEN ` +
			is("string") + ` THEN strpos(` + text + `, ` + c.arg(first.text) + `::text) > 0 END`
	case "prefix":
		return is("string") + ` AND starts_with(` + text + `, ` + c.arg(first.text) + `::text)`
	}
	switch {
	case first.kind == "number":
		return `CASE WHEN ` + is("number") + ` THEN (` + text + `)::numeric ` + signs[t.Op] + ` ` + c.arg(first.json) +
			`::text::numeric END`
	case first.isTime:
		return c.time(c.timeOf(v, text), t)
	}
	return is("string") + ` AND ` + c.text(text, t)
}

// Texts that surely are a date, or a time of UTC, so that Postgres reads them itself. It takes a tenth of the time of
// written_time, which reads all others.
const (
	plainDate = `[1-9]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])`
	plainTime = `T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?Z`
)

// timeOf returns the time that a text of metadata is; NULL if it is none.
func (c *compiler) timeOf(v, text string) string {
	zone := c.arg(c.zone.String()) + `::text`
	return `CASE WHEN jsonb_typeof(` + v + `) <> 'string' THEN NULL
		WHEN ` + text + ` ~ '^` + plainDate + `$' THEN (` + text + `)::date::timestamp AT TIME ZONE ` + zone + `
		WHEN ` + text + ` ~ '^` + plainDate + plainTime + `$' THEN (` + text + `)::timestamptz
		WHEN ` + text + ` ~ '^\s*\d{4}-\d\d-\d\d' THEN written_time(` + text + `, ` + zone + `) END`
}

// jsonIn returns whether a value is one of others. Dates are the same however they are written.
func (c *compiler) jsonIn(v, text string, t Test) string {
	all, times := make([]string, len(t.values)), []value{}
	for i, one := range t.values {
		if all[i] = one.json; one.isTime {
			times = append(times, one)
		}
	}
	same := v + ` = ANY (` + c.arg(all) + `::text[]::jsonb[])`
	if len(times) == 0 {
		return same
	}
	t.Op, t.values = "in", times
	return `(` + same + ` OR ` + c.time(c.timeOf(v, text), t) + `)`
}

// values0 returns the first value; the zero value of an empty list.
func (t Test) values0() value {
	if len(t.values) == 0 {
		return value{}
	}
	return t.values[0]
}
