package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/db/queue/queuetest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/server"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// idMeanings says what ids in queries and bodies name. The value is a parameter of a path, for which a tenant has an
// id, or a reason why the id names nothing that belongs to an organization. If holdsIDs finds a parameter or field that
// is missing here, the test fails.
var idMeanings = map[string]string{
	"agent_id": "agent_id", "agent_ids": "agent_id", "archive_id": "archive_id", "file_id": "file_id",
	"block_ids":       "block_id",
	"conversation_id": "conversation_id", "folder_ids": "folder_id", "source_ids": "folder_id", "source_id": "- refused",
	"message_ids": "- always refused", "org_id": "org_id", "run_id": "run_id", "run_ids": "run_id",
	"approval_request_id": "message_id", "after": anyID, "before": anyID, "cursor": anyID,

	"blocks[].id": "block_id", "memory_tree.id": "tree_id", "grants.blocks[].id": "block_id",
	"grants.memory_tree.id": "tree_id", "changes[].id": "passage_id",
	"supersedes": "passage_id", "superseded_by": "passage_id",

	"memory_file_id": "memory_file_id", "key_id": "- who made a version",

	"tool_ids": "tool_id", "otid": "- a word of the client's", "tool_call_id": "- a word of the model's",
	"message_id": "message_id", "batch_item_id": "- refused", "group_id": "- not stored", "sender_id": "- not stored",
	"trace_ids": "- not stored",
	"user_id":   "identity_id", "identity_id": "identity_id", "identity_ids": "identity_id", "identifier_key": "- a name",
	"identifier_keys": "- names", "key": "- the name of a property", "project_id": "- not stored",
	"template_id":      "- not stored",
	"base_template_id": "- not stored", "deployment_id": "- not stored", "entity_id": "- not stored",
	"created_by_id": "- not stored", "return_token_ids": "- a switch", "client_tools[].name": "- a word of the client's",
	"cache_key": "- a switch",
}

// anyID means the id of any item of the list, of any kind.
const anyID = "*"

// bodiesWith are bodies for operations with examples that are unfit: the body in which a field is read, or the body of
// an operation without the field.
var bodiesWith = map[string]string{
	"messages[].approval_request_id": `{"messages":[{"type":"approval","approval_request_id":%s,"approve":true}]}`,
	"blocks[].id":                    `{"mode":"blank","task":"x","blocks":[{"id":%s}]}`,
	"memory_tree.id":                 `{"mode":"blank","task":"x","memory_tree":{"id":%s}}`,

	"POST /v1/agents/{agent_id}/children conversation_id": `{"mode":"blank","task":"x","conversation_id":%s}`,

	"POST /v1/admin/keys agent_ids": `{"name":"k","scopes":["tools"],"agent_ids":[%s]}`,

	"PATCH /v1/agents/{agent_id}/tools/approval/{tool_name} ": `{"requires_approval":true}`,
}

// refusedWith are the statuses, other than 404, of requests with a foreign id in a field.
var refusedWith = map[string]int{"GET /v1/memory-trees/{tree_id}/versions ": 422, // without a file
	"blocks[].id": 422, "memory_tree.id": 422, "supersedes": 422, "superseded_by": 422, "passages[].supersedes": 422,
	"messages[].approval_request_id": 400, "run_ids": 409, "run_id": 400,
	"POST /v1/runs/{run_id}/stream agent_id": 400, "POST /v1/agents/{agent_id}/messages agent_id": 422,
	"POST /v1/agents/{agent_id}/messages/async agent_id":  422,
	"POST /v1/agents/{agent_id}/messages/stream agent_id": 422,

	"POST /v1/agents/{agent_id}/messages conversation_id":                     422,
	"POST /v1/agents/{agent_id}/messages/async conversation_id":               422,
	"POST /v1/agents/{agent_id}/messages/cancel conversation_id":              422,
	"POST /v1/agents/{agent_id}/messages/preview-raw-payload conversation_id": 422,
	"POST /v1/agents/{agent_id}/messages/stream conversation_id":              422,
	"POST /v1/agents/{agent_id}/summarize conversation_id":                    422,
	"POST /v1/conversations/{conversation_id}/compact conversation_id":        422,
	"POST /v1/conversations/{conversation_id}/messages conversation_id":       422}

