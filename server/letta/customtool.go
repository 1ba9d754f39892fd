package letta

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/rest"
)

// ToolFields are the fields for creating or changing a tool. Null leaves a field unchanged. The model gets json_schema
// or, without it, a schema derived from the last function of the source.
type ToolFields struct {
	JSONSchema      rest.Opt[rest.Object]   `json:"json_schema,omitzero" doc:"Of name, description and parameters."`
	SourceCode      rest.Opt[string]        `json:"source_code,omitzero" doc:"Kept, and never run."`
	SourceType      rest.Opt[string]        `json:"source_type,omitzero" doc:"The language; python if absent."`
	ArgsJSONSchema  rest.Opt[rest.Object]   `json:"args_json_schema,omitzero" doc:"The parameters, without json_schema."`
	Description     rest.Opt[string]        `json:"description,omitzero" doc:"In place of the schema's or the source's."`
	Tags            rest.Opt[[]string]      `json:"tags,omitzero"`
	ReturnCharLimit rest.Opt[int]           `json:"return_char_limit,omitzero" minimum:"1" maximum:"1000000"`
	Pip             rest.Opt[[]rest.Object] `json:"pip_requirements,omitzero"`
	NPM             rest.Opt[[]rest.Object] `json:"npm_requirements,omitzero"`
	NeedsApproval   rest.Opt[bool]          `json:"default_requires_approval,omitzero"`
	Parallel        rest.Opt[bool]          `json:"enable_parallel_execution,omitzero"`
	Metadata        rest.Opt[rest.Object]   `json:"metadata_,omitzero"`
}

// defaultReturnChars is Letta's default.
const defaultReturnChars = 50_000

// Bounds on a tool's source, and on each of its other parts, in bytes.
const (
	maxSourceBytes = 200_000
	maxSchemaBytes = 100_000
)

// New returns the definition to create.
func (f ToolFields) New() (agent.CustomTool, error) {
	t := agent.CustomTool{SourceType: "python", ReturnCharLimit: defaultReturnChars}
	if f.JSONSchema.Value == nil && f.SourceCode.Pointer() == nil {
		return t, rest.Unprocessable("body.json_schema", "required without source_code: the schema that the model is given, "+
			"of name, description and parameters")
	}
	err := f.Change(&t)
	return t, err
}

// Change changes a definition.
func (f ToolFields) Change(t *agent.CustomTool) error {
	if err := f.checkSizes(); err != nil {
		return err
	}
	t.Source = cmp.Or(f.SourceCode.Pointer(), t.Source)
	t.SourceType = cmp.Or(f.SourceType.Value, t.SourceType)
	t.ReturnCharLimit = cmp.Or(f.ReturnCharLimit.Value, t.ReturnCharLimit)
	t.RequiresApproval = cmp.Or(f.NeedsApproval.Pointer(), t.RequiresApproval)
	t.Parallel = cmp.Or(f.Parallel.Pointer(), t.Parallel)
	if f.Tags.Value != nil {
		t.Tags = f.Tags.Value
	}
	for _, field := range []struct {
		to   *json.RawMessage
		from []byte
	}{{&t.ArgsSchema, f.ArgsJSONSchema.Value}, {&t.Metadata, f.Metadata.Value}} {
		if field.from != nil {
			*field.to = field.from
		}
	}
	for _, field := range []struct {
		to   *json.RawMessage
		from []rest.Object
	}{{&t.Pip, f.Pip.Value}, {&t.NPM, f.NPM.Value}} {
		if field.from != nil {
			*field.to = chat.Encode(field.from)
		}
	}
	return f.describe(t)
}

