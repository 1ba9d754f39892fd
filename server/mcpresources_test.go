package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/tenant/apikey"
)

// readText returns the text of a resource.
func readText(t *testing.T, session *sdk.ClientSession, uri string) (string, error) {
	t.Helper()
	got, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
	if err != nil {
		return "", err
	}
	if len(got.Contents) != 1 || got.Contents[0].URI != uri {
		t.Errorf("%s: got the contents %v", uri, got.Contents)
	}
	return got.Contents[0].Text, nil
}

// Everything that an agent has is listed and can be read, whatever its name is. Anything else is not found.
func TestAnAgentsMemoryIsReadOverMCP(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent, web := c.mcpAgent()
	label := "notes/c-ode_1"
	block := c.made("/v1/blocks", fmt.Sprintf(`{"label":%q,"value":"odd"}`, label))
	c.must("PATCH", "/v1/agents/"+agent+"/core-memory/blocks/attach/"+block, "")
	tree := c.made("/v1/memory-trees", `{"name":"t"}`)
	c.must("PATCH", "/v1/agents/"+agent+"/memory-trees/attach/"+tree, "")
	c.must("PUT", "/v1/memory-trees/"+tree+"/file", `{"path":"/memories/notes &+=1 (a).md","content":"A note"}`)
	conversation := c.made("/v1/conversations?agent_id="+agent, `{"summary":"Plans"}`)
	c.capture(agent, chatter(1, 6, "weather"))
	c.must("POST", "/v1/agents/"+agent+"/summarize", `{}`)
	for _, version := range versions {
		session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent, version: version})
		found := map[string]string{}
		for r, err := range session.Resources(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			text, err := readText(t, session, r.URI)
			if err != nil {
				t.Fatalf("read %s, which is listed: %v", r.URI, err)
			}
			if _, err := url.Parse(r.URI); err != nil || r.MIMEType == "" || r.Title == "" {
				t.Errorf("got the resource %+v: %v", r, err)
			}
			found[r.Name] = text
		}
		for name, want := range map[string]string{"human": "Ada likes tea.", label: "odd",
			"/memories/notes &+=1 (a).md": "A note",
			"default":                     "user: The code is 8283.", conversation: "",
			"papers/ode.txt": "The moon over the port\nof Piraeus"} {
			if got, ok := found[name]; !ok || !strings.Contains(got, want) {
				t.Errorf("%s: the resource %s has %q, want %q", version, name, got, want)
			}
		}
		prefix := "loci://" + agent + "/"
		if got, err := readText(t, session, prefix+"conversations/default/summary"); err != nil || got == "" {
			t.Errorf("the summary is %q, %v", got, err)
		}
		for _, uri := range []string{prefix + "blocks/none", prefix + "blocks", prefix + "blocks/human/x", prefix + "memory",
			prefix + "memory/none.md", prefix + "memory/../x", prefix + "conversations/conv-1", prefix + "files/source-1/file-1",
			prefix + "files/x", prefix + "nothing/x", prefix, prefix + "blocks/%zz", prefix + "blocks//", "loci://changed",
			"file:///etc/passwd", "", prefix + "blocks/\x00", prefix + "blocks/%00", prefix + "blocks/%ff",
			prefix + "conversations/\x01\u2028", "loci://agent-x/blocks/human"} {
			if text, err := readText(t, session, uri); err == nil {
				t.Errorf("%q: got %q, want that it is not found", uri, text)
			}
		}
		templates := 0
		for tmpl, err := range session.ResourceTemplates(t.Context(), nil) {
			if err != nil || !strings.HasPrefix(tmpl.URITemplate, "loci://{agent_id}/") {
				t.Errorf("got the template %+v, %v", tmpl, err)
			}
			templates++
		}
		if templates != 5 {
			t.Errorf("got %d templates, want 5", templates)
		}
		for _, cursor := range []string{"x", "LTE", "OTk", "!"} {
			if _, err := session.ListResources(t.Context(), &sdk.ListResourcesParams{Cursor: cursor}); err == nil {
				t.Errorf("the cursor %q was taken", cursor)
			}
			if _, err := session.ListTools(t.Context(), &sdk.ListToolsParams{Cursor: cursor}); err == nil {
				t.Errorf("the cursor %q was taken", cursor)
			}
		}
	}
}