// readers are the operations that only read although their method is not GET.
var readers = []string{"POST /v1/agents/messages/search", "POST /v1/messages/search", "POST /v1/passages/search",
	"POST /v1/passages/facets", "POST /v1/tools/search", "POST /v1/embeddings",
	"POST /mcp/agents/{agent_id}", "DELETE /mcp/agents/{agent_id}",
	"POST /v1/conversations/{conversation_id}/stream", "POST /v1/runs/{run_id}/stream"}

// holdsIDs matches the names of parameters and fields that hold ids.
var holdsIDs = regexp.MustCompile(`(^|_)(id|ids|otid|key|keys|uuid)$|^(before|after|cursor)$|^supersede(s|d_by)$`)

// operation is a route with its description.
type operation struct {
	rest.Route
	described map[string]any // the operation's part of the API document
	document  *documentCheck
}

func (o operation) String() string { return o.Method + " " + o.Path }

// routes are all routes of the server.
func (c *client) routes() (all []operation) {
	document := &documentCheck{t: c.t, root: fields(c.t, c.must("GET", "/openapi.json", ""))}
	for _, r := range server.Routes(c.server) {
		if strings.HasSuffix(r.Path, "/v1/*") { // the gateway's, which are those of its providers
			continue
		}
		item, _ := document.root["paths"].(map[string]any)[r.Path].(map[string]any)
		described, _ := item[strings.ToLower(r.Method)].(map[string]any)
		if described == nil && r.Access != rest.AnyKey && r.Method != http.MethodHead {
			c.t.Errorf("%s %s is not in the document", r.Method, r.Path)
		}
		all = append(all, operation{r, described, document})
	}
	return all
}

// operations are the routes that the document describes.
func (c *client) operations() []operation {
	return slices.DeleteFunc(c.routes(), func(o operation) bool { return o.described == nil })
}

// params returns the names of the path's parameters.
func (o operation) params() (names []string) {
	for _, match := range pathParams.FindAllStringSubmatch(o.Path, -1) {
		names = append(names, match[1])
	}
	return names
}

// target returns the path and the query's required parameters. idOf returns the value of a path parameter.
func (o operation) target(idOf func(param string) string, query map[string]string) string {
	path := pathParams.ReplaceAllStringFunc(o.Path, func(param string) string { return idOf(strings.Trim(param, "{}")) })
	pairs := []string{}
	for _, p := range o.document.list(o.described["parameters"]) {
		name, schema := p["name"].(string), o.document.resolved(p["schema"].(map[string]any))
		value, given := query[name]
		switch {
		case p["in"] != "query" || !given && p["required"] != true:
			continue
		case given:
		case idMeanings[name] != "":
			value = idOf(idMeanings[name])
		case schema["type"] == "integer":
			value = "1"
		default:
			value = "x"
		}
		pairs = append(pairs, name+"="+value)
	}
	return strings.Replace(path, "*", "x", 1) + "?" + strings.Join(pairs, "&")
}

// content returns the description of the JSON body; nil if the operation takes none.
func (o operation) content() map[string]any {
	body, _ := o.described["requestBody"].(map[string]any)
	contents, _ := body["content"].(map[string]any)
	content, _ := contents[rest.JSON].(map[string]any)
	return content
}

// example returns a body that the operation takes, with ids of a tenant.
func (o operation) example(idOf func(param string) string) any {
	content := o.content()
	value := content["example"]
	examples, _ := content["examples"].(map[string]any)
	for _, e := range examples {
		value = o.document.resolved(e.(map[string]any))["value"]
	}
	if value == nil {
		value = map[string]any{}
	}
	return withIDs(value, idOf)
}

