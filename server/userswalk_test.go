package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/server/servertest"
)

// walled is an agent with three users, each of whom has a word in every memory, in a run and in a summary; another
// agent of the organization, with a user dot; and another organization.
type walled struct {
	*client
	agent         string
	keys          map[string]*client // by user
	conversations map[string]string
	others        []map[string]string // ids by the names of parameters: ann's, dot's, and the other organization's
}

// foreign are words that bob must not read.
var foreign = []string{userWords["ann"], userWords["cid"], "yarrow", "secret of mallory"}

func newWalled(t *testing.T) walled {
	t.Helper()
	w := walled{client: newServerClient(t)}
	w.agent, w.keys, w.conversations = talkedWith(w.client)
	mallory := newTenant(w.client, "mallory")
	delete(mallory.has, "folder_name") // an answer repeats it
	other := w.made("/v1/agents", `{"name":"second","tool_set":"all","memory_blocks":[{"label":"human","value":"?"}]}`)
	dot := w.ofUser(other, "dot")
	conversation := dot.made("/v1/agents/"+other+"/conversations", `{"summary":"about yarrow"}`)
	folder := w.made("/v1/folders", `{"name":"pay of dot","user_id":"dot"}`)
	w.must("PATCH", "/v1/agents/"+other+"/folders/attach/"+folder, "")
	w.uploaded(folder, "yarrow.txt", "The salary is yarrow.")
	for name, args := range map[string]string{"archival_memory_insert": `{"content":"The salary is yarrow"}`,
		"core_memory_append": `{"label":"human","content":"has yarrow"}`,
		"memory":             `{"command":"create","path":"/memories/pay.md","file_text":"It is yarrow"}`} {
		dot.must("POST", "/v1/agents/"+other+"/tools/"+name+"/run", `{"conversation_id":"`+conversation+`","args":`+args+`}`)
	}
	w.others = []map[string]string{w.planted("ann", w.keys["ann"], w.agent, w.conversations["ann"], userWords["ann"]),
		w.planted("dot", dot, other, conversation, "yarrow"), mallory.has}
	return w
}

// planted makes a run and a summary of a user's conversation, and returns the ids of what is the user's.
func (w walled) planted(user string, key *client, agent, conversation, word string) map[string]string {
	w.t.Helper()
	said := make([]string, 12)
	for i := range said {
		said[i] = fmt.Sprintf(`{"role":%q,"content":"On the salary %s, part %d"}`, []string{"user", "assistant"}[i%2], word,
			i)
	}
	key.must("POST", "/v1/agents/"+agent+"/messages/capture",
		`{"conversation_id":"`+conversation+`","messages":[`+strings.Join(said, ",")+`]}`)
	key.must("POST", "/v1/conversations/"+conversation+"/messages",
		fmt.Sprintf(`{"input":"It is %s.","streaming":false}`, word))
	ids := map[string]string{"agent_id": agent, "conversation_id": conversation, "version": "1", "number": "1",
		"block_label": "human", "tool_name": "search_memory",
		"compaction_id": w.compact("/v1/conversations/"+conversation+"/compact", `{}`).Compaction.ID}
	const (
		mine   = ` JOIN identities i ON i.org = $1 AND i.identifier_key = $2 WHERE x.org = $1 AND `
		owned  = mine + `x.user_key = i.key`
		talked = mine + `x.conversation_key = (SELECT c.key FROM conversations c WHERE c.org = $1 AND c.id = $3)`
	)
	for param, sql := range map[string]string{
		"identity_id": `SELECT i.id FROM organizations x` + mine + `true`,
		"message_id":  `SELECT 'message-' || x.id FROM messages x` + talked + ` ORDER BY x.seq DESC`,
		"run_id":      `SELECT x.id FROM runs x` + talked,
		"step_id":     `SELECT s.id FROM runs x JOIN steps s ON s.org = $1 AND s.run_key = x.key` + talked,
		"archive_id":  `SELECT x.id FROM archives x` + owned,
		"passage_id": `
			SELECT 'passage-' || p.id FROM archives x JOIN passages p ON p.org = $1 AND p.archive_key = x.key` + owned,
		"folder_id": `SELECT x.id FROM folders x` + owned,
		"file_id":   `SELECT f.id FROM folders x JOIN files f ON f.org = $1 AND f.folder_key = x.key` + owned,
		"block_id":  `SELECT x.id FROM blocks x` + owned,
		"tree_id": `
			SELECT t.id FROM user_memory_trees x JOIN memory_trees t ON t.org = $1 AND t.key = x.tree_key` + owned,
		"memory_file_id": `
			SELECT f.id FROM user_memory_trees x JOIN memory_files f ON f.org = $1 AND f.tree_key = x.tree_key` + owned,
	} {
		args := []any{w.org, user}
		if strings.Contains(sql, "$3") {
			args = append(args, conversation)
		}
		all, err := db.All[string](w.t.Context(), w.pool, sql, args...)
		if err != nil || len(all) == 0 {
			w.t.Fatalf("%s has no %s: %v", user, param, err)
		}
		ids[param] = all[0]
	}
	ids["memory_id"] = ids["passage_id"]
	return ids
}

