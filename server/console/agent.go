package console

import (
	"encoding/json"
	"slices"
	"time"
)

func agentPage(v *visit) error {
	var a agent
	if err := v.get("/v1/agents/"+v.id("agent"), &a); err != nil {
		return err
	}
	model := a.Model
	if model == "" {
		model = "no model of its own"
	}
	return v.show(page{Title: a.Name, Tab: "Agents", Crumbs: []link{{"Agents", base + "agents"}},
		Sub: model + " · " + number(a.Config.Window) + " tokens", Head: agentHead(v, a), Cards: []card{
			{Name: "agent-window", Title: "Context window", Width: "w12", Live: "15s", Load: loaded(agentWindowCard,
				func(v *visit) (window, error) { return v.window(a.ID, "") })},
			{Name: "agent-usage", Title: "Usage by step", Width: "w8", Load: loaded(agentUsageCard, usage)},
			{Name: "agent-compactions", Title: "Compactions", Width: "w4", Load: loaded(agentCompactionsCard,
				func(v *visit) ([]compaction, error) { return compactions(v, "limit=6&order=desc") })},
			{Name: "agent-blocks", Title: "Blocks", Width: "w5", Load: loaded(agentBlocksCard, agentBlocks)},
			{Name: "agent-files", Title: "Open files", Width: "w7", Load: loaded(agentFilesCard,
				func(v *visit) (openFilesView, error) {
					files, err := openFiles(v)
					return openFilesView{a, files}, err
				})},
			{Name: "agent-policy", Title: "Policy", Width: "w5", Load: loaded(agentPolicyCard, agentPolicy)},
			{Name: "agent-about", Title: "About", Width: "w7", Load: known(agentAboutCard, a)},
		}})
}

// compaction is a compaction in the API's form.
type compaction struct {
	ID             string     `json:"id"`
	AgentID        string     `json:"agent_id"`
	ConversationID string     `json:"conversation_id"`
	FromSeq        *int64     `json:"from_seq"`
	ToSeq          *int64     `json:"to_seq"`
	FromPosition   *int       `json:"from_position"`
	ToPosition     *int       `json:"to_position"`
	MessagesBefore int        `json:"messages_count_before"`
	MessagesAfter  int        `json:"messages_count_after"`
	Before         int        `json:"context_tokens_before"`
	After          int        `json:"context_tokens_after"`
	Window         int        `json:"context_window"`
	OutputTokens   int        `json:"output_tokens"`
	Policy         string     `json:"policy"`
	Trigger        string     `json:"trigger"`
	How            string     `json:"how"`
	Why            string     `json:"why"`
	Model          string     `json:"model"`
	Mode           string     `json:"mode"`
	Summary        string     `json:"summary"`
	CreatedAt      time.Time  `json:"created_at"`
	RevertedAt     *time.Time `json:"reverted_at"`
	Duration       float64    `json:"duration_ms"`
	Steps          []struct {
		Step  string `json:"step"`
		Edits int    `json:"edits"`
		Saved int    `json:"tokens_saved"`
	} `json:"steps"`
}

// URL is the address of the compaction's page.
func (c compaction) URL() string { return base + "agents/" + c.AgentID + "/compactions/" + c.ID }

func compactions(v *visit, query string) (list []compaction, err error) {
	return list, v.get("/v1/agents/"+v.id("agent")+"/compactions?"+query, &list)
}

// point is a point of a plot.
type point struct {
	At        time.Time `json:"at"`
	Tokens    int       `json:"tokens"`
	Compacted bool      `json:"compacted"` // a compaction happened here
}

// usageView shows how full a window was over time.
type usageView struct {
	Points      []point
	Window      int
	Compactions int
	JSON        string // the points as JSON, for the plot
}

// plotted is how many steps and compactions a plot shows at most.
const plotted = 200

// usage reads the sizes of an agent's prompts in tokens, and its compactions.
func usage(v *visit) (view usageView, err error) {
	var steps []struct {
		Tokens int       `json:"prompt_tokens"`
		At     time.Time `json:"created_at"`
	}
	var current window
	err = v.get("/v1/steps?agent_id="+v.id("agent")+"&limit=200&order=desc", &steps)
	if err == nil {
		current, err = v.window(v.r.PathValue("agent"), "")
	}
	done, madeErr := compactions(v, "limit=100&order=desc")
	if err != nil || madeErr != nil {
		return view, firstOf(err, madeErr)
	}
	view.Window = current.Max
	for _, s := range steps {
		if s.Tokens > 0 {
			view.Points = append(view.Points, point{At: s.At, Tokens: s.Tokens})
		}
	}
	for _, c := range done {
		view.Compactions++
		view.Points = append(view.Points, point{At: c.CreatedAt, Tokens: c.Before, Compacted: true},
			point{At: c.CreatedAt.Add(time.Millisecond), Tokens: c.After})
	}
	slices.SortStableFunc(view.Points, func(a, b point) int { return a.At.Compare(b.At) })
	view.Points = view.Points[max(0, len(view.Points)-plotted):]
	if len(view.Points) > 0 {
		view.Points = append(view.Points, point{At: time.Now().UTC(), Tokens: current.Used})
	}
	text, err := json.Marshal(view.Points)
	view.JSON = string(text)
	return view, err
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// policyView is the policy in force.
type policyView struct {
	Policy string       `json:"policy"`
	SetBy  string       `json:"set_by"`
	Steps  []policyStep `json:"steps"`
}

// policyStep is a step of a policy.
type policyStep struct {
	Step        string
	Stage       string
	Source      string
	Description string
	Settings    []struct {
		Name        string
		Value       json.RawMessage
		Description string
		Origin      string
	}
}

func agentPolicy(v *visit) (*policyView, error) {
	var p policyView
	return &p, v.get("/v1/agents/"+v.id("agent")+"/policy", &p)
}

func compactAgent(v *visit) error {
	var result struct {
		Unchanged *string     `json:"unchanged"`
		Made      *compaction `json:"compaction"`
	}
	if err := v.send("POST", "/v1/agents/"+v.id("agent")+"/summarize", map[string]any{}, &result); err != nil {
		return err
	}
	note := "compacted"
	if result.Made == nil {
		note = "unchanged"
	}
	return v.done(base+"agents/"+v.id("agent"), note)
}

// AgentURL is the address of the page of the compaction's agent.
func (c compaction) AgentURL() string { return base + "agents/" + c.AgentID }

// Sizes says how many messages and tokens there were before the compaction and after it.
func (c compaction) Sizes() string {
	return plural(c.MessagesBefore, "message", "messages") + " → " + number(c.MessagesAfter) + ", " + number(c.Before) +
		" → " + number(c.After) + " tokens" + prefixed(", by ", c.Model)
}

// Effect says what the compaction did.
func (c compaction) Effect() string {
	text := c.Range() + ": " + number(c.MessagesBefore) + " → " + number(c.MessagesAfter) + " messages, " +
		number(c.Before) + " → " + number(c.After) + " tokens"
	if c.RevertedAt != nil {
		text += " · reverted"
	}
	return text
}

// Range says which messages the compaction took out of view.
func (c compaction) Range() string {
	if c.FromSeq == nil || c.ToSeq == nil {
		return "edits only"
	}
	return "seq " + number(*c.FromSeq) + " – " + number(*c.ToSeq)
}
