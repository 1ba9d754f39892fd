package rest

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// document completes the OpenAPI document after the last operation was registered: it adds the descriptions, errors and
// filters that all operations have in common.
func (a *API) document() {
	d := a.OpenAPI()
	for _, ofHuma := range []string{"ErrorModel", "ErrorDetail"} { // huma declares these with each operation
		delete(d.Components.Schemas.Map(), ofHuma)
	}
	boundIntegers(d)
	d.Info.Description = "Memory for AI agents: files, conversations, core and archival memory, and their compaction."
	d.Info.License = &huma.License{Name: "Apache-2.0", URL: "https://www.apache.org/licenses/LICENSE-2.0"}
	d.Info.Contact = &huma.Contact{Name: "Loci"}
	d.Servers = []*huma.Server{{URL: "/", Description: "The server that this document came from."}}
	d.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"key": {Type: "http", Scheme: "bearer",
		Description: "An API key of 'loci keys create', with the scopes read, tools, write or admin. An operation names " +
			"those that it needs; write includes read and tools, and admin all. A server without keys answers its own " +
			"machine without one. In place of Authorization, X-BARE-PASSWORD may have the key, with or without the word " +
			"'password' before it, as clients of Letta's self-hosted servers send it."}}
	d.Security = []map[string][]string{{"key": {}}}
	a.documentErrors()
	d.Components.Parameters = map[string]*huma.Param{}
	for _, name := range unmatched {
		d.Components.Parameters[name] = &huma.Param{Name: name, In: "query", Schema: &Schema{Type: huma.TypeString},
			Description: "A filter of Letta's by what Loci does not keep: it selects nothing."}
	}
	c := a.describer()
	for name, s := range d.Components.Schemas.Map() {
		c.schema(name, s)
	}
	tags := map[string]bool{}
	for path, item := range d.Paths {
		for _, op := range operationsOf(item) {
			tags[op.Tags[0]] = true
			op.Security = a.access[echoPath(path)][op.Method].security()
			c.operation(op)
			a.declareErrors(op)
			declareUnmatched(op)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		d.Tags = append(d.Tags, &huma.Tag{Name: name, Description: tagWords[name]})
	}
}

// tagWords describes each group of operations by tag: the first segment of its paths.
var tagWords = map[string]string{
	"admin":          "Organizations, which only the operator creates, renames and deletes, and API keys.",
	"agents":         "Agents, and what belongs to one: its prompt, messages, events, tools, open files and memories.",
	"archives":       "Archives of passages, which agents share.",
	"blocks":         "Blocks of core memory, which agents share, with their versions.",
	"conversations":  "Conversations with agents.",
	"caller":         "Who a request is from.",
	"embeddings":     "Vectors of texts, and how far those of the stored texts are.",
	"erasures":       "Erasures of texts and messages from all that is stored.",
	"errors":         "The codes of errors.",
	"files":          "Files of all folders.",
	"folders":        "Folders of files, which agents share.",
	"groups":         "Groups of agents in Letta; Loci has none.",
	"mcp-servers":    "MCP servers that Letta calls; Loci calls none.",
	"providers":      "Providers that clients of Letta add; Loci's are the operator's.",
	"sandbox-config": "Sandboxes in which Letta runs tools; Loci has none.",
	"identities":     "Whom or what agents and blocks belong to.",
	"health":         "Whether the server runs.",
	"lab":            "Replays of recorded sessions under policies.",
	"metrics":        "What the server does, in numbers for Prometheus.",
	"mcp":            "The Model Context Protocol: an agent's tools, resources and prompts for other programs.",
	"memory-trees":   "Trees of memory files, which agents share, with the versions of their files.",
	"messages":       "Messages of all agents.",
	"models":         "Models of language, and of embeddings.",
	"passages":       "Passages of all archives.",
	"ready":          "Whether the server works.",
	"sources":        "The older path of folders.",
	"runs":           "The work of agents on requests.",
	"steps":          "The answers of models within runs.",
	"jobs":           "Runs, under their older name.",
	"policies":       "Ways of keeping a context window.",
	"tags":           "Tags of agents.",
	"tools":          "The tools that agents can have.",
}

