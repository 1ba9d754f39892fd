package migrations

import (
	"regexp"
	"strings"
)

// token matches a comment, a string, a quoted name, the tag that begins a text between two equal tags such as $$, or a
// semicolon. Semicolons within the others end no statement.
var token = regexp.MustCompile(`--[^\n]*|'(?:[^']|'')*'|"[^"]*"|\$[a-z_]*\$|;`)

// Split returns the statements of a migration, without what follows the last semicolon. Migrations have no comments
// between /* and */, no strings with backslashes, and no functions of BEGIN ATOMIC.
func Split(sql string) (statements []string) {
	begin := 0
	for at := 0; ; {
		found := token.FindStringIndex(sql[at:])
		if found == nil {
			return statements
		}
		text := sql[at+found[0] : at+found[1]]
		at += found[1]
		switch {
		case text == ";":
			statements = append(statements, strings.TrimSpace(sql[begin:at]))
			begin = at
		case text[0] == '$':
			end := strings.Index(sql[at:], text)
			if end < 0 {
				return append(statements, sql[begin:]) // Postgres says what is wrong with it
			}
			at += end + len(text)
		}
	}
}
