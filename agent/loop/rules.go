package loop

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/recall"
)

// rule is a rule for the use of a tool, as Letta's clients store it.
type rule struct {
	Type     string             `json:"type"`
	Tool     string             `json:"tool_name"`
	Children []string           `json:"children"`
	Max      int                `json:"max_count_limit"`
	Outputs  map[string]*string `json:"child_output_mapping"`
	Default  *string            `json:"default_child"`
	Required bool               `json:"require_output_mapping"`
}

type rules []rule

// byClient is the type of a rule that says that an agent's program runs a tool, whose former names are its children.
const byClient = "by_client"

// readRules reads an agent's rules, and adds one for each tool that its program runs. It ignores entries that are no
// rules.
func readRules(a agent.Agent) (all rules) {
	for _, t := range a.Attached {
		all = append(all, rule{Type: byClient, Tool: t.Name, Children: t.FormerNames})
	}
	var list []json.RawMessage
	_ = json.Unmarshal(a.Settings.ToolRules, &list) // clients may store anything
	for _, raw := range list {
		var r rule
		if json.Unmarshal(raw, &r) == nil && r.Tool != "" {
			all = append(all, r)
		}
	}
	return all
}

// nameOf returns the name that the tool of a call has now.
func (r rules) nameOf(called string) string {
	now := called
	for _, one := range r {
		switch {
		case one.Type == byClient && one.Tool == called:
			return called
		case one.Type == byClient && slices.Contains(one.Children, called):
			now = one.Tool
		}
	}
	return now
}

// has reports whether a tool has a rule of a type.
func (r rules) has(kind, tool string) bool {
	tool = r.nameOf(tool)
	return slices.ContainsFunc(r, func(one rule) bool { return one.Type == kind && one.Tool == tool })
}

// done is a call of a run that the rules allowed.
type done struct {
	tool, result string
	failed       bool
	denied       bool // by the client
	waits        bool // it has no result yet
}

// doneBy returns the call of a tool that has a result.
func (r rules) doneBy(tool string, result recall.Part) done {
	return done{tool: r.nameOf(tool), result: result.Text, failed: result.IsError, denied: isDenied(result)}
}

// refusedByRules begins the results of calls that the rules refused.
const refusedByRules = "The rules of your tools do not allow "

// refusal returns why a tool may not be called after the calls of earlier answers and those of the same answer; empty
// if it may. The rules are for tools alone. Nothing may follow a call that ends the turn, even if that call fails: the
// client is shown which calls it is asked for before one of them has run.
func (r rules) refusal(tools []string, before, same []done, tool string) string {
	tried := slices.Clone(same)
	for i := range tried {
		tried[i].failed = false
	}
	n, ended := r.narrow(tools, slices.Concat(before, same)), r.ended(tools, before, tried)
	switch {
	case !slices.Contains(tools, tool) || !ended && n.allows(tool):
		return ""
	case ended || len(n.only) == 0:
		return refusedByRules + tool + " now. You may call no tool."
	}
	return refusedByRules + tool + " now. You may call " + strings.Join(n.only, ", ") + "."
}

// refusals returns why calls of an answer are refused, by their ids. Its calls count as if they were made one after the
// other, after those before.
func (r rules) refusals(tools []string, before []done, answer recall.Message, results map[string]recall.Part) (
	why map[string]string) {
	why = map[string]string{}
	var same []done
	for _, p := range answer.Content {
		if p.Type != recall.ToolCall {
			continue
		}
		result, has := results[p.CallID]
		name := r.nameOf(p.Name)
		refusal := r.refusal(tools, before, same, name)
		switch {
		case !has && refusal != "":
			why[p.CallID] = refusal
		case !has:
			same = append(same, done{tool: name, waits: true})
		case !isRefused(result):
			same = append(same, r.doneBy(name, result))
		}
	}
	return why
}

// isRefused reports whether a result says that the rules refused its call.
func isRefused(result recall.Part) bool {
	return result.IsError && strings.HasPrefix(result.Text, refusedByRules)
}