// withIDs returns a copy of a value, with a tenant's ids in the fields that hold ids.
func withIDs(value any, idOf func(param string) string) any {
	switch value := value.(type) {
	case []any:
		list := []any{}
		for _, v := range value {
			list = append(list, withIDs(v, idOf))
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for name, v := range value {
			object[name] = withIDs(v, idOf)
			if id := idOf(idMeanings[name]); id != "" {
				object[name] = as(v, id)
			}
		}
		return object
	}
	return value
}

// as returns an id, or a list with the id if like is a list.
func as(like any, id string) any {
	if _, list := like.([]any); list {
		return []any{id}
	}
	return id
}

// idField is a parameter of the query or a field of the body that holds ids.
type idField struct {
	name, place string // place is a field's path in the body; empty for a parameter
	list        bool
}

// idFields finds the parameters and fields that hold ids.
func (o operation) idFields() (found []idField) {
	for _, p := range o.document.list(o.described["parameters"]) {
		kind := o.document.resolved(p["schema"].(map[string]any))["type"]
		if name := p["name"].(string); p["in"] == "query" && holdsIDs.MatchString(name) && kind != "integer" {
			found = append(found, idField{name: name})
		}
	}
	if content := o.content(); content != nil {
		o.walk(content["schema"].(map[string]any), "", nil, func(f idField) { found = append(found, f) })
	}
	return found
}

// walk calls found with each field of a schema that holds ids. within are the schemas around it.
func (o operation) walk(schema map[string]any, place string, within []string, found func(idField)) {
	if ref, ok := schema["$ref"].(string); ok {
		if slices.Contains(within, ref) {
			return
		}
		within = append(slices.Clone(within), ref)
	}
	schema = o.document.resolved(schema)
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property := o.document.resolved(properties[name].(map[string]any))
		if holdsIDs.MatchString(name) {
			found(idField{name, place + name, property["items"] != nil})
		}
		o.walk(properties[name].(map[string]any), place+name+".", within, found)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		o.walk(items, strings.TrimSuffix(place, ".")+"[].", within, found)
	}
	for _, kind := range []string{"oneOf", "anyOf"} {
		parts, _ := schema[kind].([]any)
		for _, part := range parts {
			o.walk(part.(map[string]any), place, within, found)
		}
	}
}

// body returns a body that the operation takes, with an id in a field.
func (o operation) body(idOf func(param string) string, f idField, id string) string {
	value, _ := json.Marshal(id)
	for _, key := range []string{f.place, o.String() + " " + f.place} {
		if template, ok := bodiesWith[key]; ok {
			return strings.ReplaceAll(template, "%s", string(value))
		}
	}
	example := o.example(idOf)
	if body, ok := example.(map[string]any); ok && f.place != "" {
		var like any
		if f.list {
			like = []any{}
		}
		place(body, strings.Split(f.place, "."), as(like, id))
	}
	text, _ := json.Marshal(example)
	return string(text)
}

// place stores a value at a path of a body; name[] is the first item of a list.
func place(body map[string]any, path []string, value any) {
	name, list := strings.CutSuffix(path[0], "[]")
	if len(path) == 1 {
		body[name] = value
		return
	}
	inner, _ := body[name].(map[string]any)
	if items, _ := body[name].([]any); len(items) > 0 {
		inner, _ = items[0].(map[string]any)
	}
	if inner == nil {
		inner = map[string]any{}
	}
	if body[name] = inner; list {
		body[name] = []any{inner}
	}
	place(inner, path[1:], value)
}

func (o operation) send(c *client, target, body string) servertest.Reply {
	headers := c.headers()
	if strings.HasSuffix(o.Path, "/upload") {
		mediaType := ""
		body, mediaType = form("file", "a.txt", "text/plain", "x")
		headers = append(headers, "Content-Type", mediaType)
	} else if o.content() == nil {
		body = ""
	}
	limited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), streamed) // a stream that should have been refused would not end
		defer cancel()
		c.ServeHTTP(w, r.WithContext(ctx))
	})
	return servertest.Send(limited, o.Method, target, body, headers...)
}

// streamed is how long an answer may take, even if it is a stream.
const streamed = 20 * time.Second

// unknown returns an id of the same form that names nothing.
func unknown(id string) string {
	if anyUUID.MatchString(id) {
		return anyUUID.ReplaceAllStringFunc(id, func(string) string { return uuid.NewString() })
	}
	return id + "-none"
}

var (
	anyUUID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	varying = regexp.MustCompile(anyUUID.String() + `|"\d{4}-\d\d-\d\dT[^"]*"|"trace_id":"[^"]*"`)
)

// shown returns an answer without anything that differs between two equal requests: ids, times, and the request's id.
func shown(got servertest.Reply) string {
	text := strings.ReplaceAll(got.Text, "-none", "")
	return fmt.Sprint(got.Code, " ", varying.ReplaceAllString(text, "*"))
}

