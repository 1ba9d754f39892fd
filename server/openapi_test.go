package server_test

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server"
	"github.com/loci-memory/loci/server/metrics"
	"github.com/loci-memory/loci/server/servertest"
)

// documentCheck looks for faults in an OpenAPI document.
type documentCheck struct {
	t    *testing.T
	root map[string]any
	ids  map[string]bool

	names map[string]bool // names of fields and parameters, also as Type.field
}

// TestDocumentIsComplete checks /openapi.json as a strict linter does. If LOCI_TEST_OPENAPI names a file, the test
// writes the document there for other linters.
func TestDocumentIsComplete(t *testing.T) {
	t.Parallel()
	h := server.HandlerWithoutKeys(&server.Server{Metrics: metrics.New(""), Log: slog.New(slog.DiscardHandler),
		Version: "1"})
	text := servertest.Send(h, "GET", "/openapi.json", "").Text
	if file := os.Getenv("LOCI_TEST_OPENAPI"); file != "" {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := documentCheck{t: t, root: fields(t, text), ids: map[string]bool{}, names: map[string]bool{}}
	for _, name := range []string{"info", "servers", "tags", "security"} {
		if c.root[name] == nil {
			t.Errorf("the document lacks %s", name)
		}
	}
	described := map[string]bool{}
	for _, tag := range c.root["tags"].([]any) {
		tag := tag.(map[string]any)
		described[tag["name"].(string)] = tag["description"] != nil && tag["description"] != ""
	}
	for path, item := range c.root["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			c.operation(method+" "+path, op.(map[string]any), described)
		}
	}
	schemas := c.root["components"].(map[string]any)["schemas"].(map[string]any)
	for name, s := range schemas {
		c.schema(name, s.(map[string]any))
		if regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`).FindString(name) == "" {
			t.Errorf("the name of the type %s is none", name)
		}
		if !strings.Contains(text, `"#/components/schemas/`+name+`"`) {
			t.Errorf("nothing refers to the type %s", name)
		}
	}
	for _, at := range []string{"Compaction.mode", "CompactionPlan.mode", "CreateAgent.compaction_settings.mode",
		"CompactRequest.compaction_settings.mode", "File.processing_status", "Progress.status"} {
		value := any(schemas)
		for name := range strings.SplitSeq(strings.ReplaceAll(at, ".", ".properties."), ".") {
			value = value.(map[string]any)[name]
		}
		if value.(map[string]any)["enum"] == nil {
			t.Errorf("%s: got %v, want its values", at, value)
		}
	}
	c.everywhere("#", c.root)
	c.words()
}

// words checks that each word in words.md is a field or a parameter.
func (c *documentCheck) words() {
	table, err := os.ReadFile("rest/words.md")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, row := range regexp.MustCompile(`(?m)^\| ([A-Za-z_.]+) \|`).FindAllStringSubmatch(string(table), -1) {
		if word := row[1]; word != "word" && !c.names[word] {
			c.t.Errorf("words.md has %s, which no type or parameter has", word)
		}
	}
}

var verbs = strings.Fields("approve ask attach cancel capture check close commit compact compress count create " +
	"delete deny detach diff download expand export find fit fork get import list open pin preview recompile redact " +
	"reject rename reparse reset " +
	"restore retry revert run search send stream summarize take unpin update upload upsert write")

func (c *documentCheck) operation(place string, op map[string]any, tags map[string]bool) {
	id, _ := op["operationId"].(string)
	verb, noun, _ := strings.Cut(id, "_")
	if !slices.Contains(verbs, verb) || noun == "" || c.ids[id] {
		c.t.Errorf("%s: got the id %q, want a verb and a noun that no other operation has", place, id)
	}
	c.ids[id] = true
	c.text(place+" summary", op["summary"], `^[A-Z].*[^.]$`)
	c.text(place+" description", op["description"], `(?s)^[A-Z].*\.$`)
	for _, tag := range op["tags"].([]any) {
		if !tags[tag.(string)] {
			c.t.Errorf("%s: the tag %s is not described", place, tag)
		}
	}
	inPath := regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(place, -1)
	for _, p := range c.list(op["parameters"]) {
		c.names[p["name"].(string)] = true
		c.text(place+" "+fmt.Sprint(p["name"]), p["description"], `.`)
		c.schema(place+" "+fmt.Sprint(p["name"]), p["schema"].(map[string]any))
		inPath = slices.DeleteFunc(inPath, func(m []string) bool { return m[1] == p["name"] && p["required"] == true })
	}
	if len(inPath) > 0 {
		c.t.Errorf("%s: the parameters %v of the path are not declared", place, inPath)
	}
	if body, ok := op["requestBody"].(map[string]any); ok {
		c.contents(place+" body", body)
	}
	succeeds, refuses := false, false
	for status, r := range op["responses"].(map[string]any) {
		response := c.resolved(r.(map[string]any))
		c.text(place+" "+status, response["description"], `.`)
		succeeds, refuses = succeeds || status[0] == '2', refuses || status[0] == '4'
		if c.contents(place+" "+status, response); status[0] == '4' {
			problem := response["content"].(map[string]any)["application/json"].(map[string]any)["schema"].(map[string]any)
			if problem["$ref"] != "#/components/schemas/Problem" {
				c.t.Errorf("%s %s: got the schema %v, want that of errors", place, status, problem)
			}
		}
	}
	if !succeeds || !refuses {
		c.t.Errorf("%s: got the statuses %v, want some of 2xx and of 4xx", place,
			slices.Sorted(maps.Keys(op["responses"].(map[string]any))))
	}
}

// contents checks that each body has a schema and an example.
func (c *documentCheck) contents(place string, body map[string]any) {
	contents, _ := body["content"].(map[string]any)
	for mediaType, content := range contents {
		content := content.(map[string]any)
		schema, ok := content["schema"].(map[string]any)
		if !ok || len(schema) == 0 {
			c.t.Errorf("%s %s: no schema", place, mediaType)
			continue
		}
		c.schema(place, schema)
		_, hasExample := content["example"]
		examples, _ := content["examples"].(map[string]any)
		for name, e := range examples {
			if value, ok := c.resolved(e.(map[string]any))["value"]; !ok || value == nil {
				c.t.Errorf("%s: the example %s has no value", place, name)
			}
		}
		if !hasExample && len(examples) == 0 {
			c.t.Errorf("%s %s: no example", place, mediaType)
		}
	}
}

// schema checks that a schema has a type, and that each of its fields has a description.
func (c *documentCheck) schema(place string, s map[string]any) {
	if s["type"] == nil && s["$ref"] == nil && s["oneOf"] == nil && s["anyOf"] == nil {
		c.t.Errorf("%s: the schema %v has no type", place, s)
	}
	if types, ok := s["type"].([]any); ok && slices.Contains(types, any("array")) {
		c.t.Errorf("%s: a list may be null", place)
	}
	if (s["type"] == "array") != (s["items"] != nil) {
		c.t.Errorf("%s: a list has no items", place)
	}
	if values, ok := s["enum"].([]any); ok && len(values) == 0 {
		c.t.Errorf("%s: an enumeration has no values", place)
	}
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		p := p.(map[string]any)
		c.names[name], c.names[place+"."+name] = true, true
		c.text(place+"."+name, p["description"], `.`)
		c.schema(place+"."+name, p)
	}
	if items, ok := s["items"].(map[string]any); ok {
		c.schema(place+"[]", items)
	}
	for _, part := range c.list(s["oneOf"]) {
		c.schema(place+" oneOf", part)
	}
}

// everywhere checks that all references lead somewhere, and that the document has no extensions.
func (c *documentCheck) everywhere(place string, value any) {
	switch value := value.(type) {
	case map[string]any:
		if _, ok := value["$ref"].(string); ok && len(c.resolved(value)) == 0 {
			c.t.Errorf("%s: %v leads nowhere", place, value["$ref"])
		}
		for name, v := range value {
			if strings.HasPrefix(name, "x-") || name == "patternDescription" || name == "nullable" {
				c.t.Errorf("%s has %s", place, name)
			}
			c.everywhere(place+"/"+name, v)
		}
	case []any:
		for i, v := range value {
			c.everywhere(fmt.Sprint(place, "/", i), v)
		}
	}
}

func (c *documentCheck) resolved(object map[string]any) map[string]any {
	ref, ok := object["$ref"].(string)
	if !ok {
		return object
	}
	target := c.root
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		target, _ = target[part].(map[string]any)
	}
	return target
}

func (c *documentCheck) list(value any) []map[string]any {
	var list []map[string]any
	items, _ := value.([]any)
	for _, item := range items {
		list = append(list, c.resolved(item.(map[string]any)))
	}
	return list
}

func (c *documentCheck) text(place string, value any, form string) {
	if text, _ := value.(string); !regexp.MustCompile(form).MatchString(text) {
		c.t.Errorf("%s: got %q, want a text like %s", place, text, form)
	}
}