func (f ToolFields) checkSizes() error {
	if n := len(f.SourceCode.Value); n > maxSourceBytes {
		return rest.Unprocessable("body.source_code", fmt.Sprintf("has %d bytes; it may have at most %d", n, maxSourceBytes))
	}
	for _, part := range []struct {
		name string
		size int
	}{
		{"json_schema", len(f.JSONSchema.Value)}, {"args_json_schema", len(f.ArgsJSONSchema.Value)},
		{"description", len(f.Description.Value)}, {"metadata_", len(f.Metadata.Value)},
		{"pip_requirements", len(chat.Encode(f.Pip.Value))}, {"npm_requirements", len(chat.Encode(f.NPM.Value))},
	} {
		if part.size > maxSchemaBytes {
			return rest.Unprocessable("body."+part.name, fmt.Sprintf("has %d bytes; it may have at most %d", part.size,
				maxSchemaBytes))
		}
	}
	return nil
}

// toolSchema is the part of a tool that a model gets.
type toolSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict,omitempty"`
}

// describe sets the part of a definition that a model gets.
func (f ToolFields) describe(t *agent.CustomTool) error {
	var s toolSchema
	_ = json.Unmarshal(t.Schema, &s) // the schema was checked before; it is empty for a new tool
	var err error
	switch {
	case f.JSONSchema.Value != nil:
		s, err = readToolSchema(f.JSONSchema.Value)
	case t.Source != nil && (f.SourceCode.Pointer() != nil || f.ArgsJSONSchema.Value != nil):
		s, err = schemaOfSource(*t, f.Description.Value)
	}
	if err != nil {
		return err
	}
	s.Description = cmp.Or(f.Description.Value, s.Description)
	t.Name, t.Description, t.Schema = s.Name, s.Description, chat.Encode(s)
	return nil
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// readToolSchema reads and checks a json_schema.
func readToolSchema(raw []byte) (s toolSchema, err error) {
	const at = "body.json_schema"
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields) // the schema says that it is an object
	for name := range fields {
		if !slices.Contains([]string{"name", "description", "parameters", "strict"}, name) && string(fields[name]) != "null" {
			return s, rest.Unprocessable(at, fmt.Sprintf("has %q; it is an object of name, description, parameters and strict",
				name))
		}
	}
	if json.Unmarshal(raw, &s) != nil || !toolName.MatchString(s.Name) {
		return s, rest.Unprocessable(at, "expected an object of name, which has 1 to 64 letters, digits, '_' and '-', "+
			"description, a text, and parameters, an object")
	}
	s.Parameters, err = readParameters(at+".parameters", s.Parameters)
	return s, err
}

// readParameters returns the schema of a tool's parameters; if it is absent, the schema of a tool without parameters.
func readParameters(place string, raw json.RawMessage) (json.RawMessage, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage(`{"type":"object","properties":{}}`), nil
	}
	var schema struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(raw, &schema); err != nil || schema.Type != "object" {
		return nil, rest.Unprocessable(place, `expected the JSON schema of an object: {"type":"object","properties":{…}}`)
	}
	return raw, nil
}

// schemaOfSource derives the schema of a definition from its source.
func schemaOfSource(t agent.CustomTool, description string) (s toolSchema, err error) {
	const at = "body.source_code"
	if t.SourceType != "python" {
		return s, rest.Unprocessable("body.json_schema", fmt.Sprintf("required for a source of the type %.50q: only Python "+
			"sources are read", t.SourceType))
	}
	signature, err := tool.ReadSignature(*t.Source, t.ArgsSchema != nil)
	if err != nil {
		return s, rest.Unprocessable(at, err.Error())
	}
	if s.Name, s.Description = signature.Name, signature.Description; s.Description == "" && description == "" {
		return s, rest.Unprocessable(at, fmt.Sprintf("the function %s has no docstring, which tells the model what it does: "+
			"write one, or send description", s.Name))
	}
	if !toolName.MatchString(s.Name) {
		return s, rest.Unprocessable(at, fmt.Sprintf("the name %.100q has more than 64 characters", s.Name))
	}
	if s.Parameters = signature.Parameters; t.ArgsSchema != nil {
		s.Parameters, err = readParameters("body.args_json_schema", t.ArgsSchema)
	}
	return s, err
}