// hashes returns the hashes of an organization's rows by table, without the times at which its keys were last used.
func (c *client) hashes(org db.Org) map[string]string {
	c.t.Helper()
	type hash struct {
		Table string `db:"name"`
		Sum   string `db:"sum"`
	}
	var parts []string
	for name := range c.orgTables(org) {
		condition := "t.org = $1"
		if name == "river_job" {
			condition = "(t.args ->> 'org')::integer = $1"
		}
		parts = append(parts, fmt.Sprintf(`
			SELECT '%s' AS name, md5(string_agg(row, '' ORDER BY row)) AS sum FROM (
				SELECT (to_jsonb(t) - 'last_used_at' - 'requests')::text AS row FROM %s t WHERE %s
			) r`, name, name, condition))
	}
	list, err := db.All[hash](c.t.Context(), c.pool, `
		SELECT name, coalesce(sum, '') AS sum FROM (`+strings.Join(parts, " UNION ALL ")+`) h`, org)
	if err != nil {
		c.t.Fatal(err)
	}
	sums := map[string]string{}
	for _, h := range list {
		sums[h.Table] = h.Sum
	}
	return sums
}

// idle waits until all jobs on files have ended.
func (c *client) idle() {
	c.t.Helper()
	queues := slices.Collect(maps.Keys(files.Queues()))
	var ownQueues []string
	for _, name := range queues {
		ownQueues = append(ownQueues, queuetest.Name(c.org, name))
	}
	embedtest.Eventually(c.t, "all jobs have ended", func() bool {
		unfinished, err := db.One[int](c.t.Context(), c.pool, `
			SELECT count(*) FROM river_job
			WHERE finalized_at IS NULL AND (queue = ANY ($1) OR queue = ANY ($2)) AND (args ->> 'org')::integer = $3`,
			queues, ownQueues, c.org)
		if err != nil {
			c.t.Fatal(err)
		}
		return unfinished == 0
	})
}

// matrix calls each route with requests that must be refused.
type matrix struct {
	*client
	routes        []operation
	alice, second tenant // tenants of one organization
	mallory       tenant // tenant of another organization
	org           db.Org // alice's organization
	rows          map[string]string
	oneOrg        bool // the keys belong to one organization, so each of its items may be a cursor of its lists
	calls         int
	every, since  int // routes between two comparisons of the rows, and routes since the last comparison
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	c := newServerClient(t)
	c.work()
	m := &matrix{client: c, alice: newTenant(c, "alice"), second: newTenantNamed(c, "alice", "second"),
		mallory: newTenant(c, "mallory")}
	m.routes, m.org = m.alice.routes(), m.alice.org
	return m
}

// watch records alice's rows, which must not change, and compares them after every so many routes.
func (m *matrix) watch(every int) {
	m.every = every
	m.idle()
	m.rows = m.hashes(m.org)
}

// unchanged checks that a route, and the routes before it, did not change alice's rows. It compares once in as many
// routes as watch was told.
func (m *matrix) unchanged(o operation) {
	m.t.Helper()
	if m.since++; m.since >= m.every {
		m.compare(o)
	}
}

// compare checks that no route up to o changed alice's rows.
func (m *matrix) compare(o operation) {
	m.t.Helper()
	rows := m.hashes(m.org)
	if diff := cmp.Diff(m.rows, rows); diff != "" {
		m.t.Errorf("%s, or one of the %d routes before it, changed rows of alice's:\n%s", o, m.since-1, diff)
		m.rows = rows
	}
	m.since = 0
}

// ids returns a function that returns a tenant's id for a parameter, and fails the test if the tenant has none.
func (m *matrix) ids(o operation, owner tenant) func(string) string {
	return func(param string) string {
		id, ok := owner.has[param]
		if !ok && strings.Contains(o.Path, "{"+param+"}") && o.Access != rest.Public && o.described != nil {
			m.t.Errorf("%s: no tenant has a %s: say in newTenant what it names", o, param)
		}
		if !ok && o.described == nil {
			return "x"
		}
		return id
	}
}

// refused checks the status and the form of a refusal.
func (m *matrix) refused(o operation, what string, got servertest.Reply, status int, code string) {
	m.t.Helper()
	m.calls++
	if o.Method == http.MethodHead { // its answer has no body
		if got.Code != status {
			m.t.Errorf("%s %s: got %d, want %d", o, what, got.Code, status)
		}
		return
	}
	servertest.CheckForm(m.t, got)
	retry := got.Header().Get("X-Should-Retry")
	if got.Code != status || !strings.Contains(got.Text, `"code":"`+code+`"`) || status < 404 && retry != "false" ||
		status == 401 != strings.HasPrefix(got.Header().Get("WWW-Authenticate"), "Bearer") && status != 403 {
		m.t.Errorf("%s %s: got %d %s with %v, want %d %s", o, what, got.Code, got.Text, got.Header(), status, code)
	}
}