// A list of more than one page is complete, and has each resource once.
func TestResourcesAreListedInPages(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent, web := c.mcpAgent()
	for i := range 150 {
		c.made("/v1/conversations?agent_id="+agent, fmt.Sprintf(`{"summary":"c%d"}`, i))
	}
	folder := c.made("/v1/folders", `{"name":"more"}`)
	c.must("PATCH", "/v1/agents/"+agent+"/folders/attach/"+folder, "")
	for i := range 60 {
		c.uploaded(folder, fmt.Sprintf("f%d.txt", i), "x")
	}
	session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent})
	seen := map[string]int{}
	pages := 0
	for cursor := ""; cursor != "" || pages == 0; pages++ {
		got, err := session.ListResources(t.Context(), &sdk.ListResourcesParams{Cursor: cursor})
		if err != nil || len(got.Resources) > 100 {
			t.Fatalf("page %d has %d resources, %v", pages, len(got.Resources), err)
		}
		for _, r := range got.Resources {
			seen[r.URI]++
		}
		cursor = got.NextCursor
	}
	kinds := map[string]int{}
	for uri, n := range seen {
		if n != 1 {
			t.Errorf("%s is listed %d times", uri, n)
		}
		kinds[strings.Split(uri, "/")[3]]++
	}
	if kinds["conversations"] != 151 || kinds["files"] != 61 || kinds["blocks"] != 1 || pages < 3 {
		t.Errorf("got %v in %d pages, want 151 conversations, 61 files and a block", kinds, pages)
	}
}

// A session does not find resources of another organization's agent, or of another agent in the same organization.
func TestResourcesOfOthersAreNotFoundOverMCP(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	admin, other := c.scoped(apikey.NewKey{Scopes: []string{apikey.Admin}}), c.as("other")
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	body := `{"name":"a","memory_blocks":[{"label":"human","value":"secret"}]}`
	mine, second, foreign := admin.made("/v1/agents", body), admin.made("/v1/agents", body), other.made("/v1/agents", body)
	folder := other.made("/v1/folders", `{"name":"f"}`)
	file := other.uploaded(folder, "a.txt", "secret")
	session := admin.mustDial(web, mcpTo{path: "/mcp/agents/" + mine, version: "2025-11-25"})
	for _, uri := range []string{"loci://" + foreign + "/blocks/human", "loci://" + second + "/blocks/human",
		"loci://" + mine + "/files/" + folder + "/" + file, "loci://" + foreign + "/files/" + folder + "/" + file,
		"loci://" + foreign + "/conversations/default"} {
		got, err := readText(t, session, uri)
		if err == nil || !strings.Contains(err.Error(), "not found") {
			t.Errorf("%s: got %q, %v", uri, got, err)
		}
		if err := session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err == nil {
			t.Errorf("%s was subscribed to", uri)
		}
	}
}

// Clients are told of changes in resources that they follow, and of changed lists, and of nothing else.
func TestClientsAreToldOfChangesOverMCP(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent, web := c.mcpAgent()
	block := func(value string) {
		c.must("PATCH", "/v1/agents/"+agent+"/core-memory/blocks/human", fmt.Sprintf(`{"value":%q}`, value))
	}
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		updates := make(chan string, 100)
		options := &sdk.ClientOptions{
			ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) {
				updates <- r.Params.URI
			},
			ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { updates <- "resources" },
			ToolListChangedHandler:     func(context.Context, *sdk.ToolListChangedRequest) { updates <- "tools" },
		}
		block("before " + version)
		session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent, version: version, options: options})
		human, log := "loci://"+agent+"/blocks/human", "loci://"+agent+"/conversations/default"
		for _, uri := range []string{human, log} {
			if err := session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
				t.Fatalf("%s: subscribe: %v", version, err)
			}
		}
		await := func(want ...string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			for len(want) > 0 {
				select {
				case got := <-updates:
					want = slices.DeleteFunc(want, func(w string) bool { return w == got })
				case <-ctx.Done():
					t.Fatalf("%s: not told of %v", version, want)
				}
			}
		}
		block("after " + version)
		await(human)
		c.say(agent, "news of "+version)
		await(log)
		if err := session.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: human}); err != nil {
			t.Fatal(err)
		}
		folder := c.made("/v1/folders", fmt.Sprintf(`{"name":%q}`, "of "+version))
		c.must("PATCH", "/v1/agents/"+agent+"/folders/attach/"+folder, "")
		await("resources", "tools")
		block("last " + version)
		c.say(agent, "more of "+version)
		await(log)
		for len(updates) > 0 {
			if got := <-updates; got == human {
				t.Errorf("%s: told of %s, which is no longer followed", version, got)
			}
		}
		if err := session.Close(); err != nil {
			t.Errorf("%s: close: %v", version, err)
		}
	}
}

