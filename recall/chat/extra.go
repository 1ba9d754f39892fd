package chat

import (
	"encoding/json"

	"github.com/loci-memory/loci/recall"
)

// extra returns the Extra of a part of an API: the fields of some names that the object has and that are no empty
// lists, with those that the part has.
func (i Object) extra(of recall.Part, api string, names ...string) string {
	fields := extraFields(of, api)
	for _, name := range names {
		if i.Has(name) && string(compact(i.fields[name])) != "[]" {
			fields[name] = compact(i.fields[name])
		}
	}
	if len(fields) == 0 {
		return of.Extra
	}
	return string(Encode(map[string]any{api: fields}))
}

// extraFields returns what a part has for an API besides.
func extraFields(p recall.Part, api string) map[string]json.RawMessage {
	var all map[string]map[string]json.RawMessage
	if json.Unmarshal([]byte(p.Extra), &all) != nil || all[api] == nil {
		return map[string]json.RawMessage{}
	}
	return all[api]
}