// Each route refuses a wrong key in the same way whether or not the named things exist, and stores nothing.
func TestEachRouteRefusesEachWrongKey(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	m := newMatrix(t)
	end := time.Now().Add(time.Hour)
	revoked := m.scoped(apikey.NewKey{Org: m.unique("alice"), Scopes: []string{apikey.Admin}})
	expired := m.scoped(apikey.NewKey{Org: m.unique("alice"), Scopes: []string{apikey.Admin}, ExpiresAt: &end})
	tools := m.scoped(apikey.NewKey{Org: m.unique("alice"), Scopes: []string{apikey.Tools},
		AgentIDs: []string{m.second.has["agent_id"]}})
	read := m.scoped(apikey.NewKey{Org: m.unique("alice"), Scopes: []string{apikey.Read}})
	write := m.scoped(apikey.NewKey{Org: m.unique("alice"), Scopes: []string{apikey.Write}})
	if _, err := m.pool.Exec(t.Context(), `
		UPDATE api_keys SET expires_at = now() WHERE expires_at IS NOT NULL AND org = $1`, expired.org); err != nil {
		t.Fatal(err)
	}
	if _, err := m.server.Keys.Revoke(t.Context(), revoked.key); err != nil {
		t.Fatal(err)
	}
	unauthorized := map[string]*client{"no key": m.withKey(""), "a blank key": m.withKey(" "),
		"an unknown key": m.withKey("loci_UNKNOWN"), "a revoked key": revoked, "an expired key": expired,
		"a key with a letter more": m.withKey(m.alice.key + "A")}
	weak := map[*client][]rest.Access{
		read: {rest.Tools, rest.Write, rest.Admin, rest.Operator}, write: {rest.Admin, rest.Operator},
		m.alice.client: {rest.Operator},
		tools:          {rest.Read, rest.ReadAgent, rest.Tools, rest.Write, rest.Admin, rest.Operator},
	}
	m.watch(scale.Of(24, 1))
	for n, o := range m.routes {
		if n%scale.Of(4, 1) != 0 || o.Access == rest.Public {
			continue
		}
		existing, missing := m.ids(o, m.alice), func(param string) string { return unknown(m.ids(o, m.alice)(param)) }
		for _, ids := range []func(string) string{existing, missing} {
			target, body := o.target(ids, nil), o.body(ids, idField{}, "")
			for what, c := range unauthorized {
				code := "unauthorized"
				if c == expired {
					code = "key_expired"
				}
				m.refused(o, "with "+what, o.send(c, target, body), 401, code)
			}
			for c, lacks := range weak {
				if slices.Contains(lacks, o.Access) {
					m.refused(o, "with too weak a key", o.send(c, target, body), 403, "insufficient_scope")
				}
			}
		}
		m.unchanged(o)
	}
	m.compare(m.routes[len(m.routes)-1])
	if m.calls < scale.Of(250, 1000) {
		t.Errorf("only %d calls were made: does the router have all routes?", m.calls)
	}
}