// check fails the test if an answer has a word that bob must not read.
func (w walled) check(what, answer string) {
	w.t.Helper()
	for _, word := range foreign {
		if i := strings.Index(answer, word); i >= 0 {
			w.t.Errorf("bob reads %q by %s: …%s…", word, what, answer[max(0, i-300):min(len(answer), i+100)])
		}
	}
}

// A key that is bound to a user, and a request that names the user, read no word of another user, of another agent's
// user or of another organization, on whatever route, and whatever ids they send.
func TestAKeyOfAUserReadsNobodyElse(t *testing.T) {
	t.Parallel()
	w := newWalled(t)
	sets := slices.Clone(w.others)
	for _, conversation := range []string{w.conversations["bob"], "default"} { // bob's conversation with ann's ids
		set := maps.Clone(w.others[0])
		set["conversation_id"] = conversation
		sets = append(sets, set)
	}
	asked := 0
	for _, o := range w.operations() {
		for _, ids := range sets {
			conversation := ids["conversation_id"]
			raw, err := json.Marshal(map[string]any{"query": "salary", "conversation_id": conversation, "user_id": "ann",
				"args":     map[string]any{"query": "salary"},
				"messages": []any{map[string]any{"role": "user", "content": "What is the salary?"}}})
			if err != nil {
				t.Fatal(err)
			}
			for _, query := range []string{"query=salary&question=salary&conversation_id=" + conversation, "user_id=ann"} {
				path := pathParams.ReplaceAllStringFunc(o.Path, func(name string) string {
					if id := ids[strings.Trim(name, "{}")]; id != "" {
						return id
					}
					return "x"
				}) + "?" + query
				asked++
				got := w.keys["bob"].call(o.Method, path, string(raw))
				w.check(fmt.Sprintf("%s %s (%s): %d", o.Method, path, raw, got.Code), got.Text)
				named := servertest.Send(w, o.Method, path, string(raw), append(w.headers(), "X-Loci-User", "bob")...)
				w.check(fmt.Sprintf("%s %s (%s) with a header: %d", o.Method, path, raw, named.Code), named.Text)
				if got.Code == http.StatusOK && !o.OfUsers && o.Access != rest.Public && o.Access != rest.AnyKey {
					t.Errorf("%s answers a key of a user and does not keep to users: %s", o, got.Text)
				}
			}
		}
	}
	if asked < 2000 {
		t.Errorf("only %d requests were sent", asked)
	}
	w.whole()
}

// whole fails the test if something of ann's is gone.
func (w walled) whole() {
	w.t.Helper()
	base := "/v1/agents/" + w.agent
	for _, target := range []string{"/v1/conversations/" + w.conversations["ann"] + "/messages", base + "/archival-memory",
		base + "/prompt?conversation_id=" + w.conversations["ann"], base + "/memory-search?query=salary"} {
		if got := w.keys["ann"].must("GET", target, ""); !strings.Contains(got, userWords["ann"]) {
			w.t.Errorf("ann no longer reads her word by %s: %s", target, got)
		}
	}
}