// declareUnmatched declares the unmatched filters on operations that answer with a list or a count.
func declareUnmatched(op *huma.Operation) {
	ok := op.Responses["200"]
	if ok == nil || ok.Content[JSON] == nil || !filters(op.Method, op.Path) {
		return
	}
	if kind := ok.Content[JSON].Schema.Type; kind != huma.TypeArray && kind != huma.TypeInteger {
		return
	}
	for _, name := range unmatchedBy(op.Method, op.Path) {
		if !slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.Name == name }) {
			op.Parameters = append(op.Parameters, &huma.Param{Ref: "#/components/parameters/" + name})
		}
	}
}

// marshalDocument returns the document as JSON, with an example of each body and without types that nothing refers to.
// It leaves the types unchanged, because requests are checked against them at the same time. It is called once.
func (a *API) marshalDocument() ([]byte, error) {
	c := a.describer()
	for _, item := range a.OpenAPI().Paths {
		for _, op := range operationsOf(item) {
			c.examples(a.OpenAPI(), op)
		}
	}
	text, err := json.Marshal(a.OpenAPI())
	if err != nil {
		return nil, err
	}
	document := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&document); err != nil {
		return nil, err
	}
	components, _ := document["components"].(map[string]any)
	types, _ := components["schemas"].(map[string]any)
	for err == nil && dropUnused(types, text) {
		text, err = json.Marshal(document)
	}
	return text, err
}

// dropUnused deletes the types that nothing in a document refers to, and reports whether it deleted any.
func dropUnused(types map[string]any, document []byte) (dropped bool) {
	for name := range types {
		if !bytes.Contains(document, []byte(`"#/components/schemas/`+name+`"`)) {
			delete(types, name)
			dropped = true
		}
	}
	return dropped
}

// responseName is the name under which the response of a status is declared.
func responseName(status int) string { return strings.ReplaceAll(http.StatusText(status), " ", "") }

// documentErrors declares one response for each status in errorCodes.
func (a *API) documentErrors() {
	declared := map[string]*huma.Response{}
	for _, code := range errorCodes {
		name := responseName(code.Status)
		if name == "" {
			continue // no client gets this status
		}
		if declared[name] == nil {
			declared[name] = &huma.Response{Content: map[string]*huma.MediaType{JSON: {Schema: SchemaOf[Problem](a),
				Examples: map[string]*huma.Example{}}}}
		}
		r := declared[name]
		r.Description = strings.TrimSpace(r.Description + " " + code.Meaning)
		r.Content[JSON].Examples[code.Code] = &huma.Example{Summary: code.Meaning, Value: newProblem(code.Code, code.Meaning)}
	}
	declared["Error"] = &huma.Response{Description: "Any other error.", Content: map[string]*huma.MediaType{
		JSON: {Schema: SchemaOf[Problem](a), Example: newProblem(codeInternal, codeOf(codeInternal).Meaning)}}}
	a.OpenAPI().Components.Responses = declared
}

func errorResponse(name string) *huma.Response {
	return &huma.Response{Ref: "#/components/responses/" + name}
}

// declareErrors gives an operation the errors that can follow from its method, parameters and body.
func (a *API) declareErrors(op *huma.Operation) {
	body, public := op.RequestBody != nil, len(op.Security) == 0
	inPath := slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.In == "path" })
	file := false
	if ok := op.Responses["200"]; ok != nil {
		file = ok.Content["application/octet-stream"] != nil
	}
	for status, possible := range map[int]bool{
		http.StatusBadRequest:                   body || len(op.Parameters) > 0 && !public,
		http.StatusUnauthorized:                 !public,
		http.StatusForbidden:                    !public,
		http.StatusNotFound:                     inPath || body && !public,
		http.StatusMethodNotAllowed:             public && !inPath,
		http.StatusConflict:                     op.Method != http.MethodGet,
		http.StatusRequestTimeout:               body,
		http.StatusPreconditionFailed:           file,
		http.StatusRequestEntityTooLarge:        body,
		http.StatusUnsupportedMediaType:         body,
		http.StatusRequestedRangeNotSatisfiable: file,
		http.StatusUnprocessableEntity:          body || len(op.Parameters) > 0 && !public,
		http.StatusTooManyRequests:              !public,
		http.StatusInternalServerError:          true,
		http.StatusServiceUnavailable:           !public || op.Path == "/v1/ready",
	} {
		if possible {
			op.Responses[strconv.Itoa(status)] = errorResponse(responseName(status))
		}
	}
	op.Responses["default"] = errorResponse("Error")
}
