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

// prompt is a request to a model in the API's form.
type prompt struct {
	Seq      int64           `json:"seq"`
	Format   string          `json:"format"`
	Window   int             `json:"context_window"`
	SHA256   string          `json:"sha256"`
	Request  json.RawMessage `json:"request"`
	Tokens   promptTokens    `json:"tokens"`
	At       int64           `json:"-"` // the requested position; 0 for the next prompt
	Sections []section       `json:"-"`
	Problem  string          `json:"-"`
}

// promptTokens counts the tokens of a prompt's parts.
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

// window returns the prompt's tokens as parts of a window.
func (p prompt) window() window {
	t := p.Tokens
	return window{Max: p.Window, Used: t.Total, Tools: t.Tools, System: t.Instructions, Rules: t.Rules,
		External: t.Metadata, Core: t.Core, Working: t.Working, Files: t.Directories,
		Summary: t.Summary, Messages: t.Messages}
}

// split splits the request into parts. Unknown fields are shown as JSON.
func (p *prompt) split() {
	var fields map[string]json.RawMessage
	if json.Unmarshal(p.Request, &fields) != nil {
		p.Sections = []section{{"Request", pretty(p.Request)}}
		return
	}
	for _, name := range []string{"system", "instructions", "messages", "input"} {
		raw, ok := fields[name]
		if !ok {
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
			delete(item, "cache_control")
			content := text(item["content"])
			if content == "" || len(item) > 2 {
				all, _ := json.MarshalIndent(item, "", "  ")
				content = string(all)
			}
			p.Sections = append(p.Sections, section{title, content})
		}
	}
	if tools, ok := fields["tools"]; ok {
		p.Sections = append(p.Sections, section{"tools", pretty(tools)})
		delete(fields, "tools")
	}
	if len(fields) > 0 {
		others, _ := json.MarshalIndent(fields, "", "  ")
		p.Sections = append(p.Sections, section{"other fields", string(others)})
	}
}

// text returns the text of a JSON value: a string's content, the texts of a list of parts, or JSON for anything else.
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

// prompt reads an agent's next prompt or, if position is not 0, the prompt in force at that position.
func (v *visit) prompt(position int64) (p prompt, err error) {
	path := "/v1/agents/" + v.id("agent")
	if position > 0 {
		path += "/context?" + url.Values{"at_seq": {strconv.FormatInt(position, 10)}}.Encode()
	} else {
		path += "/prompt"
	}
	if err = v.get(path, &p); err == nil {
		p.At = position
		p.split()
	}
	return p, err
}

func promptPage(v *visit) error {
	a, err := v.agent()
	if err != nil {
		return err
	}
	position, err := v.whole("at")
	if err != nil {
		return err
	}
	title := "Exact prompt"
	if position > 0 {
		title = "Window at seq " + number(position)
	}
	return v.show(page{Title: title, Tab: "Agents", Crumbs: a.crumbs(), Sub: "What the model is sent, part by part.",
		Cards: []card{
			{Name: "prompt-parts", Title: "Parts", Width: "w12", Load: loaded(promptPartsCard,
				func(v *visit) (prompt, error) { return v.prompt(position) })},
			{Name: "prompt-diff", Title: "Against an earlier one", Width: "w12", Load: loaded(promptDiffCard,
				func(v *visit) (promptDiffView, error) { return v.promptDiff(position) })},
		}})
}

// promptDiffView compares a prompt with an earlier one.
type promptDiffView struct {
	At, With int64 // 0 if nothing is compared
	Lines    []diffLine
}

func (v *visit) promptDiff(position int64) (promptDiffView, error) {
	earlier, err := v.whole("with")
	view := promptDiffView{At: position, With: earlier}
	if err != nil || earlier == 0 {
		return view, err
	}
	newText, err := v.prompt(position)
	if err != nil {
		return view, err
	}
	oldText, err := v.prompt(view.With)
	if err != nil {
		return view, err
	}
	view.Lines, err = compare(oldText.lines(), newText.lines())
	return view, err
}

// lines returns the lines of the whole prompt.
func (p prompt) lines() (all []string) {
	for _, s := range p.Sections {
		all = append(all, "## "+s.Name)
		all = append(all, strings.Split(s.Text, "\n")...)
	}
	return all
}
