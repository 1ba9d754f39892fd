package agent

import (
	"encoding/json"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/chat"
)

func checkName(name string) error {
	if n := utf8.RuneCountInString(name); n < 1 || n > 200 {
		return db.Invalid("an agent's name has %d characters; it must have from 1 to 200", n)
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return db.Invalid("the agent's name %q has control characters", name)
	}
	return db.CheckUTF8("the agent's name", name)
}

// notNil returns a list that SQL does not read as NULL.
func notNil(list []string) []string { return append([]string{}, list...) }

// merged returns object with the fields of over added or replaced.
func merged(object, over json.RawMessage) json.RawMessage {
	var all, more map[string]json.RawMessage
	if json.Unmarshal(over, &more) != nil || len(more) == 0 {
		return object
	}
	if json.Unmarshal(object, &all) != nil || all == nil {
		return over
	}
	maps.Copy(all, more)
	return chat.Encode(all)
}