// A route accepts a key if the key's scopes suffice. Operations that change something need more than a reader's key.
func TestEachRouteLetsTheRightKeysIn(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	m := newMatrix(t)
	scoped := func(scope string) *client {
		return m.scoped(apikey.NewKey{Org: m.unique("alice"), Scopes: []string{scope}})
	}
	bound := m.scoped(apikey.NewKey{Org: m.unique("alice"), Scopes: []string{apikey.Tools},
		AgentIDs: []string{m.alice.has["agent_id"]}})
	admin := m.alice.client
	suffices := map[rest.Access][]*client{
		rest.Read: {scoped(apikey.Read), scoped(apikey.Write), admin}, rest.Write: {scoped(apikey.Write), admin},
		rest.ReadAgent: {scoped(apikey.Read), scoped(apikey.Write), admin, bound}, rest.Admin: {admin, m.operator()},
		rest.Tools: {scoped(apikey.Write), admin, bound}, rest.Operator: {m.operator()}}
	for _, o := range m.routes {
		reads := o.Method == http.MethodGet || o.Method == http.MethodHead || slices.Contains(readers, o.String())
		if o.Access < rest.Tools && o.Access > rest.AnyKey && !reads || o.Access <= rest.AnyKey && o.described != nil &&
			o.Access != rest.Public {
			t.Errorf("%s changes something, and its access is a reader's: list it in readers if it only reads", o)
		}
		for _, c := range suffices[o.Access] {
			ids := m.ids(o, m.alice)
			if !reads || strings.HasSuffix(o.Path, "/stream") || strings.HasSuffix(o.Path, "/events") {
				ids = func(param string) string {
					if id := m.ids(o, m.alice)(param); c != bound || o.first() != param {
						return unknown(id)
					}
					return "agent-" + m.alice.has["agent_id"][6:]
				}
			}
			if c == bound && (o.first() != "agent_id" && !reads || strings.HasSuffix(o.Path, "/stream")) {
				continue // things that the path names would have to exist, and a stream would not end
			}
			got := o.send(c, o.target(ids, nil), `{"seq":"no number"}`)
			if got.Code == 401 || got.Code == 403 {
				t.Errorf("%s: got %d %s, want it let in", o, got.Code, got.Text)
			}
		}
	}
}

// first returns the path parameter that leads to an agent; empty if there is none.
func (o operation) first() string {
	for _, name := range []string{"agent_id", "conversation_id", "run_id"} {
		if slices.Contains(o.params(), name) {
			return name
		}
	}
	return ""
}

// A client uses the key of one organization with ids of another: with all ids of a path, with each alone, and in each
// parameter and field that holds ids. The answers are the same as for ids that name nothing.
func TestTenantsDoNotMeet(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	m := newMatrix(t)
	m.watch(scale.Of(24, 1))
	for n, o := range m.routes {
		if n%scale.Of(4, 1) != 0 || o.Access == rest.Public || o.Access == rest.AnyKey || o.Access == rest.Operator {
			continue
		}
		m.foreignPaths(o)
		m.foreignFields(o, m.mallory, m.alice)
		if len(o.params()) == 0 && o.Method == http.MethodGet {
			got := o.send(m.mallory.client, o.target(m.ids(o, m.mallory), nil), "")
			if got.Code != 200 || strings.Contains(got.Text, "alice") {
				t.Errorf("%s: got %d %s, want 200 and nothing of alice's", o, got.Code, got.Text)
			}
		}
		m.unchanged(o)
	}
	m.compare(m.routes[len(m.routes)-1])
	if m.calls < scale.Of(75, 300) {
		t.Errorf("only %d calls were made: does the router have all routes?", m.calls)
	}
}

// settle waits until no agent works on a run.
func (m *matrix) settle() {
	m.t.Helper()
	embedtest.Eventually(m.t, "all runs have ended", func() bool {
		working, err := db.One[int](m.t.Context(), m.pool, `
			SELECT count(*) FROM runs WHERE org = ANY ($1) AND status = 'running'`, []db.Org{m.alice.org, m.mallory.org})
		if err != nil {
			m.t.Fatal(err)
		}
		return working == 0
	})
}

// shared are path parameters that name nothing that belongs to an organization.
var shared = []string{"tool_name", "policy_name", "consumer_name", "subagent_name", "block_label", "version", "number"}

// changesNoMessage is an operation that refuses all messages, with the parameter that names the message.
const changesNoMessage = "PATCH /v1/agents/{agent_id}/messages/{message_id} [message_id]"

// foreignPaths calls a route with every combination of foreign ids in its path.
func (m *matrix) foreignPaths(o operation) {
	sets := [][]string{nil}
	for _, param := range o.params() {
		for _, set := range slices.Clone(sets) {
			if !slices.Contains(shared, param) {
				sets = append(sets, append(slices.Clone(set), param))
			}
		}
	}
	for _, foreign := range sets[1:] {
		ownID := m.ids(o, m.mallory)
		sendWith := func(change func(string) string) servertest.Reply {
			ids := func(param string) string {
				if slices.Contains(foreign, param) {
					return change(m.alice.has[param])
				}
				return ownID(param)
			}
			return o.send(m.mallory.client, o.target(ids, nil), o.body(ownID, idField{}, ""))
		}
		got, unknownReply := sendWith(func(id string) string { return id }), sendWith(unknown)
		if fmt.Sprint(o, foreign) == changesNoMessage {
			m.refused(o, "with alice's message", got, 405, "method_not_allowed")
		} else {
			m.refused(o, fmt.Sprint("with alice's ", foreign), got, 404, "not_found")
		}
		if o.Method != http.MethodHead && shown(got) != shown(unknownReply) {
			m.t.Errorf("%s with alice's %v: got %s, and with ids that nothing has %s", o, foreign, shown(got),
				shown(unknownReply))
		}
	}
}

