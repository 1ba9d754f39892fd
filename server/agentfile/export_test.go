package agentfile

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// Opens reads the fields of a file.
func Opens(spool *rest.Spool) error {
	_, err := open(spool)
	return err
}

// UnknownFields returns the fields of a message in a file that Loci does not know.
func UnknownFields(message string) []string {
	var value any
	_ = json.Unmarshal([]byte(message), &value) // tests pass JSON
	fields := map[string]bool{}
	unknownFields("", value, reflect.TypeFor[fileMessage](), fields)
	return slices.Sorted(maps.Keys(fields))
}

// MessagesOf returns an agent's messages in the order for its log, how many of them its model does not see, and what is
// left out.
func MessagesOf(entry string) (all []recall.Draft, hidden int, leftOut []string, err error) {
	i := &imports{file: &file{}}
	a := agentOf{place: "agents[0]"}
	if err := json.Unmarshal([]byte(entry), &a.fields); err != nil {
		return nil, 0, nil, err
	}
	all, hidden, err = i.messagesOf(a)
	return all, hidden, i.made.LeftOut, err
}