// narrowing is which tools an answer may call: Only if it is not nil, and one of them if Must is true.
type narrowing struct {
	only []string
	must bool
}

// allows reports whether a tool may be called.
func (n narrowing) allows(tool string) bool { return n.only == nil || slices.Contains(n.only, tool) }

// narrow returns which of some tools may be called after some calls.
func (r rules) narrow(tools []string, calls []done) narrowing {
	n := narrowing{only: slices.Clone(tools)}
	keep := func(ok func(string) bool) {
		n.only = slices.DeleteFunc(n.only, func(t string) bool { return !ok(t) })
	}
	var first []string
	for _, one := range r {
		if one.Type == "run_first" && slices.Contains(tools, one.Tool) {
			first = append(first, one.Tool)
		}
	}
	if len(calls) == 0 && len(first) > 0 {
		return narrowing{only: first, must: true}
	}
	last := done{}
	if len(calls) > 0 {
		last = calls[len(calls)-1]
	}
	for _, one := range r {
		after := len(calls) > 0 && last.tool == one.Tool
		switch one.Type {
		case "constrain_child_tools":
			if after {
				keep(func(t string) bool { return slices.Contains(one.Children, t) })
				n.must = true
			}
		case "conditional":
			if child := one.child(last.result); after && !last.waits && (child != "" || one.Required) {
				keep(func(t string) bool { return t == child })
				n.must = true
			}
		case "parent_last_tool":
			if !after {
				keep(func(t string) bool { return !slices.Contains(one.Children, t) })
			}
		case "max_count_per_step":
			count := 0
			for _, c := range calls {
				if c.tool == one.Tool {
					count++
				}
			}
			if one.Max > 0 && count >= one.Max {
				keep(func(t string) bool { return t != one.Tool })
			}
		}
	}
	if len(n.only) == len(tools) {
		n.only = nil
	}
	n.must = n.must && (n.only == nil || len(n.only) > 0)
	return n
}

// child returns the tool that follows an output of a conditional rule's tool; empty for any, or for none if an output
// that is not mapped is not allowed.
func (r rule) child(output string) string {
	for key, tool := range r.Outputs {
		if tool != nil && strings.EqualFold(strings.TrimSpace(output), key) {
			return *tool
		}
	}
	if r.Default != nil && !r.Required {
		return *r.Default
	}
	return ""
}

// missing returns the tools that must be called before a turn ends, and were not. A call that the client denied counts.
func (r rules) missing(tools []string, calls []done) (names []string) {
	for _, one := range r {
		called := slices.ContainsFunc(calls, func(c done) bool { return c.tool == one.Tool && (!c.failed || c.denied) })
		if one.Type == "required_before_exit" && !called && slices.Contains(tools, one.Tool) {
			names = append(names, one.Tool)
		}
	}
	return names
}

// ends reports whether a call ends a turn, unless tools are missing.
func (r rules) ends(c done) bool { return !c.failed && r.has("exit_loop", c.tool) }

// ended reports whether a call of an answer ended its turn. before are the calls of earlier answers.
func (r rules) ended(tools []string, before, same []done) bool {
	for i, c := range same {
		if r.ends(c) && len(r.missing(tools, slices.Concat(before, same[:i+1]))) == 0 {
			return true
		}
	}
	return false
}

// ending is how an answer whose calls have results leaves its turn.
type ending struct {
	calls   bool     // it has calls
	ended   bool     // by a call
	ends    bool     // it has no calls, or one that ends the turn when no tool is missing
	missing []string // tools that must be called before
}

// after returns how an answer leaves its turn.
func (r rules) after(tools []string, before []done, t tail) ending {
	var same []done
	e := ending{}
	for _, p := range t.answer.Content {
		if p.Type != recall.ToolCall {
			continue
		}
		e.calls = true
		if result, has := t.results[p.CallID]; has && !isRefused(result) {
			same = append(same, r.doneBy(p.Name, result))
		}
	}
	e.ended, e.ends = r.ended(tools, before, same), !e.calls || slices.ContainsFunc(same, r.ends)
	e.missing = r.missing(tools, slices.Concat(before, same))
	return e
}
