package chat

import (
	"encoding/json"

	"github.com/loci-memory/loci/recall"
)

// extra returns the Extra of part, with the named fields of the object added under the API's name. Absent fields and
// empty lists are not added.
func (i Object) extra(part recall.Part, api string, names ...string) string {
	fields := extraFields(part, api)
	for _, name := range names {
		if i.Has(name) && string(compact(i.fields[name])) != "[]" {
			fields[name] = compact(i.fields[name])
		}
	}
	if len(fields) == 0 {
		return part.Extra
	}
	return string(Encode(map[string]any{api: fields}))
}

// extraFields returns the fields in a part's Extra under the API's name.
func extraFields(p recall.Part, api string) map[string]json.RawMessage {
	var all map[string]map[string]json.RawMessage
	if json.Unmarshal([]byte(p.Extra), &all) != nil || all[api] == nil {
		return map[string]json.RawMessage{}
	}
	return all[api]
}
