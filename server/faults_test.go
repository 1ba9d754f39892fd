package server_test

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/server/servertest"
)

// goTexts matches texts that occur only in Go's own errors.
var goTexts = regexp.MustCompile(`Go (value|struct)|json: |strconv\.|pq:|pgx|SQLSTATE|\bnil\b|%!`)

// TestFaultsHaveOneFormAndTheirStatus sends each documented operation every kind of fault that it can have.
func TestFaultsHaveOneFormAndTheirStatus(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	h := newClient(t)
	check := documentCheck{t: t, root: fields(t, servertest.Send(h, "GET", "/openapi.json", "").Text)}
	paths := check.root["paths"].(map[string]any)
	for n, path := range slices.Sorted(maps.Keys(paths)) {
		if n%scale.Of(4, 1) != 0 {
			continue
		}
		for method, op := range paths[path].(map[string]any) {
			f := faulty{t: t, h: h, method: strings.ToUpper(method), path: path, target: path,
				params: check.list(op.(map[string]any)["parameters"])}
			for _, p := range f.params {
				if p["in"] == "path" {
					f.target = strings.Replace(f.target, "{"+p["name"].(string)+"}", example(p), 1)
				}
				if p["required"] == true && p["in"] == "query" {
					f.target += "?" + p["name"].(string) + "=" + example(p)
				}
			}
			f.sendParams()
			if body, ok := op.(map[string]any)["requestBody"].(map[string]any); ok {
				f.sendBodies(check, body["content"].(map[string]any))
			}
			f.send("another method", "TRACE", strings.Split(f.target, "?")[0], "", 405)
		}
		servertest.CheckForm(t, servertest.Send(h, "GET", path+"/of/nothing", ""))
	}
}

// faulty sends requests with faults to an operation.
type faulty struct {
	t                    *testing.T
	h                    http.Handler
	method, path, target string // target is the path with ids that name nothing
	params               []map[string]any
}

// example returns an example value for a path parameter.
func example(p map[string]any) string {
	schema := p["schema"].(map[string]any)
	if examples, ok := schema["examples"].([]any); ok {
		return strings.ReplaceAll(examples[0].(string), " ", "%20")
	}
	if schema["type"] == "integer" {
		return "1"
	}
	return "nothing"
}

// send checks an answer: its status is one of several, and it has the form of all errors.
func (f *faulty) send(fault, method, target, body string, statuses ...int) {
	f.t.Helper()
	got := servertest.Send(f.h, method, target, body)
	if !slices.Contains(statuses, got.Code) || goTexts.MatchString(got.Text) {
		f.t.Errorf("%s: %s %s: got %d %.300s, want %v", fault, method, target, got.Code, got.Text, statuses)
	}
	if got.Code >= 400 {
		servertest.CheckForm(f.t, got)
	}
}

// sendParams sends path parameters that name nothing or have a wrong form, and invalid query parameters.
func (f *faulty) sendParams() {
	body := ""
	for _, p := range f.params {
		name, schema := p["name"].(string), p["schema"].(map[string]any)
		joined := f.target + map[bool]string{true: "&", false: "?"}[strings.Contains(f.target, "?")]
		switch {
		case p["in"] == "path" && schema["pattern"] != nil:
			f.send("another form of "+name, f.method, strings.Replace(f.target, example(p), "x-1", 1), body, 422)
			statuses := []int{404, 422} // 422 if the operation requires a body
			if strings.HasPrefix(f.path, "/mcp") {
				statuses = append(statuses, 400) // an empty body is no message
			}
			f.send("an unknown "+name, f.method, f.target, body, statuses...)
		case p["in"] == "path" && schema["type"] == "integer":
			f.send("no number for "+name, f.method, strings.Replace(f.path, "{"+name+"}", "x", 1), body, 422)
		case p["in"] == "query" && schema["enum"] != nil:
			f.send("another word for "+name, f.method, joined+name+"=nothing", body, 422)
		case p["in"] == "query" && schema["type"] == "integer":
			f.send("no number for "+name, f.method, joined+name+"=x", body, 422, 404)
			f.send("a number that is too large for "+name, f.method, joined+name+"=99999999999999999999", body, 422, 404)
		case p["in"] == "query" && schema["type"] == "boolean":
			f.send("no flag for "+name, f.method, joined+name+"=x", body, 422)
		}
	}
}

// sendBodies sends bodies that are not JSON, of a wrong type, too deep and too large, and fields of wrong types.
func (f *faulty) sendBodies(check documentCheck, contents map[string]any) {
	content, ok := contents["application/json"].(map[string]any)
	if !ok {
		f.send("no form", f.method, f.target, "{}", 422)
		return
	}
	// A streamed operation looks up the path's ids before it reads the body.
	f.send("no JSON", f.method, f.target, `{"a":`, 400, 404)
	f.send("something behind it", f.method, f.target, `{} {}`, 400, 404)
	f.send("a list", f.method, f.target, `[]`, 422, 404)
	f.send("too deep", f.method, f.target, `{"a":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`}`, 422, 404)
	large := []int{413, 404}
	if f.path == "/v1/lab/replays" {
		large = []int{422} // it accepts whole transcripts
	}
	f.send("too large", f.method, f.target, `{"a":"`+strings.Repeat("a", 1<<20)+`"}`, large...)
	properties, _ := check.resolved(content["schema"].(map[string]any))["properties"].(map[string]any)
	for name, p := range properties {
		for _, value := range []string{`"text"`, "7", "1.5", "1e400", "99999999999999999999", "7.0", "true", "[]", `[[1]]`,
			"{}", `{"a":{}}`, "null"} {
			kind, _ := check.resolved(p.(map[string]any))["type"].(string)
			if p.(map[string]any)["deprecated"] == true {
				kind = "" // the field accepts any JSON, and is then refused with a reason
			}
			wrong := map[string]string{`"text"`: "string", "7": "integer", "true": "boolean", "[]": "array",
				"{}": "object"}[value]
			body := `{"` + name + `":` + value + `}`
			got := servertest.Send(f.h, f.method, f.target, body)
			noModel := got.Code == 503 && strings.Contains(got.Text, "no_model") // the server of this test has none
			if goTexts.MatchString(got.Text) || got.Code >= 500 && !noModel {
				f.t.Errorf("%s %s %s: got %d %.300s", f.method, f.target, body, got.Code, got.Text)
			}
			if detectable := wrong != "" && kind != "" && kind != wrong &&
				(kind != "number" || wrong != "integer"); detectable &&
				!slices.Contains([]int{422, 404}, got.Code) {
				f.t.Errorf("%s %s %s: got %d %.300s, want 422", f.method, f.target, body, got.Code, got.Text)
			}
			if got.Code >= 400 {
				servertest.CheckForm(f.t, got)
			}
		}
	}
}