// foreignFields calls a route with a victim's ids in each parameter and field that holds ids.
func (m *matrix) foreignFields(o operation, attacker, victim tenant) {
	for _, f := range o.idFields() {
		place := f.place
		if place == "" {
			place = f.name
		}
		meaning := idMeanings[f.name]
		if special := idMeanings[place]; special != "" {
			meaning = special
		}
		switch {
		case meaning == "":
			m.t.Errorf("%s: %s holds ids: say in idMeanings what they name", o, place)
		case meaning == "identity_id" && m.oneOrg: // users are the organization's, not an agent's
		case meaning == anyID:
			for _, kind := range []string{"agent_id", "folder_id", "file_id", "conversation_id", "message_id", "block_id",
				"archive_id", "passage_id", "run_id", "step_id", "compaction_id", "key_id", "org_id"} {
				m.foreignField(o, f, attacker, victim.has[kind])
			}
		case meaning[0] != '-':
			m.foreignField(o, f, attacker, victim.has[meaning])
		}
	}
}

func (m *matrix) foreignField(o operation, f idField, attacker tenant, id string) {
	ownID := func(param string) string {
		if param == "conversation_id" && f.name == "agent_id" && !m.oneOrg && strings.Contains(o.Path, "{conversation_id}") {
			return "default" // the agent's default conversation
		}
		return m.ids(o, attacker)(param)
	}
	sendWith := func(id string) servertest.Reply {
		query := map[string]string{}
		if f.place == "" {
			query[f.name] = id
		}
		answer := o.send(attacker.client, o.target(ownID, query), o.body(ownID, f, id))
		m.settle()
		return answer
	}
	m.calls++
	got, unknownReply := sendWith(id), sendWith(unknown(id))
	statuses := []int{200, 404, refusedWith[f.place], refusedWith[o.String()+" "+f.place]}
	cursor := idMeanings[f.name] == anyID
	if cursor {
		statuses = append(statuses, 400, 422) // no item has the id, or the field takes a number
	}
	same := shown(got) == shown(unknownReply) || got.Code == 200 && (o.Method != http.MethodGet || cursor && m.oneOrg)
	if got.Code != unknownReply.Code || !same || strings.Contains(got.Text, "alice") ||
		!slices.Contains(statuses, got.Code) {
		m.t.Errorf("%s with alice's %s in %s%s: got %s, and with an id that nothing has %s", o, id, f.name, f.place,
			shown(got), shown(unknownReply))
	}
}

// A client uses a key of one agent, with ids of another agent of the organization in the query and the body. The
// answers are the same as for ids that name nothing.
func TestKeysOfAgentsDoNotMeet(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	m := newMatrix(t)
	m.oneOrg = true
	m.second.client = m.scoped(apikey.NewKey{Org: m.unique("alice"), Scopes: []string{apikey.Tools},
		AgentIDs: []string{m.second.has["agent_id"]}})
	before := m.alice.agentState()
	for _, o := range m.routes {
		if o.Access == rest.Tools || o.Access == rest.ReadAgent {
			m.foreignFields(o, m.second, m.alice)
		}
	}
	if diff := cmp.Diff(before, m.alice.agentState()); diff != "" || m.calls < 50 {
		t.Errorf("%d calls were made, and what the other agent has was changed (-before +after):\n%s", m.calls, diff)
	}
}

// agentState returns everything that the API shows of a tenant's agent.
func (t tenant) agentState() (seen []string) {
	for _, part := range []string{"", "/messages", "/files", "/folders", "/events", "/consumers", "/compactions",
		"/core-memory", "/archival-memory"} {
		seen = append(seen, t.must("GET", "/v1/agents/"+t.has["agent_id"]+part, ""))
	}
	return seen
}