// Clients are told that a list has changed only if it has.
func TestClientsAreToldOfOtherListsOverMCP(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.work()
	c.own().MCPFilesEvery = 10 * time.Millisecond
	c.Handler = c.server.Handler()
	agent, web := c.mcpAgent()
	conversation := ""
	updates := make(chan string, 100)
	session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent, options: &sdk.ClientOptions{
		ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { updates <- "resources" },
		ToolListChangedHandler:     func(context.Context, *sdk.ToolListChangedRequest) { updates <- "tools" },
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) {
			updates <- r.Params.URI
		}}})
	defer session.Close()
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"a description", func() { c.must("PATCH", "/v1/agents/"+agent, `{"description":"other"}`) }, nil},
		{"a conversation", func() { conversation = c.made("/v1/conversations?agent_id="+agent, `{}`) },
			[]string{"resources"}},
		{"a block's value", func() {
			c.must("PATCH", "/v1/agents/"+agent+"/core-memory/blocks/human", `{"value":"Bob"}`)
		}, nil},
		{"a block's label", func() {
			c.must("PATCH", "/v1/agents/"+agent+"/core-memory/blocks/human", `{"label":"person"}`)
		}, []string{"resources"}},
		{"a subscription", func() {
			uri := "loci://" + agent + "/conversations/" + conversation
			if err := session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
				t.Fatal(err)
			}
		}, nil},
		{"a deletion", func() { c.must("DELETE", "/v1/conversations/"+conversation, "") },
			[]string{"resources", "its own"}},
		{"a tool", func() {
			var tools []struct{ ID, Name string }
			if err := json.Unmarshal([]byte(c.must("GET", "/v1/agents/"+agent+"/tools?limit=100", "")), &tools); err != nil {
				t.Fatal(err)
			}
			for _, tool := range tools {
				if tool.Name == "grep_files" {
					c.must("PATCH", "/v1/agents/"+agent+"/tools/detach/"+tool.ID, "")
				}
			}
		}, []string{"tools"}},
	} {
		step.do()
		want := map[string]bool{}
		for _, w := range step.want {
			if w == "its own" {
				w = "loci://" + agent + "/conversations/" + conversation
			}
			want[w] = true
		}
		for len(want) > 0 {
			select {
			case got := <-updates:
				if !want[got] {
					t.Errorf("%s: told of %s", step.name, got)
				}
				delete(want, got)
			case <-time.After(patience):
				t.Fatalf("%s: not told of %v", step.name, want)
			}
		}
		select {
		case got := <-updates:
			t.Errorf("%s: told of %s, too", step.name, got)
		case <-time.After(20 * c.server.MCPFilesEvery):
		}
	}
}

// When a file is added to or removed from an attached folder, clients are told that the list of resources has changed.
func TestClientsAreToldOfNewFilesOverMCP(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.work()
	c.own().MCPFilesEvery = 10 * time.Millisecond
	c.Handler = c.server.Handler()
	agent, web := c.mcpAgent()
	folder := c.made("/v1/folders", `{"name":"news"}`)
	c.must("PATCH", "/v1/agents/"+agent+"/folders/attach/"+folder, "")
	updates := make(chan struct{}, 100)
	session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent, options: &sdk.ClientOptions{
		ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { updates <- struct{}{} }}})
	defer session.Close()
	await := func(what string) {
		t.Helper()
		select {
		case <-updates:
		case <-time.After(patience):
			t.Fatalf("not told of %s", what)
		}
	}
	quiet := func() {
		t.Helper()
		for {
			select {
			case <-updates: // the file changes its status while it is parsed
				continue
			case <-time.After(20 * c.server.MCPFilesEvery):
			}
			return
		}
	}
	quiet()
	file := c.uploaded(folder, "a.txt", "text")
	await("a new file")
	quiet()
	c.must("DELETE", "/v1/folders/"+folder+"/"+file, "")
	await("a deleted file")
}