// A session of MCP with the key of a user reads no word of another user: by tools, prompts and resources, whatever ids
// it names.
func TestAnMCPSessionOfAUserReadsNobodyElse(t *testing.T) {
	t.Parallel()
	w := newWalled(t)
	web := httptest.NewServer(w.keys["bob"])
	t.Cleanup(web.Close)
	session := w.keys["bob"].mustDial(web, mcpTo{path: "/mcp/agents/" + w.agent})
	asked := 0
	check := func(what string, answer any, err error) {
		t.Helper()
		asked++
		raw, _ := json.Marshal(answer)
		w.check("MCP's "+what, fmt.Sprint(string(raw), err))
	}
	tools, err := session.ListTools(t.Context(), nil)
	check("tools/list", tools, err)
	for _, tool := range tools.Tools {
		for _, ids := range w.others {
			raw, err := json.Marshal(map[string]any{"query": "salary", "pattern": "salary", "question": "What is the salary?",
				"id": ids["message_id"], "conversation_id": ids["conversation_id"], "jq": ".", "command": "view",
				"path": "/memories/pay.md", "file_requests": []any{map[string]any{"file_name": "pay.txt"}},
				"task": "What is the salary?", "label": "human", "content": "x", "agent_id": ids["agent_id"]})
			if err != nil {
				t.Fatal(err)
			}
			for _, arguments := range []string{string(raw), toolCalls[tool.Name]} {
				if arguments != "" {
					got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name,
						Arguments: json.RawMessage(arguments)})
					check(tool.Name+" "+arguments, got, err)
				}
			}
		}
	}
	prompts, err := session.ListPrompts(t.Context(), nil)
	check("prompts/list", prompts, err)
	for _, prompt := range prompts.Prompts {
		for _, ids := range w.others {
			args := map[string]string{}
			for _, a := range prompt.Arguments {
				if args[a.Name] = ids[a.Name]; args[a.Name] == "" {
					args[a.Name] = ids["conversation_id"]
				}
			}
			got, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: prompt.Name, Arguments: args})
			check(fmt.Sprint(prompt.Name, args), got, err)
		}
	}
	resources, err := session.ListResources(t.Context(), nil)
	check("resources/list", resources, err)
	var uris []string
	for _, r := range resources.Resources {
		uris = append(uris, r.URI)
	}
	templates, err := session.ListResourceTemplates(t.Context(), nil)
	check("resources/templates/list", templates, err)
	for _, r := range templates.ResourceTemplates {
		for _, ids := range w.others {
			for _, id := range ids {
				uris = append(uris, pathParams.ReplaceAllStringFunc(strings.ReplaceAll(r.URITemplate, "{agent_id}", w.agent),
					func(string) string { return id }))
			}
			uris = append(uris, pathParams.ReplaceAllStringFunc(r.URITemplate, func(name string) string {
				return ids[strings.Trim(name, "{+}")]
			}))
		}
	}
	for _, uri := range uris {
		got, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		check(uri, got, err)
	}
	if asked < 50 {
		t.Errorf("only %d requests were sent", asked)
	}
	w.whole()
}

// A request of a user to the gateway gets no word of another user, and hands none to the provider.
func TestTheGatewayKeepsToAUser(t *testing.T) {
	t.Parallel()
	w := newWalled(t)
	key := w.keys["bob"].key
	g := newGatewayOn(t, w.client)
	asked := 0
	for _, place := range []string{"", "/agents/" + w.agent, "/k/" + key, "/agents/" + w.others[1]["agent_id"],
		"/agents/" + w.others[2]["agent_id"]} {
		for _, conversation := range []string{"", "asking", w.conversations["bob"], w.conversations["ann"],
			w.others[1]["conversation_id"], w.others[2]["conversation_id"]} {
			for _, user := range []string{"", "ann", "bob"} {
				for _, path := range []string{chatPath, responsesPath, messagesPath} {
					body := `{"model":"m","max_tokens":9,"user":"ann","messages":[{"role":"user","content":"What is the salary?"}],
						"input":"What is the salary?"}`
					before := g.provider.last().n
					got := servertest.Send(g, "POST", place+path, body, "Authorization", "Bearer "+key, "X-Loci-Agent", w.agent,
						"X-Loci-Conversation", conversation, "X-Loci-User", user)
					what := fmt.Sprintf("%s%s, conversation %q, user %q: %d", place, path, conversation, user, got.Code)
					w.check(what, got.Text)
					if last := g.provider.last(); last.n > before {
						asked++
						w.check(what+", to the provider", last.body)
					}
				}
			}
		}
	}
	if asked < 20 {
		t.Errorf("only %d requests went to the provider", asked)
	}
	w.whole()
}
