package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
)

// schema is the part of a schema in the API document that the tests use.
type schema struct {
	Ref        string `json:"$ref"`
	Type       any    // one name or a list of names
	Enum       []any
	Properties map[string]*schema
	Required   []string
	Items      *schema
	OneOf      []*schema
	Minimum    *float64
	Maximum    *float64
}

// parameter is a parameter of an operation.
type parameter struct {
	Name, In string
	Required bool
	Schema   *schema
}

// document is the part of the API document that the tests use.
type document struct {
	Paths map[string]map[string]struct {
		Parameters  []parameter
		RequestBody struct {
			Content map[string]struct{ Schema *schema }
		}
	}
	Components struct{ Schemas map[string]*schema }
}

func (d *document) resolve(s *schema) *schema {
	if s != nil && s.Ref != "" {
		return d.Components.Schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]
	}
	return s
}

func (s *schema) is(name string) bool {
	names, several := s.Type.([]any)
	return s.Type == name || several && slices.Contains(names, any(name))
}

// sample returns a value that a schema accepts, with its required properties.
func (d *document) sample(s *schema) any {
	switch s = d.resolve(s); {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.OneOf) > 0:
		return d.sample(s.OneOf[0])
	case s.is("object"):
		object := map[string]any{}
		for _, name := range s.Required {
			object[name] = d.sample(s.Properties[name])
		}
		return object
	case s.is("array"):
		return []any{d.sample(s.Items)}
	case s.is("integer"), s.is("number"):
		return json.Number("1")
	case s.is("boolean"):
		return true
	}
	return "x"
}

// integers calls visit with the path and schema of each integer below a schema, and with a function that returns a
// sample with a number in that place.
func (d *document) integers(s *schema, path string, depth int, visit func(string, *schema, func(json.Number) any)) {
	s = d.resolve(s)
	if s == nil || depth == 0 {
		return
	}
	if s.is("integer") {
		visit(path, s, func(n json.Number) any { return n })
	}
	for _, option := range s.OneOf {
		d.integers(option, path, depth-1, visit)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		d.integers(s.Properties[name], path+"."+name, depth-1, func(at string, integer *schema, with func(json.Number) any) {
			visit(at, integer, func(n json.Number) any {
				object, _ := d.sample(s).(map[string]any)
				object[name] = with(n)
				return object
			})
		})
	}
	d.integers(s.Items, path+"[0]", depth-1, func(place string, integer *schema, sampleWith func(json.Number) any) {
		visit(place, integer, func(n json.Number) any { return []any{sampleWith(n)} })
	})
}

// maxDepth is how deep in bodies the tests look for integers.
const maxDepth = 8

// Every integer of every operation is sent with values beyond all bounds: of its column, of 64 bits, of a float.
func TestNoIntegerIsTheServersFault(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.work()
	own := newTenant(c, "integers")
	var d document
	if err := json.Unmarshal([]byte(own.must("GET", "/openapi.json", "")), &d); err != nil {
		t.Fatal(err)
	}
	operator := c.operator()
	sent := 0
	check := func(what string, s *schema, n json.Number, got servertest.Reply) {
		sent++
		value, err := n.Float64()
		beyond := err != nil || value > *s.Maximum || s.Minimum != nil && value < *s.Minimum
		switch {
		case got.Code >= 500:
			t.Errorf("%s = %s: got %d %s", what, n, got.Code, got.Text)
		case beyond && (got.Code < 400 || got.Code == 404 || got.Code == 409):
			t.Errorf("%s = %s: got %d %.200s, want it refused", what, n, got.Code, got.Text)
		case beyond && n == "2147483648" && !strings.Contains(got.Text, fmt.Sprintf("%.0f", *s.Maximum)):
			t.Errorf("%s = %s: got %s, which does not name the limit", what, n, got.Text)
		}
	}
	for _, o := range own.operations() {
		method, path, operation := o.Method, o.Path, o.String()
		caller := own
		if o.Access == rest.Operator {
			caller.client = operator
		}
		op := d.Paths[path][strings.ToLower(method)]
		body := op.RequestBody.Content["application/json"].Schema
		for _, n := range []json.Number{"-1", "2147483648", "9223372036854775808", "1e400"} {
			for _, p := range op.Parameters {
				d.integers(p.Schema, p.Name, 2, func(_ string, s *schema, _ func(json.Number) any) {
					what := operation + ": " + p.In + " " + p.Name
					if s.Maximum == nil {
						t.Fatalf("%s has no maximum", what)
					}
					if p.In == "header" || strings.HasSuffix(path, "/stream") && n == "2147483648" {
						return // such a position does not exist yet
					}
					check(what, s, n, caller.with(d, operation, p, n))
				})
			}
			d.integers(body, "", maxDepth, func(place string, s *schema, sampleWith func(json.Number) any) {
				if s.Maximum == nil {
					t.Fatalf("%s: body%s has no maximum", operation, place)
				}
				raw, err := json.Marshal(sampleWith(n))
				if err != nil {
					t.Fatal(err)
				}
				target := pathParams.ReplaceAllStringFunc(path, func(p string) string { return own.has[strings.Trim(p, "{}")] })
				check(operation+": body"+place, s, n, caller.call(method, target, string(raw)))
			})
		}
	}
	if sent < 100 {
		t.Errorf("only %d integers were sent", sent)
	}
}

// with calls an operation with a number as a parameter, and with everything else that it requires.
func (t tenant) with(d document, operation string, of parameter, n json.Number) servertest.Reply {
	method, path, _ := strings.Cut(operation, " ")
	op := d.Paths[path][strings.ToLower(method)]
	query := "?"
	for _, p := range op.Parameters {
		if p.In == "query" && p.Name != of.Name && p.Required {
			query += fmt.Sprintf("%s=%v&", p.Name, d.sample(p.Schema))
		}
	}
	if of.In == "query" {
		query += of.Name + "=" + string(n)
	}
	target := pathParams.ReplaceAllStringFunc(path, func(param string) string {
		if name := strings.Trim(param, "{}"); of.In != "path" || name != of.Name {
			return t.has[name]
		}
		return string(n)
	})
	body := ""
	if s := op.RequestBody.Content["application/json"].Schema; s != nil {
		raw, _ := json.Marshal(d.sample(s)) // maps, lists and texts can be encoded
		body = string(raw)
	}
	return t.call(method, target+query, body)
}
