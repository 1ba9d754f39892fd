package console

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

func promptRoutes() map[string]handler {
	return map[string]handler{"GET agents/{agent}/prompt": promptPage}
}

// prompt is a request to a model as the API has it.
type prompt struct {
	Seq      int64           `json:"seq"`
	Format   string          `json:"format"`
	Window   int             `json:"context_window"`
	SHA256   string          `json:"sha256"`
	Request  json.RawMessage `json:"request"`
	Tokens   promptTokens    `json:"tokens"`
	At       int64           `json:"-"` // the position that was asked for; 0 for the next prompt
	Sections []section       `json:"-"`
	Problem  string          `json:"-"`
}

// promptTokens is what each part of a prompt takes.
type promptTokens struct {
	Total        int `json:"total"`
	Tools        int `json:"tools"`
	Instructions int `json:"base_instructions"`
	Core         int `json:"core_memory"`
	Rules        int `json:"tool_usage_rules"`
	Directories  int `json:"directories"`
	Metadata     int `json:"memory_metadata"`
	Working      int `json:"working_memory"`
	Summary      int `json:"summary"`
	Messages     int `json:"messages"`
}

// section is a part of a prompt with its text.
type section struct {
	Name string
	Text string
}

// window is the prompt's tokens as those of a window.
func (p prompt) window() window {
	t := p.Tokens
	return window{Max: p.Window, Used: t.Total, Tools: t.Tools, System: t.Instructions, Rules: t.Rules,
		External: t.Metadata, Core: t.Core, Working: t.Working, Files: t.Directories,
		Summary: t.Summary, Messages: t.Messages}
}

// Bar is what the template of a window shows.
func (p prompt) Bar() window { return p.window() }

// split reads the parts of the request. It shows what it does not know as it is.
func (p *prompt) split() {
	var fields map[string]json.RawMessage
	if json.Unmarshal(p.Request, &fields) != nil {
		p.Sections = []section{{"Request", pretty(p.Request)}}
		return
	}
	for _, name := range []string{"system", "instructions", "messages", "input"} {
		raw, has := fields[name]
		if !has {
			continue
		}
		delete(fields, name)
		var items []map[string]json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			p.Sections = append(p.Sections, section{strings.ToUpper(name[:1]) + name[1:], text(raw)})
			continue
		}
		for i, item := range items {
			title := name + " " + strconv.Itoa(i+1)
			if role := text(item["role"]); role != "" {
				title += " · " + role
			}
			content := text(item["content"])
			if content == "" || len(item) > 2 {
				all, _ := json.MarshalIndent(item, "", "  ")
				content = string(all)
			}
			p.Sections = append(p.Sections, section{title, content})
		}
	}
	if tools, has := fields["tools"]; has {
		p.Sections = append(p.Sections, section{"tools", pretty(tools)})
		delete(fields, "tools")
	}
	if len(fields) > 0 {
		rest, _ := json.MarshalIndent(fields, "", "  ")
		p.Sections = append(p.Sections, section{"other fields", string(rest)})
	}
}

// text returns the text of a JSON value: of a string its content, of a list of parts theirs, of anything else JSON.
func text(raw json.RawMessage) string {
	var plain string
	if len(raw) == 0 || json.Unmarshal(raw, &plain) == nil {
		return plain
	}
	var parts []struct{ Type, Text string }
	if json.Unmarshal(raw, &parts) == nil {
		var all []string
		for _, p := range parts {
			if p.Text == "" {
				return pretty(raw)
			}
			all = append(all, p.Text)
		}
		return strings.Join(all, "\n")
	}
	return pretty(raw)
}

// prompt reads the next prompt of an agent, or the one that was in force at a position.
func (v *visit) prompt(at int64) (p prompt, err error) {
	path := "/v1/agents/" + v.id("agent")
	if at > 0 {
		path += "/context?" + url.Values{"at_seq": {strconv.FormatInt(at, 10)}}.Encode()
	} else {
		path += "/prompt"
	}
	if err = v.get(path, &p); err == nil {
		p.At = at
		p.split()
	}
	return p, err
}

func promptPage(v *visit) error {
	a, err := v.agent()
	if err != nil {
		return err
	}
	at, err := v.whole("at")
	if err != nil {
		return err
	}
	title := "Exact prompt"
	if at > 0 {
		title = "Window at seq " + number(at)
	}
	return v.show(page{Title: title, Tab: "Agents", Crumbs: a.crumbs(), Sub: "What the model is sent, part by part.",
		Cards: []card{
			{Name: "prompt-parts", Title: "Parts", Width: "w12", Load: func(v *visit) (any, error) { return v.prompt(at) }},
			{Name: "prompt-diff", Title: "Against an earlier one", Width: "w12", Load: func(v *visit) (any, error) {
				return v.promptDiff(at)
			}},
		}})
}

// promptDiffView compares a prompt with an earlier one.
type promptDiffView struct {
	At, With int64 // 0 if nothing is compared
	Lines    []diffLine
}

func (v *visit) promptDiff(at int64) (any, error) {
	with, err := v.whole("with")
	view := promptDiffView{At: at, With: with}
	if err != nil || with == 0 {
		return view, err
	}
	now, err := v.prompt(at)
	if err != nil {
		return nil, err
	}
	before, err := v.prompt(view.With)
	if err != nil {
		return nil, err
	}
	view.Lines, err = compare(before.lines(), now.lines())
	return view, err
}

// lines are the lines of the whole prompt.
func (p prompt) lines() (all []string) {
	for _, s := range p.Sections {
		all = append(all, "## "+s.Name)
		all = append(all, strings.Split(s.Text, "\n")...)
	}
	return all
}
