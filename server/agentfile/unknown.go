package agentfile

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
)

// lettas are the fields of Letta's entries that say nothing which Loci keeps, by the type that reads an entry.
var lettas = map[reflect.Type][]string{
	reflect.TypeFor[fileMessage](): {"type", "batch_item_id", "agent_id", "denial_reason", "conversation_id", "step_id",
		"run_id", "is_err", "updated_at", "created_by_id", "last_updated_by_id", "organization_id"},
	reflect.TypeFor[fileCall]():   {"type"},
	reflect.TypeFor[fileReturn](): {"reason"},
	reflect.TypeFor[fileView](): {"id", "agent_id", "source_id", "file_name", "visible_content", "start_line", "end_line",
		"created_at", "updated_at", "organization_id"},
	reflect.TypeFor[fileText](): {"file_path", "file_type", "file_size", "file_creation_date", "file_last_modified_date",
		"processing_status", "error_message", "total_chunks", "chunks_embedded", "created_at", "updated_at",
		"organization_id"},
}

// maxUnknown bounds the unknown fields of a place that are noted.
const maxUnknown = 20

// noteUnknown notes the fields of a value of Letta's that Loci does not know, each once for all values at the place.
func (i *imports) noteUnknown(place string, raw json.RawMessage, of reflect.Type) {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return // the type says what is wrong
	}
	found := map[string]bool{}
	unknownFields("", value, of, found)
	for _, field := range slices.Sorted(maps.Keys(found)) {
		i.leaveOut("%s: Loci does not know the field %q.", place, db.Short(field))
	}
}

// unknownFields adds the paths of fields that a type does not have, without the numbers of items.
func unknownFields(path string, value any, of reflect.Type, found map[string]bool) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch value := value.(type) {
	case []any:
		if of.Kind() == reflect.Slice && of != reflect.TypeFor[json.RawMessage]() {
			for _, item := range value {
				unknownFields(path, item, of.Elem(), found)
			}
		}
	case map[string]any:
		if of.Kind() != reflect.Struct {
			return
		}
		known := fieldsOf(of)
		for name, field := range value {
			at := strings.TrimPrefix(path+"."+name, ".")
			if t, has := known[name]; has {
				unknownFields(at, field, t, found)
			} else if !slices.Contains(lettas[of], name) && len(found) < maxUnknown {
				found[at] = true
			}
		}
	}
}

// fieldsOf returns the types of a struct's fields by their names in JSON.
func fieldsOf(of reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = f.Type
	}
	return fields
}
