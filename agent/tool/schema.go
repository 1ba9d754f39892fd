package tool

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
)

//go:embed schema/*.json
var schemas embed.FS

type schema struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`

	text json.RawMessage // the whole schema, compact
}

// schemaOf reads the schema of a tool. It panics if the schema is missing or broken, because the schema is part of the
// program.
func schemaOf(name string) schema {
	raw, err := schemas.ReadFile("schema/" + name + ".json")
	if err != nil {
		panic(err)
	}
	var s schema
	var text bytes.Buffer
	if err := json.Unmarshal(raw, &s); err != nil || s.Name != name || json.Compact(&text, raw) != nil {
		panic(fmt.Sprintf("schema of %s: %v", name, err))
	}
	s.text = text.Bytes()
	return s
}
