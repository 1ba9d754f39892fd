package dbtest

import (
	"regexp"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
)

// unroutable are forms of statements on tenants' tables that a cluster refuses, or that it does not send to one node as
// they are. They are searched in a statement without its comments and the contents of its strings.
var unroutable = []struct {
	what string
	form *regexp.Regexp
}{
	{"a subquery in the VALUES of an INSERT", regexp.MustCompile(`(?is)^\s*INSERT\b[^;]*?\bVALUES\s*\(.*\(\s*SELECT\b`)},
	{"a subquery in RETURNING", regexp.MustCompile(`(?is)^\s*(INSERT|UPDATE|DELETE)\b.*\bRETURNING\b[^;]*\(\s*SELECT\b`)},
	{"a function of the time in CASE or COALESCE of a change",
		regexp.MustCompile(
			`(?is)\b(UPDATE|INSERT)\b.*\b(CASE\b[^;]*?\b(THEN|ELSE)|COALESCE\([^()]*,)\s*(now|clock_timestamp)\(\)`)},
	{"a function of the time in RETURNING", regexp.MustCompile(`(?is)\bRETURNING\b[^)]*\b(now|clock_timestamp)\(\)`)},
	{"a function of the time in DO UPDATE", regexp.MustCompile(`(?is)\bDO\s+UPDATE\b[^)]*\b(now|clock_timestamp)\(\)`)},
}

// acrossForms are forms that a statement may not have if it reads more than one organization.
var acrossForms = regexp.MustCompile(
	`(?is)\bFOR\s+(NO\s+KEY\s+UPDATE|UPDATE|SHARE|KEY\s+SHARE)\b|\bWITH\s+RECURSIVE\b|^\s*(UPDATE|DELETE|INSERT)\b`)

var (
	comments = regexp.MustCompile(`--[^\n]*`)
	quotes   = regexp.MustCompile(`'[^']*'`)
	// named matches the names of tables, and of CTEs and functions, after the words that precede a table.
	named = regexp.MustCompile(`(?i)\b(?:FROM|JOIN|UPDATE|INTO|USING)\s+(?:ONLY\s+)?"?([a-z_]+)"?`)
	// central are shared tables that a cluster has on its coordinator alone, besides River's.
	central = func(table string) bool { return db.Shared(table) && db.ReferenceTables[table] == "" }
)

// refused returns why a cluster would refuse a statement or send it to more than one node; "" if it would not. across
// says that the statement may read several organizations. tenants reports whether a name is that of a tenant's table.
func refused(sql string, across bool, tenants func(table string) bool) string {
	sql = quotes.ReplaceAllString(comments.ReplaceAllString(sql, ""), "''")
	var tables []string
	for _, m := range named.FindAllStringSubmatch(sql, -1) {
		tables = append(tables, strings.ToLower(m[1]))
	}
	if !slices.ContainsFunc(tables, tenants) {
		return ""
	}
	if i := slices.IndexFunc(tables, central); i >= 0 {
		return "it has a table of the coordinator, " + tables[i] + ", together with tables of organizations"
	}
	if form := strings.TrimSpace(acrossForms.FindString(sql)); across && form != "" {
		return "it has " + form + " over several organizations"
	}
	for _, u := range unroutable {
		if u.form.MatchString(sql) {
			return "it has " + u.what
		}
	}
	return ""
}
