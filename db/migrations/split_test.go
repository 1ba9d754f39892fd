package migrations_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db/migrations"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql  string
		want []string
	}{
		"statements":             {"SELECT 1;\n\nSELECT 2;\n", []string{"SELECT 1;", "SELECT 2;"}},
		"a string":               {"SELECT ';', 'it''s;';", []string{"SELECT ';', 'it''s;';"}},
		"a quoted name":          {`SELECT ";'"; SELECT 2;`, []string{`SELECT ";'";`, "SELECT 2;"}},
		"a comment":              {"-- first; it's\nSELECT 1; -- last;", []string{"-- first; it's\nSELECT 1;"}},
		"the body of a function": {"DO $$ a; '; $$; SELECT 2;", []string{"DO $$ a; '; $$;", "SELECT 2;"}},
		"a named tag":            {"DO $a$ $$; $a$; SELECT 2;", []string{"DO $a$ $$; $a$;", "SELECT 2;"}},
		"a tag without an end":   {"SELECT 1; DO $$ a;", []string{"SELECT 1;", " DO $$ a;"}},
		"a pattern":              {"SELECT '^[a-z]{1,64}$'; SELECT '$';", []string{"SELECT '^[a-z]{1,64}$';", "SELECT '$';"}},
	} {
		if diff := cmp.Diff(c.want, migrations.Split(c.sql)); diff != "" {
			t.Errorf("%s: %q:\n%s", name, c.sql, diff)
		}
	}
}

// Each migration consists of statements that Split can tell apart, and each begins with a word of SQL.
func TestMigrationsAreSplit(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(migrations.Files, "*.up.sql")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	begins := regexp.MustCompile(`^(--[^\n]*\s+)*` +
		`(CREATE|ALTER|DROP|INSERT|UPDATE|DELETE|WITH|SELECT|COMMENT|SET|DO|LOCK|REVOKE|GRANT)\b`)
	difficult := regexp.MustCompile(`/\*|BEGIN ATOMIC|\bE'`)
	for _, name := range names {
		sql, err := fs.ReadFile(migrations.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		if found := difficult.Find(sql); found != nil {
			t.Errorf("%s has %s, which Split does not know", name, found)
		}
		statements := migrations.Split(string(sql))
		for _, s := range statements {
			if !begins.MatchString(s) {
				t.Errorf("%s: no statement: %.200s", name, s)
			}
		}
		if last := statements[len(statements)-1]; !strings.HasSuffix(strings.TrimSpace(string(sql)), last) {
			t.Errorf("%s does not end with its last statement, %.200s", name, last)
		}
	}
}

// refusedByCitus returns why Citus would refuse a change of a table that it has spread; "" if it would not.
func refusedByCitus(statement string) string {
	statement = regexp.MustCompile(`--[^\n]*|'(?:[^']|'')*'`).ReplaceAllString(statement, "")
	if !regexp.MustCompile(`(?i)^\s*ALTER TABLE\b`).MatchString(statement) {
		return ""
	}
	for inner := regexp.MustCompile(`\([^()]*\)`); inner.MatchString(statement); {
		statement = inner.ReplaceAllString(statement, "")
	}
	commands := strings.Split(statement, ",")
	for _, c := range commands {
		constrains := regexp.MustCompile(`\bADD (CONSTRAINT|PRIMARY|UNIQUE|CHECK|FOREIGN)\b`).MatchString(c)
		if (constrains || strings.Contains(c, "nextval")) && len(commands) > 1 {
			return "a constraint, or a column with numbers of a sequence, is added in a statement of its own"
		}
		if !constrains && regexp.MustCompile(`\b(CHECK|UNIQUE|REFERENCES|PRIMARY)\b`).MatchString(c) &&
			!strings.Contains(c, "CONSTRAINT") {
			return "the constraint of a column has a name"
		}
	}
	return ""
}

func TestMigrationsSinceTheBaselineSuitACluster(t *testing.T) {
	t.Parallel()
	for statement, refused := range map[string]bool{
		"ALTER TABLE a ADD COLUMN b text NOT NULL DEFAULT ''":                                false,
		"ALTER TABLE a ADD COLUMN b text CHECK (b <> 'n, CONSTRAINT')":                       true,
		"ALTER TABLE a ADD COLUMN b text CONSTRAINT a_b CHECK (b <> 'n')":                    false,
		"ALTER TABLE a ADD COLUMN b text, ADD COLUMN c text DEFAULT (lower('a'))":            false,
		"ALTER TABLE a DROP CONSTRAINT a_b, ADD CONSTRAINT a_b CHECK (b <> 'n')":             true,
		"ALTER TABLE a ADD CONSTRAINT a_b CHECK (b IN ('n', 'm'))":                           false,
		"ALTER TABLE a ADD COLUMN n bigint DEFAULT nextval('s'), ADD COLUMN m text":          true,
		"CREATE TABLE a (org integer PRIMARY KEY, b text CHECK (b <> ''), UNIQUE (org, b));": false,
	} {
		if got := refusedByCitus(statement); (got != "") != refused {
			t.Errorf("%s: got %q, want refused %v", statement, got, refused)
		}
	}
	names, err := fs.Glob(migrations.Files, "*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name < fmt.Sprintf("%04d`", migrations.Baseline) { // ` comes after _
			continue
		}
		sql, err := fs.ReadFile(migrations.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range migrations.Split(string(sql)) {
			if why := refusedByCitus(s); why != "" {
				t.Errorf("%s: %s:\n%s", name, why, s)
			}
		}
	}
}
