package agentfile

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
)

// lettas are fields of Letta's entries that Loci may drop silently, by the type that reads the entry.
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

// maxUnknown bounds how many unknown fields are noted for one place.
const maxUnknown = 20

// noteUnknown notes the fields of a value that Loci does not know. A field is noted once for all values at the place.
func (i *imports) noteUnknown(place string, raw json.RawMessage, typ reflect.Type) {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return // decoding it elsewhere says what is wrong
	}
	fields := map[string]bool{}
	unknownFields("", value, typ, fields)
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		i.leaveOut("%s: Loci does not know the field %q.", place, db.Short(field))
	}
}

// unknownFields adds the paths of fields that a type lacks to unknown. List positions are left out of the paths.
func unknownFields(path string, value any, typ reflect.Type, unknown map[string]bool) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch value := value.(type) {
	case []any:
		if typ.Kind() == reflect.Slice && typ != reflect.TypeFor[json.RawMessage]() {
			for _, item := range value {
				unknownFields(path, item, typ.Elem(), unknown)
			}
		}
	case map[string]any:
		if typ.Kind() != reflect.Struct {
			return
		}
		types := fieldsOf(typ)
		for name, field := range value {
			fieldPath := strings.TrimPrefix(path+"."+name, ".")
			if t, ok := types[name]; ok {
				unknownFields(fieldPath, field, t, unknown)
			} else if !slices.Contains(lettas[typ], name) && len(unknown) < maxUnknown {
				unknown[fieldPath] = true
			}
		}
	}
}

// fieldsOf maps the JSON names of a struct's fields to their types.
func fieldsOf(typ reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = f.Type
	}
	return fields
}
