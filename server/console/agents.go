package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// agent is an agent in the API's form.
type agent struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Model       string     `json:"model"`
	Tags        []string   `json:"tags"`
	CreatedAt   time.Time  `json:"created_at"`
	UpdatedAt   time.Time  `json:"updated_at"`
	LastRun     *time.Time `json:"last_run_completion"`
	StopReason  string     `json:"last_stop_reason"`
	MaxOpen     int        `json:"max_files_open"`
	System      string     `json:"system"`
	Config      struct {
		Window int `json:"context_window"`
	} `json:"llm_config"`
}

// URL is the address of the agent's page.
func (a agent) URL() string { return base + "agents/" + a.ID }

func agentRoutes() map[string]handler {
	return map[string]handler{
		"GET agents":                              agentList,
		"GET agents/{agent}":                      agentPage,
		"POST agents/{agent}/compact":             compactAgent,
		"POST agents/{agent}/files/{file}/{verb}": changeOpenFile,
	}
}

// pageSize is how many items a page of a list shows.
const pageSize = 50

// list is a page of a list that the API returned.
type list[T any] struct {
	Items []T
	Next  string // address of the next page; empty on the last page
	First bool   // this is the first page
	Query string // the search text
}

// paged reads a page of a list. The query parameter after names the item before the page. id returns the id of an item.
func paged[T any](v *visit, path string, query url.Values, id func(T) string) (list[T], error) {
	after := v.r.URL.Query().Get("after")
	if after != "" {
		query.Set("after", after)
	}
	query.Set("limit", number(pageSize+1))
	out := list[T]{First: after == ""}
	if err := v.get(path+"?"+query.Encode(), &out.Items); err != nil {
		return out, err
	}
	if after != "" && len(out.Items) == 0 {
		return out, &apiError{Status: http.StatusNotFound,
			Detail: "Nothing comes after the item that the address names. Open the first page of the list."}
	}
	if len(out.Items) > pageSize {
		out.Items = out.Items[:pageSize]
		next := v.r.URL.Query()
		next.Del("card")
		next.Del("done")
		next.Set("after", id(out.Items[pageSize-1]))
		out.Next = v.r.URL.Path + "?" + next.Encode()
	}
	return out, nil
}

func agentList(v *visit) error {
	return v.show(page{Title: "Agents", Tab: "Agents", Sub: "Each has its own window, memory and open files.",
		Cards: []card{{Name: "agents-list", Title: "Agents", Width: "w12", Load: loaded(agentsListCard, listAgents)}}})
}

// createAgentCommand is a command that creates an agent on this server.
func (v *visit) createAgentCommand() string {
	key := ""
	if v.caller.KeyID != "" {
		key = ` -H "Authorization: Bearer $LOCI_API_KEY"`
	}
	return "curl -X POST " + v.Origin() + "/v1/agents" + key + ` -d '{"name":"first"}'`
}

// agentsPage is a page of the list of agents. The first one without a search has the agents that mix users.
type agentsPage struct {
	list[agent]
	Mixed []mixedAgent
}

// mixedAgent is an agent that shows each of its users what the others said.
type mixedAgent struct {
	agent
	Users int `json:"users"`
}

func listAgents(v *visit) (agentsPage, error) {
	query := url.Values{"order": {"desc"}, "order_by": {"updated_at"}, "show_hidden_agents": {"true"}}
	text := v.r.URL.Query().Get("q")
	if text != "" {
		query.Set("query_text", text)
	}
	all, err := paged(v, "/v1/agents", query, func(a agent) string { return a.ID })
	all.Query = text
	out := agentsPage{list: all}
	if err == nil && all.First && text == "" {
		err = v.get("/v1/agents/mixing-users", &out.Mixed)
	}
	return out, err
}

// window says what fills an agent's window, in tokens.
type window struct {
	Max      int `json:"context_window_size_max"`
	Used     int `json:"context_window_size_current"`
	Tools    int `json:"num_tokens_functions_definitions"`
	System   int `json:"num_tokens_system"`
	Rules    int `json:"num_tokens_tool_usage_rules"`
	External int `json:"num_tokens_external_memory_summary"`
	Core     int `json:"num_tokens_core_memory"`
	Trees    int `json:"num_tokens_memory_filesystem"`
	Working  int `json:"num_tokens_working_memory"`
	Files    int `json:"num_tokens_directories"`
	Summary  int `json:"num_tokens_summary_memory"`
	Messages int `json:"num_tokens_messages"`

	Archival int `json:"num_archival_memory"`
	Recall   int `json:"num_recall_memory"`
	Shown    int `json:"num_messages"`
}