// Prompts show the agent's knowledge, within a budget.
func TestPromptsShowTheMemoryOverMCP(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.work()
	agent, web := c.mcpAgent()
	session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent})
	prompt := func(name string, args map[string]string) (string, error) {
		got, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: name, Arguments: args})
		if err != nil {
			return "", err
		}
		return got.Messages[0].Content.(*sdk.TextContent).Text, nil
	}
	var names []string
	for p, err := range session.Prompts(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, p.Name)
	}
	if want := []string{"context", "handover", "recall"}; !slices.Equal(names, want) {
		t.Errorf("got the prompts %v, want %v", names, want)
	}
	for name, want := range map[string][]string{"context": {"Ada likes tea.", "user: The code is 8283."},
		"handover": {"No session was handed over yet."}, "recall": {"tea"}} {
		args := map[string]string{}
		if name == "recall" {
			args["query"] = "tea"
		}
		got, err := prompt(name, args)
		for _, part := range want {
			if err != nil || !strings.Contains(got, part) {
				t.Errorf("%s: got %q, %v, want %q in it", name, got, err, part)
			}
		}
	}
	c.must("PATCH", "/v1/agents/"+agent+"/core-memory/blocks/human", fmt.Sprintf(`{"value":%q,"limit":90000}`,
		strings.Repeat("ünd ", 20_000)))
	short, err := prompt("context", map[string]string{"budget": "200"})
	for _, part := range []string{"[cut: ", "/blocks/human has it all]", "user: The code is 8283."} {
		if err != nil || len(short) > 2_000 || !strings.Contains(short, part) {
			t.Errorf("with a budget of 200 tokens: %d bytes, %v, want %q in\n%s", len(short), err, part, short)
		}
	}
	for name, args := range map[string]map[string]string{"context": {"budget": "99"}, "handover": {"x": "y"}, "none": nil,
		"recall": nil} {
		if got, err := prompt(name, args); err == nil {
			t.Errorf("%s of %v: got %q", name, args, got)
		}
	}
	for _, args := range []map[string]string{{"budget": "many"}, {"budget": "200001"}, {"conversation_id": "conv-1"}} {
		if got, err := prompt("context", args); err == nil {
			t.Errorf("context of %v: got %q", args, got)
		}
	}
}

// If nothing was said to an agent, all its resources have a text, except an empty block. If the newest message is long,
// the resource shows a part of it.
func TestWhatIsEmptyOrLongIsShownOverMCP(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	agent := c.made("/v1/agents", `{"name":"a","memory_blocks":[{"label":"human","value":""}]}`)
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	session := c.mustDial(web, mcpTo{path: "/mcp/agents/" + agent})
	read := 0
	for r, err := range session.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := readText(t, session, r.URI)
		if err != nil || (text == "") != strings.HasSuffix(r.URI, "/blocks/human") {
			t.Errorf("%s has the text %q, %v", r.URI, text, err)
		}
		read++
	}
	if read < 2 {
		t.Errorf("there are %d resources", read)
	}
	c.capture(agent, `{"messages":[{"role":"user","content":"I am Ada."},{"role":"user","content":"`+
		strings.Repeat("word and thing ", 3_000)+`"}]}`)
	got, err := session.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "context"})
	if err != nil {
		t.Fatal(err)
	}
	text := got.Messages[0].Content.(*sdk.TextContent).Text
	if !strings.Contains(text, "word and thing") || !strings.Contains(text, "[cut: ") || len(text) > 40_000 {
		t.Errorf("the context has %d bytes: %.200s", len(text), text)
	}
}
