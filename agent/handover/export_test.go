package handover

import (
	"strings"

	"github.com/loci-memory/loci/recall"
)

// SectionsOf returns the sections that the rules find in a session, with the texts of each. Each message begins with
// its role and a colon.
func SectionsOf(messages ...string) map[string][]string {
	var m material
	for i, message := range messages {
		role, text, _ := strings.Cut(message, ": ")
		m.Lines = append(m.Lines, line{Seq: int64(i + 1), Role: recall.Role(role), Text: text})
		if m.Opening == nil && m.Lines[i].Role == recall.User {
			m.Opening = &m.Lines[i]
		}
	}
	all := map[string][]string{}
	for _, s := range extract(m).sections() {
		for _, i := range s.items {
			all[s.name] = append(all[s.name], i.Text)
		}
	}
	return all
}

// Supersedes reports whether a line of the user's file is taken out when a text about them is added.
func Supersedes(text, line string) bool {
	user := userName
	supersedes := Update{Text: text, Entity: &user}.supersedes()
	return supersedes != nil && supersedes(line)
}