// part is a part of a window.
type part struct {
	Name   string
	Class  string // in the stylesheet
	Tokens int
	X, W   float64 // begin and width of its bar, in percent
}

// Parts returns the parts in the order in which the model gets them.
func (w window) Parts() []part {
	list := []part{
		{Name: "Tools", Class: "p-tools", Tokens: w.Tools},
		{Name: "Instructions", Class: "p-system", Tokens: w.System + w.Rules + w.External},
		{Name: "Memory", Class: "p-blocks", Tokens: w.Core + w.Trees + w.Working},
		{Name: "Files", Class: "p-files", Tokens: w.Files},
		{Name: "Summary", Class: "p-summary", Tokens: w.Summary},
		{Name: "Messages", Class: "p-messages", Tokens: w.Messages},
	}
	x := 0.0
	for i := range list {
		list[i].X, list[i].W = x, min(width(list[i].Tokens, w.Max), 100-x)
		x += list[i].W
	}
	return list
}

// Share is how much of the window is used, in percent.
func (w window) Share() float64 { return width(w.Used, w.Max) }

// Class is the CSS class of the window's meter.
func (w window) Class() string {
	switch share := w.Share(); {
	case share >= 90:
		return "full"
	case share >= 75:
		return "near"
	}
	return ""
}

// Label describes the window in words.
func (w window) Label() string { return share(w.Used, w.Max) + " of the window is used" }

// window reads what fills the window of a conversation. An empty conversation means the default one.
func (v *visit) window(agentID, conversation string) (w window, err error) {
	query := ""
	if conversation != "" {
		query = "?" + url.Values{"conversation_id": {conversation}}.Encode()
	}
	return w, v.get("/v1/agents/"+url.PathEscape(agentID)+"/context"+query, &w)
}

// openedFile is a file in an agent's folders.
type openedFile struct {
	ID       string     `json:"file_id"`
	Name     string     `json:"file_name"`
	FolderID string     `json:"folder_id"`
	Accessed *time.Time `json:"last_accessed_at"`
	Pinned   bool       `json:"is_pinned"`
	From     *int       `json:"start_line"`
	To       *int       `json:"end_line"`
}

// URL is the address of the file's page.
func (f openedFile) URL() string { return base + "folders/" + f.FolderID + "/files/" + f.ID }

// openFilesView shows the open files of an agent.
type openFilesView struct {
	Agent agent
	Files []openedFile
}

// Closing says how many files are open, and which one is closed next to make room.
func (o openFilesView) Closing() string {
	text := strconv.Itoa(len(o.Files)) + " of " + strconv.Itoa(o.Agent.MaxOpen)
	switch {
	case len(o.Files) == 0:
		return text
	case o.Files[0].Pinned:
		return text + " · none is closed by itself"
	}
	return text + " · the first is closed next"
}

// openFiles lists an agent's open files. The file that will be closed next comes first.
func openFiles(v *visit) ([]openedFile, error) {
	var files struct{ Files []openedFile }
	if err := v.get("/v1/agents/"+v.id("agent")+"/files?is_open=true&limit=100", &files); err != nil {
		return nil, err
	}
	slices.SortStableFunc(files.Files, func(a, b openedFile) int {
		if a.Pinned != b.Pinned { // pinned files are never closed to make room
			return map[bool]int{true: 1, false: -1}[a.Pinned]
		}
		if a.Accessed == nil || b.Accessed == nil {
			return 0
		}
		return a.Accessed.Compare(*b.Accessed)
	})
	return files.Files, nil
}

// id returns an id from the page's address, escaped for an address of the API.
func (v *visit) id(name string) string { return url.PathEscape(v.r.PathValue(name)) }

// changeOpenFile opens, closes, pins or unpins a file.
func changeOpenFile(v *visit) error {
	verb := v.r.PathValue("verb")
	note := map[string]string{"open": "opened", "close": "closed", "pin": "pinned", "unpin": "unpinned"}[verb]
	if note == "" {
		return errNoPage
	}
	if err := v.send("PATCH", "/v1/agents/"+v.id("agent")+"/files/"+v.id("file")+"/"+verb, nil, nil); err != nil {
		return err
	}
	return v.done(base+"agents/"+v.id("agent"), note)
}

// Lines says which lines of the file are open.
func (f openedFile) Lines() string {
	if f.From == nil || f.To == nil {
		return "all"
	}
	return number(*f.From) + "–" + number(*f.To)
}
