package loop

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
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

// byClient is the type of a rule that an agent's program runs a tool. The rule's children are the tool's former names.
const byClient = "by_client"

// readRules reads an agent's rules, and adds one for each tool that its program runs, and that what an agent says with
// send_message ends its turn if its type speaks so. Entries that are no rules are ignored.
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
	const exit = "exit_loop"
	speaks := a.Speaks() && a.Type != agent.DefaultType // without a rule it ends the turn of such an agent, as in Letta
	if speaks && !all.has(exit, agent.SendMessage) && !all.has("continue_loop", agent.SendMessage) {
		all = append(all, rule{Type: exit, Tool: agent.SendMessage})
	}
	return all
}

// nameOf returns the current name of the tool that a call means. A tool that a rule names, or that the agent's program
// runs, has precedence over a built-in one with nearly the same name.
func (r rules) nameOf(called string) string {
	current := tool.Named(called)
	for _, one := range r {
		switch {
		case one.Tool == called:
			return called
		case one.Type == byClient && slices.Contains(one.Children, called):
			current = one.Tool
		}
	}
	return current
}

// has reports whether a tool has a rule of this type.
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

// doneBy returns the call of a tool with this result.
func (r rules) doneBy(tool string, result recall.Part) done {
	return done{tool: r.nameOf(tool), result: result.Text, failed: result.IsError, denied: isDenied(result)}
}

// refusedByRules begins the result of a call that the rules refused.
const refusedByRules = "The rules of your tools do not allow "

// refusal returns why a tool may not be called, after the calls of earlier answers (before) and of the same answer
// (same); empty if it may. The rules apply only to tools. No call may follow one that ends the turn, even if that one
// fails, because the client is shown the calls that it must answer before any of them has run.
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

// refusals maps call id → why a call of the answer is refused. The answer's calls count one after the other, after
// those in before.
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

// narrowing says which tools an answer may call: those in only, unless it is nil. If must is true, it must call one of
// them.
type narrowing struct {
	only []string
	must bool
}

// allows reports whether a tool may be called.
func (n narrowing) allows(tool string) bool { return n.only == nil || slices.Contains(n.only, tool) }

// narrow returns which of these tools may be called after these calls.
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

// child returns the tool that a conditional rule requires after an output. It is empty if any tool may follow, or if
// none may because unmapped outputs are not allowed.
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

// missing returns the tools that must be called before a turn ends and were not called. A call that the client denied
// counts as called.
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

// ending says in which state an answer leaves its turn once its calls have results.
type ending struct {
	calls   bool     // the answer has calls
	ended   bool     // a call ended the turn
	ends    bool     // the answer has no calls, or a call that ends the turn unless tools are missing
	spoke   bool     // a call of send_message ended the turn
	missing []string // tools that must be called first
}

// after returns in which state an answer leaves its turn.
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
	e.spoke = e.ended && slices.ContainsFunc(same, func(c done) bool { return c.tool == agent.SendMessage && r.ends(c) })
	return e
}
