package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loci-memory/loci/db"
)

const (
	noProjects  = "Loci has no projects; leave it out, and use tags, or an organization for each project"
	noTemplates = "Loci has no templates; leave it out"
)

// unserved are fields and parameters of Letta's for things that Loci does not have, and fields that belong elsewhere,
// each with the reason. An operation refuses such a name if it does not know the name, unless the value is empty.
var unserved = map[string]string{
	"project":                noProjects,
	"project_id":             noProjects,
	"template_id":            noTemplates,
	"base_template_id":       noTemplates,
	"template_name":          noTemplates,
	"deployment_id":          noTemplates,
	"entity_id":              noTemplates,
	"is_template":            noTemplates,
	"preserve_on_migration":  noTemplates,
	"include_default_source": "Loci makes no folder with an agent; create one, and name it in folder_ids",
	"update_timestamp":       "the prompt says when the agent was changed, and no other time; leave it out",
	"policy":                 "it belongs in compaction_settings, as {\"compaction_settings\": {\"policy\": …}}",
	"compaction_settings": "this operation compacts nothing; send them to the route that compacts, or set them with " +
		"PATCH /v1/agents/{agent_id}",
}

// empty are the values, in JSON and in a query, that ask for nothing.
var empty = []string{"null", "false", `""`, "[]", "{}", ""}

// strict are objects where unknown fields are refused: Letta's fields are all known there, so any other is a mistake.
var strict = []string{"compaction_settings"}

// refuseUnknown returns a *Problem for an unknown field of a strict object, with the nearest of the known names; nil
// for any other field.
func refuseUnknown(name, at string, known []string) *Problem {
	if !slices.ContainsFunc(strict, func(object string) bool { return strings.HasSuffix(at, object+"."+name) }) {
		return nil
	}
	if meant := db.Nearest(name, known); len(name) <= maxNameBytes && meant != "" {
		return Unprocessable("body."+at, "there is no such setting; did you mean "+meant+"?")
	}
	return Unprocessable("body."+shorten(at), "there is no such setting; there are "+
		strings.Join(slices.Sorted(slices.Values(known)), ", "))
}

// whyUnserved returns why a name is refused, in whatever case it is written; empty if it is not.
func whyUnserved(name string) string {
	if len(name) > maxNameBytes {
		return ""
	}
	return unserved[strings.ToLower(name)]
}

// refuseField returns a *Problem for a field that is in unserved; nil for any other.
func refuseField(name, at string, value []byte) *Problem {
	if why := whyUnserved(name); why != "" && !slices.Contains(empty, string(value)) {
		return Unprocessable("body."+at, why)
	}
	return nil
}

// refuseParameter returns a *Problem for a query that cannot be served: a text in it cannot be stored, a single
// parameter has two values, or a parameter that the operation does not know is in unserved, names an organization, asks
// for another order than the list's, or narrows a search. It returns nil for any other query.
func refuseParameter(op *huma.Operation, query url.Values) *Problem {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		value := query.Get(name)
		if slices.ContainsFunc(query[name], func(v string) bool { return v != db.Clean(v) }) {
			return Unprocessable("query."+shorten(db.Clean(name)), "the text has a NUL, or bytes that are not UTF-8; leave "+
				"them out")
		}
		if second := otherOf(query[name]); second != "" && takesOne(op, name) {
			return Unprocessable("query."+name, fmt.Sprintf("it is there with %q and with %q; send one", shorten(value),
				shorten(second)))
		}
		if x, err := strconv.ParseFloat(value, 64); err == nil && math.IsNaN(x) && takesNumber(op, name) {
			return Unprocessable("query."+name, "it is not a number") // no bound refuses NaN
		}
		if slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.In == "query" && p.Name == name }) ||
			slices.Contains(unmatchedBy(op.Method, op.Path), name) {
			continue
		}
		if name == "order_by" && value != "created_at" {
			return Unprocessable("query.order_by", "this operation sorts by nothing else; leave it out")
		}
		if name == "org_id" && value != "" {
			return Unprocessable("query.org_id", "this operation works on the key's own organization: use another's key")
		}
		if reason := whyUnserved(name); reason != "" && !slices.Contains(empty, value) {
			return Unprocessable("query."+name, reason)
		}
		if searches(op.Path) {
			problem := unknownName("parameter", "query."+name, name, parameters(op))
			if op.RequestBody != nil {
				problem.Detail += "; fields go into the body"
			}
			return problem
		}
	}
	return nil
}

// parameters returns the names of an operation's parameters in the query.
func parameters(op *huma.Operation) (names []string) {
	for _, p := range op.Parameters {
		if p.In == "query" && p.Name != "" {
			names = append(names, p.Name)
		}
	}
	return names
}

// takesNumber reports whether an operation has a query parameter that is a number.
func takesNumber(op *huma.Operation, name string) bool {
	return slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool {
		return p.In == "query" && p.Name == name && p.Schema != nil && p.Schema.Type == huma.TypeNumber
	})
}

// otherOf returns a value that differs from the first; empty if there is none.
func otherOf(values []string) string {
	for _, value := range values {
		if value != values[0] {
			return value
		}
	}
	return ""
}

// takesOne reports whether an operation has a query parameter that takes a single value.
func takesOne(op *huma.Operation, name string) bool {
	return slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool {
		return p.In == "query" && p.Name == name && p.Schema != nil && p.Schema.Type != huma.TypeArray &&
			p.Schema.Ref == "" && len(p.Schema.OneOf)+len(p.Schema.AnyOf) == 0
	})
}

// refuseMisplaced refuses a body that contains a parameter of the query. It is called for operations without a body.
func refuseMisplaced(op *huma.Operation, body []byte) *Problem {
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal(body, &fields) // a body that is no object has no fields, and is reported elsewhere
	for _, p := range op.Parameters {
		if value, found := fields[p.Name]; found && p.In == "query" && string(value) != "null" {
			return Unprocessable("body."+p.Name, "is read from the query, not from the body: send ?"+p.Name+"=")
		}
	}
	return nil
}
